import { DomainError } from '../../errors.js';
import { divideHalfEven } from '../../money.js';
import { parseInstant } from '../../period.js';
import { type BilledClass, type BilledRow, QUANTITY_ONE } from '../billedRow.js';
import {
  emptyRow,
  type FxRate,
  findScaled,
  findText,
  isPageObject,
  keepText,
  type PageObject,
  type PageValue,
  toPicoOrNull,
} from '../pageRow.js';
import type { DocumentContext, DocumentFormat } from './index.js';
import { timesOfDay } from './tableFormat.js';

/**
 * Mistral's monthly usage ("Usage metrics with the Admin API"): entries by category and model. Usage that a plan
 * covers is a credit.
 */
export const mistralUsage: DocumentFormat = {
  format: 'mistral_usage',
  name: 'a usage report of Mistral',
  looksLike: /"(?:billing_metric|vibe_usage|libraries_api)"\s*:/,
  isDocument: (document) =>
    Array.isArray(document.prices) && (isPageObject(document.completion) || isPageObject(document.chat)),
  read: (document, context) => ({ rows: readUsage(document, context) }),
};

/** Prices and entries have twelve more digits than amounts, since a token costs some hundred-millionths. */
const PRICE_SCALE = 24;

interface Price {
  metric: string;
  group: string;
  eventType: string | null;
  zone: string | null;
  tier: string | null;
  /** Price of one unit, in 1e-24. */
  amount: bigint;
}

const TOKEN_CLASSES: Readonly<Record<string, BilledClass>> = {
  input: 'input',
  output: 'output',
  cached: 'cache_read',
};
const TOKEN_EVENTS: ReadonlySet<string> = new Set(['api_tokens', 'tokens']);
/** Categories whose entries count tokens unless they name another unit. */
const TOKEN_CATEGORIES: ReadonlySet<string> = new Set(['chat', 'completion']);
/** Deepest nesting of an entry: `libraries_api.tokens.models.<model>.input[]`. */
const DEPTH_MAX = 8;

function readUsage(document: PageObject, { fxRate }: DocumentContext): BilledRow[] {
  const currency = (findText(document.currency) ?? '').toUpperCase();
  if (!/^[A-Z]{3}$/.test(currency))
    throw new DomainError('invalid_billing_file', 'currency must be three letters such as EUR');
  const prices = (document.prices as PageValue[]).flatMap(priceOf);
  const rows: BilledRow[] = [];
  for (const [category, value] of Object.entries(document)) {
    if (category === 'prices') continue;
    for (const entry of entriesOf(value, 0)) rows.push(...rowsOf(category, entry, prices, currency, fxRate));
  }
  return rows;
}

/** Every object inside a category that has a billing metric. */
function* entriesOf(value: PageValue | undefined, depth: number): Generator<PageObject> {
  if (depth > DEPTH_MAX) return;
  if (Array.isArray(value)) for (const item of value) yield* entriesOf(item, depth + 1);
  else if (isPageObject(value)) {
    if (findText(value.billing_metric) !== null) yield value;
    else for (const item of Object.values(value)) yield* entriesOf(item, depth + 1);
  }
}

function priceOf(value: PageValue): Price[] {
  if (!isPageObject(value)) return [];
  const metric = findText(value.billing_metric);
  const group = findText(value.billing_group);
  const amount = findScaled(value.price, PRICE_SCALE);
  if (metric === null || group === null || amount === undefined) return [];
  return [
    {
      metric,
      group,
      amount,
      eventType: findText(value.event_type),
      zone: findText(value.api_zone),
      tier: findText(value.service_tier),
    },
  ];
}

