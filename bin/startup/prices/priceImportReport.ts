import { decimalFromPico } from '../../../domain/money.js';
import type {
  CollectionDifferences,
  ModelDifference,
  RateDifference,
} from '../../../domain/pricing/imports/differences.js';
import { factorText, type Suspicion } from '../../../domain/pricing/imports/suspicions.js';
import type { PriceImportOptions } from '../../../usecases/pricing/priceImport.js';

/** Lines of one part of the report; what is cut is counted. */
const LINES_MAX = 200;
const MISSING_MAX = 20;

/**
 * What an import would change, for a person to decide on: new and changed prices rate by rate, what looks wrong, and
 * what is left as it is.
 */
export function describeDifferences(
  options: PriceImportOptions,
  differences: CollectionDifferences,
  taken: readonly ModelDifference[],
): string {
  const { collection } = options;
  const held = differences.models.filter((model) => !taken.includes(model));
  const lines = [
    `${collection.source}, fetched ${options.retrievedOn}: ${collection.models.length} token prices, ${collection.otherEntries} entries of other kinds or providers. In USD per million tokens, from ${options.effectiveFrom} on.`,
    ...section('new', taken.filter(isNew).map(describeModel)),
    ...section('changed', taken.filter((model) => !isNew(model)).map(describeModel)),
    ...section(
      'left out, since a rate looks wrong (--accept-suspicious takes them)',
      held.map(describeModel),
    ),
    ...section(
      'left out, since the ids of one price differ',
      differences.divided.map((one) => `${one.provider} ${one.ids.join(', ')}`),
    ),
    ...section(
      'left alone, since more is known than this file can know',
      differences.older.map((one) => `${one.provider} ${one.model}`),
    ),
    ...section('suspicious in the file', differences.suspicions.map(describeSuspicion)),
    ...section(
      'priced now and not in the file: stays',
      differences.missing.map((one) => `${one.provider} ${one.model}`),
      MISSING_MAX,
    ),
    `\n${taken.length} to import, ${differences.sameModels} as they are, ${differences.weighedRates} rates differ as they did when the shipped list was made and stay.`,
  ];
  return lines.join('\n');
}

const isNew = ({ kind }: ModelDifference) => kind === 'new';

function section(title: string, items: readonly string[], max = LINES_MAX): string[] {
  if (items.length === 0) return [];
  const shown = items.slice(0, max).map((item) => `  ${item}`);
  const more = items.length > max ? [`  … and ${items.length - max} more`] : [];
  return [`\n${title} (${items.length})`, ...shown, ...more];
}

function describeModel({ listed, rates, suspicions }: ModelDifference): string {
  const reasons = suspicions.map((one) => `\n      ! ${one.because}`);
  return `${listed.provider} ${listed.model}${rates.map((rate) => `\n      ${describeRate(rate)}`).join('')}${reasons.join('')}`;
}

function describeRate({ tier, rateClass, before, after }: RateDifference): string {
  const name = tier === 'standard' ? rateClass : `${tier} ${rateClass}`;
  if (before === null) return `${name} ${decimalFromPico(after)}`;
  const factor = before === 0n ? '' : ` (× ${factorText(after, before)})`;
  const jump = after > before * 2n || after * 2n < before ? ' JUMP' : '';
  return `${name} ${decimalFromPico(before)} → ${decimalFromPico(after)}${factor}${jump}`;
}

function describeSuspicion({ listed, tier, rateClass, because }: Suspicion): string {
  const region = listed.region === null ? '' : ` (${listed.region})`;
  return `${listed.provider} ${listed.model}${region}: ${tier} ${rateClass}: ${because}`;
}
