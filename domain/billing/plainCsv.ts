import { DomainError } from '../errors.js';
import { parseScaled } from '../money.js';
import { MICROS_PER_DAY, parseInstant } from '../period.js';
import { BILLED_CLASSES, type BilledClass, type BilledRow, QUANTITY_SCALE } from './billedRow.js';
import { categoryOfLabel } from './chargeCategory.js';
import { type FxRate, keepText, toPico } from './pageRow.js';

/** Columns of the plain CSV; the first five must be there. */
export const PLAIN_COLUMNS_REQUIRED = ['date', 'model', 'token_class', 'quantity', 'amount_usd'] as const;
export const PLAIN_COLUMNS_OPTIONAL = [
  'project',
  'api_key',
  'line_item',
  'service_tier',
  'currency',
] as const;

/** A record's cells by lower-case column name. */
export type PlainRecord = Record<string, string>;

/** A fault of one cell: the reader adds line and column number. */
export class CellFault extends DomainError {
  readonly column: string;

  constructor(column: string, sentence: string) {
    super('invalid_billing_file', sentence);
    this.column = column;
  }
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

function readDay(text: string): bigint {
  const instant = DAY.test(text) ? parseInstant(text) : undefined;
  if (!instant)
    throw new CellFault('date', `date must be a day such as 2026-01-31, not "${text.slice(0, 40)}"`);
  return instant.micros;
}

function readDecimal(record: PlainRecord, column: string): bigint | null {
  const text = record[column] ?? '';
  if (text === '') return null;
  const value = parseScaled(text, QUANTITY_SCALE);
  if (value === undefined)
    throw new CellFault(column, `${column} must be a decimal number, not "${text.slice(0, 40)}"`);
  return value;
}

/**
 * One record of a plain CSV → a cost row. An empty `quantity` means that the bill gives none. `amount_usd` is in
 * `currency` where that column names another. Error: CellFault naming the column.
 */
export function plainCsvRow(record: PlainRecord, fxRate: FxRate): BilledRow {
  const startMicros = readDay(record.date ?? '');
  const className = (record.token_class ?? '').toLowerCase();
  if (!(BILLED_CLASSES as readonly string[]).includes(className)) {
    throw new CellFault(
      'token_class',
      `token_class must be one of ${BILLED_CLASSES.join(', ')}, not "${className.slice(0, 40)}"`,
    );
  }
  const tokenClass = className as BilledClass;
  const original = readDecimal(record, 'amount_usd');
  if (original === null) throw new CellFault('amount_usd', 'amount_usd must be a decimal number, not empty');
  const quantity = readDecimal(record, 'quantity');
  if (quantity !== null && quantity < 0n && original >= 0n)
    throw new CellFault('quantity', 'quantity must not be negative');
  const currency = (record.currency || 'USD').toUpperCase();
  const model = record.model ? keepText(record.model) : null;
  const amountPico = toPico(original, currency, fxRate);
  const label = record.line_item || (model === null ? className : `${model}, ${className}`);
  const tier = (record.service_tier ?? '').toLowerCase();
  const recognised = model !== null && tokenClass !== 'other';
  return {
    feed: 'cost',
    report: '',
    account: null,
    day: record.date ?? '',
    periodStartMicros: startMicros,
    periodEndMicros: startMicros + MICROS_PER_DAY,
    chargeCategory: categoryOfLabel(label, recognised, amountPico),
    lineItem: keepText(label),
    observable: true,
    model,
    tokenClass,
    serviceTier: tier === '' || tier === 'default' || tier === 'batch' ? 'standard' : keepText(tier),
    isBatch: tier === '' ? null : tier === 'batch',
    longContext: null,
    region: null,
    project: record.project ? keepText(record.project) : null,
    apiKey: record.api_key ? keepText(record.api_key) : null,
    quantity: quantity === null || quantity < 0n ? null : quantity,
    quantityUnit:
      quantity === null
        ? null
        : tokenClass === 'requests'
          ? 'requests'
          : tokenClass === 'other'
            ? null
            : 'tokens',
    amountPico,
    currency,
    originalAmount: original,
  };
}