function rowsOf(
  category: string,
  entry: PageObject,
  prices: readonly Price[],
  currency: string,
  fxRate: FxRate,
): BilledRow[] {
  const metric = findText(entry.billing_metric) as string;
  const group = findText(entry.billing_group) ?? '';
  const label = `${metric}, ${group === '' ? category : group}`;
  const used = unitsOf(entry.value, label, 'value');
  const paid = entry.value_paid === undefined ? used : unitsOf(entry.value_paid, label, 'value_paid');
  if (used === 0n && paid === 0n) return [];
  const price = priceFor(entry, metric, group, prices);
  if (price === undefined && paid !== 0n)
    throw new DomainError('invalid_billing_file', `prices names no price for ${label.slice(0, 120)}`);
  const whole = amountOf(used, price ?? 0n);
  const covered = amountOf(used - paid, price ?? 0n);
  const row = usageRow(category, entry, label, used);
  const money = (amount: bigint) => ({
    amountPico: toPicoOrNull(amount, currency, fxRate),
    currency,
    originalAmount: amount,
  });
  const use: BilledRow = { ...row, ...money(whole), chargeCategory: whole < 0n ? 'adjustment' : 'usage' };
  if (covered === 0n) return [use];
  const credit: BilledRow = {
    ...row,
    ...money(-covered),
    chargeCategory: covered < 0n ? 'adjustment' : 'credit',
    lineItem: keepText(`${label}, covered by the plan`),
    model: null,
    tokenClass: 'other',
    quantity: null,
    quantityUnit: null,
  };
  return [use, credit];
}

/** The usage row of an entry, without its amount. */
function usageRow(category: string, entry: PageObject, label: string, used: bigint): BilledRow {
  const day = dayOfEntry(entry, label);
  const group = findText(entry.billing_group) ?? '';
  const event = findText(entry.event_type);
  const isToken = event === null ? TOKEN_CATEGORIES.has(category) : TOKEN_EVENTS.has(event);
  const tokenClass = isToken ? TOKEN_CLASSES[group] : undefined;
  const tier = findText(entry.service_tier);
  const isBatch = /batch/i.test(`${findText(entry.usage_type) ?? ''} ${tier ?? ''}`);
  const { periodStartMicros, periodEndMicros } = timesOfDay(day);
  return {
    ...emptyRow({ feed: 'cost', report: '' }, { startMicros: periodStartMicros, endMicros: periodEndMicros }),
    lineItem: keepText(label),
    // No call contains a count of pages, seconds and similar units.
    observable: tokenClass !== undefined,
    model: tokenClass === undefined ? null : keepText(findText(entry.billing_metric) as string),
    tokenClass: tokenClass ?? 'other',
    serviceTier: tier === null || /batch/i.test(tier) ? 'standard' : keepText(tier),
    isBatch: isBatch ? true : null,
    quantity: used < 0n ? null : used * QUANTITY_ONE,
    quantityUnit: tokenClass === undefined ? event : 'tokens',
  };
}

/** The best-fitting price: of the same event, then of the same zone and tier if both have one. */
function priceFor(
  entry: PageObject,
  metric: string,
  group: string,
  prices: readonly Price[],
): bigint | undefined {
  const event = findText(entry.event_type) ?? (TOKEN_CLASSES[group] ? 'api_tokens' : null);
  const zone = findText(entry.api_zone) ?? 'global';
  const tier = findText(entry.service_tier) ?? 'standard';
  const misfit = (price: Price) =>
    (price.zone !== null && price.zone !== zone ? 2 : 0) +
    (price.tier !== null && price.tier !== tier ? 1 : 0);
  const fitting = prices.filter(
    (price) =>
      price.metric === metric &&
      price.group === group &&
      (event === null || price.eventType === null || price.eventType === event),
  );
  return fitting.toSorted((a, b) => misfit(a) - misfit(b))[0]?.amount;
}

function amountOf(units: bigint, price: bigint): bigint {
  return divideHalfEven(units * price, 10n ** BigInt(PRICE_SCALE - 12));
}

function unitsOf(value: PageValue | undefined, label: string, field: string): bigint {
  const text = findScaled(value, 0);
  const exact = findScaled(value, 12);
  if (text !== undefined && exact === text * QUANTITY_ONE) return text;
  throw new DomainError('invalid_billing_file', `${field} of ${label.slice(0, 120)} must be a whole number`);
}

function dayOfEntry(entry: PageObject, label: string): string {
  const text = findText(entry.timestamp) ?? '';
  const instant = parseInstant(text.slice(0, 10));
  if (instant?.dateOnly) return text.slice(0, 10);
  throw new DomainError(
    'invalid_billing_file',
    `timestamp of ${label.slice(0, 120)} must be a day such as 2026-01-31, not "${text.slice(0, 40)}"`,
  );
}
