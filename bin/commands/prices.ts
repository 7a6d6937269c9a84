import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Command, Option } from 'commander';
import { readPriceCollection } from '../../adapters/prices/readPriceCollection.js';
import type { Database } from '../../db/client.js';
import { decimalFromPico } from '../../domain/money.js';
import { dayOf, microsFromDate } from '../../domain/period.js';
import {
  type CollectionDifferences,
  factorText,
  type ModelDifference,
  type RateDifference,
  type Suspicion,
} from '../../domain/pricing/imports/differences.js';
import type { Provider } from '../../domain/providers.js';
import { StartError } from '../../platform/startError.js';
import {
  type PriceImportOptions,
  previewPriceImport,
  storePriceImport,
} from '../../usecases/pricing/priceImport.js';
import { withToolDatabase } from '../service/toolDatabase.js';
import { dayOption, print, providerOption, type Terminal } from '../terminal/terminal.js';

interface PriceImportFlags {
  provider?: Provider;
  effectiveFrom?: string;
  retrieved?: string;
  dryRun?: boolean;
  yes?: boolean;
  acceptJumps?: boolean;
  acceptSuspicious?: boolean;
}

/** Imports list prices from a public collection, after showing the changes. */
export function command(terminal: Terminal): Command {
  return new Command('prices').addCommand(
    new Command('import')
      .description('show what a price collection would change, ask, and import it')
      .argument('<file>', "LiteLLM's model_prices_and_context_window.json or models.dev's api.json")
      .addOption(providerOption("that provider's prices only"))
      .addOption(dayOption('effective-from', 'first UTC day of the new prices (today)'))
      .addOption(dayOption('retrieved', 'the day on which the file was fetched (the day of the file)'))
      .addOption(new Option('--dry-run', 'show the differences and store nothing').conflicts('yes'))
      .option('--yes', 'ask nothing; refused where a rate more than doubles or halves')
      .option('--accept-jumps', 'with --yes: take these too')
      .option('--accept-suspicious', 'take rates that look wrong too; else their models are left out')
      .action((file: string, asked: PriceImportFlags) =>
        withToolDatabase(terminal.readConfig(), (database) => importPrices(database, file, asked, terminal)),
      ),
  );
}

/** Largest collection, bytes; the largest known one has 2 MB. */
const FILE_BYTES_MAX = 67_108_864;

/**
 * Shows the changes of a price collection, asks, and imports it.
 * @throws StartError for a file that cannot be read, and without a terminal to ask on.
 */
async function importPrices(
  database: Database,
  file: string,
  asked: PriceImportFlags,
  terminal: Terminal,
): Promise<void> {
  const options = await readOptions(file, asked, terminal.now());
  const preview = await previewPriceImport(database, options);
  const taken = preview.differences.models.filter(
    (model) => asked.acceptSuspicious || model.suspicions.length === 0,
  );
  const say = (text: string) => print(terminal, text);
  say(describeDifferences(options, preview.differences, taken));
  if (taken.length === 0) return void say('Nothing to import.');
  if (asked.dryRun) return void say('Nothing was stored (--dry-run).');
  if (!(await isWanted(asked, taken, terminal))) return void say('Nothing was stored.');
  const version = await storePriceImport(database, options, preview, taken);
  if (version === undefined)
    throw new StartError('The prices have changed while you were looking: nothing was stored; start again.');
  say(`Imported. The prices are now ${version}; a running service takes them up within seconds.`);
}

async function readOptions(file: string, asked: PriceImportFlags, now: Date): Promise<PriceImportOptions> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${file} is no file that can be read.`);
  if (found.size > FILE_BYTES_MAX) throw new StartError(`${file} is larger than ${FILE_BYTES_MAX} bytes.`);
  const bytes = await readFile(file);
  try {
    return {
      collection: readPriceCollection(bytes),
      filename: basename(file).slice(0, 255),
      fileSha256: createHash('sha256').update(bytes).digest('hex'),
      retrievedOn: asked.retrieved ?? dayOf(microsFromDate(found.mtime)),
      effectiveFrom: asked.effectiveFrom ?? dayOf(microsFromDate(now)),
      provider: asked.provider,
    };
  } catch (error) {
    throw error instanceof RangeError ? new StartError(`${file}: ${error.message}.`) : error;
  }
}

async function isWanted(
  asked: PriceImportFlags,
  taken: readonly ModelDifference[],
  terminal: Terminal,
): Promise<boolean> {
  const jumps = taken.filter((model) => model.isJump);
  if (asked.yes) {
    if (jumps.length === 0 || asked.acceptJumps) return true;
    const names = jumps.slice(0, 5).map(({ listed }) => `${listed.provider} ${listed.model}`);
    throw new StartError(
      `Nothing was stored: ${jumps.length} models have a rate that more than doubles or halves (${names.join(', ')}). Give --accept-jumps when that is right.`,
    );
  }
  if (!terminal.isInteractive)
    throw new StartError(
      'Nothing was stored: this terminal cannot ask for confirmation. Use --yes, or --dry-run to look only.',
    );
  const ask = createInterface({ input: terminal.input, output: terminal.output });
  try {
    const warning = jumps.length === 0 ? '' : ` ${jumps.length} of them jump.`;
    const answer = await ask.question(`Import these ${taken.length} prices?${warning} [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    ask.close();
  }
}

/** Most lines of one part of the report; omitted lines are counted. */
const LINES_MAX = 200;
const MISSING_MAX = 20;

/**
 * The changes of an import, for a person to decide on: new and changed prices rate by rate, suspicious entries, and
 * unchanged ones.
 */
function describeDifferences(
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
      'priced now and not in the file: kept',
      differences.missing.map((one) => `${one.provider} ${one.model}`),
      MISSING_MAX,
    ),
    `\n${taken.length} to import, ${differences.sameModels} as they are, ${differences.weighedRates} rates differ as they did when the shipped list was made and are kept.`,
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
