import { divideHalfEven, type Pico, parseScaled } from '../../money.js';
import { parseInstant } from '../../period.js';
import { type BilledRow, type ChargeCategory, QUANTITY_ONE, QUANTITY_SCALE } from '../billedRow.js';
import { pacificDayOf } from '../billingDay.js';
import { parseGoogleSku } from '../grammars/googleSku.js';
import { type ParsedLabel, UNKNOWN_LABEL } from '../grammars/parsedLabel.js';
import { type FxRate, keepText, toPicoOrNull } from '../pageRow.js';
import {
  CellFault,
  cellOf,
  currencyOf,
  decimalOf,
  type PlainCharge,
  reportOfInvoice,
  requiredDecimal,
  type TableFormat,
  type TableRecord,
  textOf,
} from './tableFormat.js';

/**
 * Google Cloud's BigQuery billing export as JSON lines or CSV. Queries join nested names with a dot or an
 * underscore.
 */
const nested = (...path: string[]) => [path.join('.'), path.join('_')] as const;
const COLUMNS = {
  account: ['billing_account_id'],
  service: [...nested('service', 'description'), 'service'],
  sku: [...nested('sku', 'description'), 'sku'],
  start: ['usage_start_time'],
  end: ['usage_end_time'],
  project: nested('project', 'id'),
  cost: ['cost'],
  listCost: ['cost_at_list'],
  costType: ['cost_type'],
  currency: ['currency'],
  rate: ['currency_conversion_rate'],
  amount: nested('usage', 'amount'),
  unit: nested('usage', 'unit'),
  credits: ['credits'],
  month: nested('invoice', 'month'),
  adjustment: nested('adjustment_info', 'id'),
} as const;

const REQUIRED = [
  'service.description',
  'sku.description',
  'usage_start_time',
  'cost',
  'invoice.month',
] as const;

const has = (columns: ReadonlySet<string>, names: readonly string[]) =>
  names.some((name) => columns.has(name));

export const googleBillingExport: TableFormat = {
  format: 'google_billing_export',
  name: 'a Google Cloud billing export',
  required: REQUIRED,
  reads: new Set<string>(Object.values(COLUMNS).flat()),
  isHeader: (columns) =>
    has(columns, COLUMNS.service) &&
    has(columns, COLUMNS.sku) &&
    has(columns, COLUMNS.start) &&
    has(columns, COLUMNS.cost) &&
    !columns.has('chargeperiodstart'),
  rowsOf: (record, { fxRate }) => (isModelCharge(record) ? rowsOf(record, fxRate) : null),
  chargeOf: chargesOf,
};

/** Services that bill only models; Vertex AI, below, bills machines too. */
const MODEL_SERVICES = /^(?:gemini api|generative language api|claude\b.*|anthropic\b.*)$/i;
const VERTEX = /^vertex ai(?: api)?$/i;
const MODEL_SKUS =
  /\b(?:gemini|gemma|claude|embeddings?|llama|mistral|palm|imagen|veo|grounding|provisioned throughput|tokens?|predictions)\b/i;

function isModelCharge(record: TableRecord): boolean {
  const service = cellOf(record, COLUMNS.service) ?? '';
  if (MODEL_SERVICES.test(service)) return true;
  return VERTEX.test(service) && MODEL_SKUS.test(cellOf(record, COLUMNS.sku) ?? '');
}

/** A cost and its credits in the export. Google's net amount is their sum; credits do not make usage cheaper. */
function chargesOf(record: TableRecord): PlainCharge[] {
  const currency = currencyOf(record, COLUMNS.currency);
  const amount = requiredDecimal(record, COLUMNS.cost);
  const credits = creditsOf(record).reduce((sum, credit) => sum + credit.amount, 0n);
  return [
    { chargeCategory: categoryOf(record, amount), currency, amount },
    ...(credits === 0n ? [] : [{ chargeCategory: 'credit' as const, currency, amount: credits }]),
  ];
}

