import { DomainError } from '../../errors.js';
import { parseInstant } from '../../period.js';
import { type BilledRow, type ChargeCategory, QUANTITY_SCALE } from '../billedRow.js';
import { parseBedrockUsageType } from '../grammars/bedrockUsageType.js';
import {
  currencyCodeOf,
  type FxRate,
  findScaled,
  findText,
  isPageObject,
  keepText,
  keepTextOrNull,
  type PageObject,
  type PageValue,
  toPicoOrNull,
} from '../pageRow.js';
import { awsCategory, awsUnitTokens } from './awsCur.js';
import type { DocumentContext, DocumentFormat } from './index.js';
import { timesOfDay } from './tableFormat.js';

/**
 * Cost Explorer's GetCostAndUsage by day. GroupDefinitions name the keys; the record type is a group or comes from
 * the request.
 */
export const awsCostExplorer: DocumentFormat = {
  format: 'aws_ce_pages',
  name: "an answer of AWS Cost Explorer's GetCostAndUsage",
  looksLike: /"ResultsByTime"\s*:\s*\[/,
  isDocument: (document) => Array.isArray(document.ResultsByTime),
  read: (document, context) => ({ rows: rowsOf(document, context) }),
};

/** Maximum remembered groups of a file, by which repeated groups are found. */
const SEEN_MAX = 200_000;

function rowsOf(document: PageObject, { fxRateOn, asked, seen }: DocumentContext): BilledRow[] {
  const keys = groupKeysOf(document.GroupDefinitions);
  if (!keys.includes('RECORD_TYPE') && asked === undefined)
    throw fault('the answer does not say of which RECORD_TYPE it is; group it by RECORD_TYPE');
  const results = document.ResultsByTime as PageValue[];
  return results.flatMap((result) => {
    if (!isPageObject(result)) throw fault('ResultsByTime must hold objects');
    const day = dayOf(result);
    const groups = Array.isArray(result.Groups) ? result.Groups : [];
    if (groups.length === 0 && hasTotal(result.Total))
      throw fault(`${day} has a total and no groups; group the answer by USAGE_TYPE and SERVICE`);
    const isFinal = result.Estimated === false ? true : result.Estimated === true ? false : null;
    return groups.map((group) => {
      checkOnce(`${day}|${keys.join()}|`, group, seen);
      return rowOf(group, keys, { day, isFinal, fxRate: fxRateOn(day), asked });
    });
  });
}

/** An answer has each group of a day once; two equal groups mean that an answer was sent twice. */
function checkOnce(place: string, group: PageValue, seen: Set<string>): void {
  if (!isPageObject(group) || !Array.isArray(group.Keys) || seen.size >= SEEN_MAX) return;
  const name = `${place}${JSON.stringify(group.Keys)}`;
  if (seen.has(name))
    throw fault(`a group of ${place.slice(0, 10)} occurs twice; give each page of an answer once`);
  seen.add(name);
}

/** Upper-case keys in the order in which groups name their values. */
function groupKeysOf(definitions: PageValue | undefined): string[] {
  if (!Array.isArray(definitions)) return [];
  return definitions.map((one) => (isPageObject(one) ? (findText(one.Key) ?? '') : '').toUpperCase());
}

function hasTotal(total: PageValue | undefined): boolean {
  return isPageObject(total) && Object.keys(total).length > 0;
}

function dayOf(result: PageObject): string {
  const { TimePeriod: period } = result;
  const start = isPageObject(period) ? findText(period.Start) : null;
  const end = isPageObject(period) ? findText(period.End) : null;
  const from = start === null ? undefined : parseInstant(start);
  const to = end === null ? undefined : parseInstant(end);
  if (!start || !from?.dateOnly || !to?.dateOnly)
    throw fault('a result has no TimePeriod of whole days; ask with Granularity DAILY');
  if (to.micros - from.micros !== 86_400_000_000n)
    throw fault(`the result of ${start} is of more than a day; ask with Granularity DAILY`);
  return start;
}

interface Place {
  day: string;
  isFinal: boolean | null;
  fxRate: FxRate;
  asked: ChargeCategory | undefined;
}

function rowOf(group: PageValue, keys: readonly string[], place: Place): BilledRow {
  if (!isPageObject(group) || !Array.isArray(group.Keys) || !isPageObject(group.Metrics))
    throw fault(`a group of ${place.day} has no keys and metrics`);
  const values = group.Keys;
  const of = (key: string): string | null => {
    const at = keys.indexOf(key);
    return at < 0 ? null : findText(values[at]);
  };
  const cost = metricOf(group.Metrics, 'UnblendedCost');
  if (cost.amount === undefined) throw fault(`a group of ${place.day} has no UnblendedCost`);
  const net = metricOf(group.Metrics, 'NetUnblendedCost');
  const usage = metricOf(group.Metrics, 'UsageQuantity');
  const recordType = of('RECORD_TYPE');
  const category =
    recordType !== null ? awsCategory(recordType, cost.amount) : correctionOf(place.asked, cost.amount);
  const service = of('SERVICE') ?? '';
  const usageType = of('USAGE_TYPE') ?? '';
  const label = parseBedrockUsageType(usageType, /\(.*\)/.test(service) ? service : '');
  const isUsage = category === 'usage' && usageType !== '';
  const unitTokens = isUsage ? awsUnitTokens(usage.unit, label) : undefined;
  const quantity = isUsage && usage.amount !== undefined && usage.amount >= 0n ? usage.amount : null;
  const currency = currencyCodeOf(cost.unit, `the Unit of UnblendedCost of ${place.day}`);
  return {
    feed: 'cost',
    report: '',
    account: null,
    day: place.day,
    ...timesOfDay(place.day),
    chargeCategory: category,
    lineItem: keepText(usageType || service || recordType || '(no usage type)'),
    observable: label.observable,
    model: isUsage ? label.model : null,
    tokenClass: isUsage ? label.tokenClass : 'other',
    serviceTier: isUsage ? label.serviceTier : 'standard',
    isBatch: isUsage ? label.isBatch : null,
    longContext: isUsage ? label.longContext : null,
    region: null,
    project: keepTextOrNull(of('LINKED_ACCOUNT')),
    apiKey: null,
    quantity: quantity === null ? null : quantity * (unitTokens ?? 1n),
    quantityUnit:
      quantity === null ? null : unitTokens === undefined ? keepTextOrNull(usage.unit ?? null) : 'tokens',
    amountPico: toPicoOrNull(cost.amount, currency, place.fxRate),
    listPico: null,
    contractedPico: null,
    netPico: net.amount === undefined ? null : toPicoOrNull(net.amount, currency, place.fxRate),
    currency,
    originalAmount: cost.amount,
    isFinal: place.isFinal,
  };
}

/** A negative usage amount is an adjustment, not usage. */
function correctionOf(asked: ChargeCategory | undefined, amount: bigint): ChargeCategory {
  if (asked === undefined) return 'adjustment';
  return asked === 'usage' && amount < 0n ? 'adjustment' : asked;
}

function metricOf(metrics: PageObject, name: string): { amount?: bigint; unit?: string } {
  const metric = metrics[name];
  if (!isPageObject(metric)) return {};
  const amount = findScaled(metric.Amount, QUANTITY_SCALE);
  const unit = findText(metric.Unit);
  return {
    ...(amount === undefined ? {} : { amount }),
    ...(unit === null || unit === 'N/A' ? {} : { unit }),
  };
}

function fault(reason: string): DomainError {
  return new DomainError('invalid_billing_file', reason);
}