function rowsOf(record: TableRecord, fxRate: FxRate): BilledRow[] {
  const times = timesOf(record);
  const day = pacificDayOf(times.periodStartMicros);
  const currency = currencyOf(record, COLUMNS.currency);
  const original = requiredDecimal(record, COLUMNS.cost);
  const sku = cellOf(record, COLUMNS.sku) ?? '(no SKU)';
  const credits = creditsOf(record);
  const convert = converter(record, currency, fxRate);
  const net = credits.reduce((sum, { amount }) => sum + amount, original);
  const label = labelOf(record, sku);
  const list = decimalOf(record, COLUMNS.listCost);
  const base = {
    feed: 'cost' as const,
    report: reportOf(record, day),
    account: textOf(record, COLUMNS.account),
    day,
    ...times,
    project: textOf(record, COLUMNS.project),
    apiKey: null,
    currency,
    isFinal: null,
  };
  const cost: BilledRow = {
    ...base,
    chargeCategory: categoryOf(record, original),
    lineItem: keepText(sku),
    ...partsOf(label),
    ...countOf(record, label),
    amountPico: convert(original),
    listPico: list === null ? null : convert(list),
    contractedPico: null,
    netPico: convert(net),
    originalAmount: original,
  };
  return [
    cost,
    ...credits.map(
      ({ name, amount }): BilledRow => ({
        ...base,
        chargeCategory: 'credit',
        lineItem: keepText(name),
        ...partsOf(UNKNOWN_LABEL),
        quantity: null,
        quantityUnit: null,
        amountPico: convert(amount),
        listPico: null,
        contractedPico: null,
        netPico: null,
        originalAmount: amount,
      }),
    ),
  ];
}

function partsOf(label: ParsedLabel) {
  const { observable, model, tokenClass, serviceTier, isBatch, longContext, region } = label;
  return { observable, model, tokenClass, serviceTier, isBatch, longContext, region };
}

/** Units of tokens, which are counted one by one; any other unit is not a token. */
const TOKEN_UNITS: ReadonlySet<string> = new Set(['count', 'token', 'tokens', 'request', 'requests']);

function labelOf(record: TableRecord, sku: string): ParsedLabel {
  const label = parseGoogleSku(sku);
  const unit = cellOf(record, COLUMNS.unit)?.toLowerCase();
  const isToken = unit === undefined || TOKEN_UNITS.has(unit);
  return label.recognised && label.observable && !isToken ? UNKNOWN_LABEL : label;
}

function countOf(record: TableRecord, label: ParsedLabel): Pick<BilledRow, 'quantity' | 'quantityUnit'> {
  const quantity = decimalOf(record, COLUMNS.amount);
  if (quantity === null || quantity < 0n) return { quantity: null, quantityUnit: null };
  const isTokens = label.recognised && label.observable;
  return { quantity, quantityUnit: isTokens ? 'tokens' : textOf(record, COLUMNS.unit) };
}

function timesOf(record: TableRecord): { periodStartMicros: bigint; periodEndMicros: bigint } {
  const start = timeOf(record, COLUMNS.start);
  if (start === undefined)
    throw new CellFault('usage_start_time', 'usage_start_time must be a time, not empty');
  const end = timeOf(record, COLUMNS.end) ?? start + 3_600_000_000n;
  return { periodStartMicros: start, periodEndMicros: end > start ? end : start + 1n };
}

/** `2026-03-08 09:00:00 UTC`, as BigQuery writes times, or ISO 8601. */
function timeOf(record: TableRecord, columns: readonly string[]): bigint | undefined {
  const text = cellOf(record, columns);
  if (text === undefined) return undefined;
  const instant = parseInstant(text.replace(/ ?(?:UTC|Z)$/, 'Z'));
  if (instant) return instant.micros;
  throw new CellFault(
    columns[0] ?? '',
    `${columns[0]} must be a time such as 2026-01-31 08:00:00 UTC, not "${text.slice(0, 40)}"`,
  );
}

/**
 * '' for charges on the month's own invoice. Late usage gets another report name, so that neither export replaces
 * the other.
 */
function reportOf(record: TableRecord, day: string): string {
  const text = cellOf(record, COLUMNS.month);
  if (text === undefined) return '';
  const [, year, month] = /^(\d{4})-?(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined)
    throw new CellFault(
      'invoice.month',
      `invoice.month must be a month such as 202601, not "${text.slice(0, 40)}"`,
    );
  return day.startsWith(`${year}-${month}`) ? '' : reportOfInvoice(`${year}-${month}`);
}

const CATEGORIES: Readonly<Record<string, ChargeCategory>> = {
  regular: 'usage',
  tax: 'tax',
  adjustment: 'adjustment',
  rounding_error: 'adjustment',
};

function categoryOf(record: TableRecord, amount: bigint): ChargeCategory {
  const type = (cellOf(record, COLUMNS.costType) ?? 'regular').toLowerCase();
  const category = CATEGORIES[type] ?? 'adjustment';
  const isCorrection = amount < 0n || cellOf(record, COLUMNS.adjustment) !== undefined;
  return category === 'usage' && isCorrection ? 'adjustment' : category;
}

/** `currency_conversion_rate` is the currency's units per US dollar; it counts before the given rate. */
function converter(record: TableRecord, currency: string, fxRate: FxRate): (amount: bigint) => Pico | null {
  const rate = currency === 'USD' ? null : decimalOf(record, COLUMNS.rate);
  if (rate === null) return (amount) => toPicoOrNull(amount, currency, fxRate);
  if (rate <= 0n)
    throw new CellFault('currency_conversion_rate', 'currency_conversion_rate must be above zero');
  return (amount) => divideHalfEven(amount * QUANTITY_ONE, rate);
}

interface Credit {
  name: string;
  amount: bigint;
}

/** An amount in the text of the credits: a JSON number or its text. */
const CREDIT_AMOUNT = /"amount"\s*:\s*"?(-?[\d.]+(?:[eE][+-]?\d+)?)"?/;
const CREDIT_NAME = /"(?:full_name|name)"\s*:\s*"((?:[^"\\]|\\.)*)"/;

/** The credits of a record: a JSON array of `{name, amount, type}`. Error CellFault. */
function creditsOf(record: TableRecord): Credit[] {
  const text = cellOf(record, COLUMNS.credits);
  if (text === undefined || text === '[]') return [];
  const plain = parseScaled(text, QUANTITY_SCALE);
  // A query may have summed the credits.
  if (plain !== undefined) return plain === 0n ? [] : [{ name: 'credits', amount: plain }];
  const objects = objectsOf(text);
  if (!objects)
    throw new CellFault(
      'credits',
      'credits must be a JSON array of objects with name and amount, or a number',
    );
  return objects.map((object) => {
    const amount = parseScaled(CREDIT_AMOUNT.exec(object)?.[1] ?? '', QUANTITY_SCALE);
    if (amount === undefined) throw new CellFault('credits', 'a credit must have an amount');
    return { name: CREDIT_NAME.exec(object)?.[1] ?? 'credit', amount };
  });
}

/** The texts of the objects of a JSON array; undefined: the text is no such array. */
function objectsOf(text: string): string[] | undefined {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(whole) || whole.some((item) => typeof item !== 'object' || item === null))
    return undefined;
  // JSON.parse would convert amounts to doubles, so their digits are read from the text of each object.
  const objects: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '"') at = endOfString(text, at);
    else if (sign === '{') {
      if (depth === 0) from = at;
      depth += 1;
    } else if (sign === '}') {
      depth -= 1;
      if (depth === 0) objects.push(text.slice(from, at + 1));
    }
  }
  return objects;
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}
