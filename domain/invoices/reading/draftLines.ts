import type { InvoiceLineReading, Maybe, ReadField, Scaled } from '../invoiceReading.js';
import { findProduct, statedUnitsOf } from '../productOf.js';
import type { Token } from './deskew.js';
import { CARRIED, CARRIED_WORDS, type ColumnRole } from './labels.js';
import type { NumberedRow, TableRegion } from './lineTable.js';
import type { NumberSpan } from './printedNumber.js';
import { fieldFrom } from './textRows.js';

/** A line before its classification. */
export type DraftLine = Omit<InvoiceLineReading, 'line' | 'kind' | 'model' | 'tokenClass'> & {
  /** Label of the row whose amount includes the line. */
  group: string | null;
};

/** The column of the lines' amounts: chosen by the header, or counted from the right end. */
export type AmountChoice = 'header' | 0 | 1 | 2;

interface Parts {
  quantity?: NumberSpan;
  unitPrice?: NumberSpan;
  taxRate?: NumberSpan;
  amount: NumberSpan;
}

/** A row at a greater distance from its line, in heights, is not part of the description. */
const WRAP_REACH = 2.6;
/** Gaps within this share of each other are equal: the row then belongs to the line above. */
const WRAP_TIE = 0.2;

/** The lines of a table. */
export function linesOf(table: TableRegion, choice: AmountChoice): DraftLine[] {
  const parts = table.rows.map((row) => partsOf(row, table, choice));
  const owners = ownersOf(table.rows, parts);
  const lines: DraftLine[] = [];
  table.rows.forEach((row, at) => {
    const own = parts[at];
    if (!own || CARRIED.test(row.label.trim()) || isCarried(at, table.rows, lines)) return;
    if (row.trailing.length === 1 && CARRIED_WORDS.test(row.label)) return;
    const others = table.rows.filter((_, index) => index !== at && owners[index] === at);
    lines.push(lineFrom(row, own, others, table));
  });
  return lines;
}

/** Whether an amount without a label carries the sum of the lines above it to the next page. */
function isCarried(at: number, rows: readonly NumberedRow[], lines: readonly DraftLine[]): boolean {
  const row = rows[at] as NumberedRow;
  const amount = row.trailing.at(-1);
  if (row.label.trim() !== '' || row.trailing.length > 1 || !amount) return false;
  const isNear = (other: NumberedRow | undefined) =>
    other !== undefined &&
    other.row.page === row.row.page &&
    Math.abs(other.row.middle - row.row.middle) < row.row.height * 1.2;
  const beside = [rows[at - 1], rows[at + 1]].filter(isNear);
  const sum = lines.reduce((total, line) => total + line.amount.value, 0n);
  return sum === amount.value || beside.some((other) => CARRIED_WORDS.test(other?.label ?? ''));
}

/** Quantity, price and amount among the numbers that end a row. */
function partsOf(row: NumberedRow, table: TableRegion, choice: AmountChoice): Parts | undefined {
  const spans = row.trailing;
  if (spans.length === 0) return undefined;
  const byHeader = choice === 'header' && table.columns.length > 0 ? assign(spans, table) : undefined;
  const percent = spans.find((span) => span.isPercent);
  const plain = spans.filter((span) => !span.isPercent);
  const per = statedUnitsOf(row.row.text);
  if (byHeader?.amount && !byHeader.amount.isPercent) {
    const { quantity, unitPrice, amount } = byHeader;
    const parts: Parts = {
      ...byHeader,
      amount,
      ...(byHeader.taxRate || !percent ? {} : { taxRate: percent }),
    };
    if (!quantity || !unitPrice || findProduct(quantity, unitPrice, amount, per)) return parts;
    const better = productAmong(plain, per, amount);
    return better ? { ...parts, ...better } : parts;
  }
  // A row without a number in the amount column ends with a number of its description.
  if (choice === 'header' && table.columns.length > 0) return undefined;
  const amount = plain.at(-1 - (choice === 'header' ? 0 : choice));
  if (!amount || !isMoney(amount)) return undefined;
  const before = plain.slice(0, plain.indexOf(amount));
  const product = productAmong(plain, per, amount) ?? productAmong(plain, per);
  const [first, second] = before.slice(-2);
  const guess =
    second !== undefined && first !== undefined && first.currency === null
      ? { quantity: first, unitPrice: second }
      : first === undefined || second !== undefined
        ? {}
        : isMoney(first)
          ? { unitPrice: first }
          : { quantity: first };
  return { amount, ...(product ?? guess), ...(percent ? { taxRate: percent } : {}) };
}

const isMoney = (span: NumberSpan): boolean => span.currency !== null || span.decimals >= 2;

function productAmong(
  spans: readonly NumberSpan[],
  per: bigint | null,
  fixed?: NumberSpan,
): { quantity: NumberSpan; unitPrice: NumberSpan; amount: NumberSpan } | undefined {
  for (const amount of fixed ? [fixed] : spans.toReversed())
    for (const [at, quantity] of spans.entries())
      for (const unitPrice of spans.slice(at + 1)) {
        if (quantity === amount || unitPrice === amount || amount.value === 0n) continue;
        if (quantity.currency !== null && unitPrice.currency === null) continue;
        if (findProduct(quantity, unitPrice, amount, per)) return { quantity, unitPrice, amount };
      }
  return undefined;
}

/** Assigns each number to the column of its header; of two numbers in one column the closer one. */
function assign(spans: readonly NumberSpan[], table: TableRegion): Partial<Parts> {
  const found = new Map<ColumnRole, { span: NumberSpan; distance: number }>();
  const amounts = table.columns.filter((column) => column.role === 'amount');
  // Of several amounts the last one is meant, unless it contains the tax.
  const amountColumn = amounts.at(-1) ?? table.columns.find((column) => column.role === 'gross');
  for (const span of spans) {
    let best: { role: ColumnRole; distance: number; isAmount: boolean } | undefined;
    for (const column of table.columns) {
      if (column.role === 'description') continue;
      const distance = distanceOf(span, column);
      if (!best || distance < best.distance)
        best = { role: column.role, distance, isAmount: column === amountColumn };
    }
    if (!best) continue;
    const role = best.isAmount ? 'amount' : best.role === 'amount' ? 'gross' : best.role;
    const held = found.get(role);
    if (!held || best.distance <= held.distance) found.set(role, { span, distance: best.distance });
  }
  const parts: Partial<Parts> = {};
  for (const role of ['quantity', 'unitPrice', 'taxRate', 'amount'] as const) {
    const span = found.get(role)?.span;
    if (span) parts[role] = span;
  }
  if (parts.taxRate && !parts.taxRate.isPercent) delete parts.taxRate;
  return parts;
}

/**
 * Distance in points between a number and a header: of their left edges, right edges or middles, the closest pair. A
 * number below the header is always closer than one beside it.
 */
function distanceOf(span: { left: number; right: number }, column: { left: number; right: number }): number {
  const isBeside = span.right < column.left || span.left > column.right;
  return (
    (isBeside ? PAGE_POINTS : 0) +
    Math.min(
      Math.abs(span.right - column.right),
      Math.abs(span.left - column.left),
      Math.abs((span.left + span.right - column.left - column.right) / 2),
    )
  );
}

/** More than any page is wide. */
const PAGE_POINTS = 20_000;

/** For each row the index of its line's row: its own, the nearest, or undefined. */
function ownersOf(
  rows: readonly NumberedRow[],
  parts: readonly (Parts | undefined)[],
): (number | undefined)[] {
  const isLine = (at: number) => parts[at] !== undefined;
  const owners: (number | undefined)[] = rows.map((_, at) => (isLine(at) ? at : undefined));
  rows.forEach((row, at) => {
    if (isLine(at)) return;
    const above = owners[at - 1];
    const below = rows.findIndex((_, index) => index > at && isLine(index));
    const gapAbove = above === undefined ? Infinity : gapBetween(rows[at - 1], row);
    const gapBelow = below < 0 ? Infinity : gapBetween(row, rows[at + 1]);
    const reach = row.row.height * WRAP_REACH;
    if (gapAbove <= reach && gapAbove <= gapBelow * (1 + WRAP_TIE)) owners[at] = above;
    else if (gapBelow <= reach && below >= 0) owners[at] = below;
  });
  return owners;
}

function gapBetween(upper: NumberedRow | undefined, lower: NumberedRow | undefined): number {
  if (!upper || !lower || upper.row.page !== lower.row.page) return Infinity;
  return lower.row.middle - upper.row.middle;
}

function lineFrom(
  row: NumberedRow,
  parts: Parts,
  others: readonly NumberedRow[],
  table: TableRegion,
): DraftLine {
  const first = [parts.quantity, parts.unitPrice, parts.taxRate, parts.amount]
    .filter((span) => span !== undefined)
    .sort((a, b) => a.left - b.left)[0];
  const isBefore = (token: Token) => first === undefined || token.right <= first.left + 0.01;
  const all = [row, ...others].sort((a, b) => a.row.middle - b.row.middle || a.row.page - b.row.page);
  const isPeriodRow = (one: NumberedRow) =>
    one !== row &&
    one.dates.some((date) => date.isRange) &&
    one.row.text.replace(/[^\p{L}\d]/gu, '').length <= datesLength(one) + 8;
  // A row with only a period has precedence over a column, and a column over the description.
  const period =
    [...all.filter(isPeriodRow), row, ...others].flatMap((one) => one.dates).find((date) => date.isRange) ??
    dayColumn(row, table);
  const words = all
    .filter((one) => !isPeriodRow(one))
    .flatMap((one) => (one === row ? row.row.tokens.filter(isBefore) : one.row.tokens));
  return {
    description: fieldFrom(cleaned(words), words),
    quantity: numberField(parts.quantity),
    unitPrice: numberField(parts.unitPrice),
    amount: amountField(parts.amount),
    taxRate: numberField(parts.taxRate),
    periodStart: period ? fieldFrom(period.first, period.tokens) : null,
    periodEnd: period ? fieldFrom(period.last, period.tokens) : null,
    group: row.group?.label.replace(/\s+/g, ' ').trim() ?? null,
  };
}

function dayColumn(row: NumberedRow, table: TableRegion) {
  return table.columns.some((column) => column.role === 'period') ? row.dates[0] : undefined;
}

function datesLength(row: NumberedRow): number {
  return row.dates.reduce(
    (sum, date) =>
      sum +
      date.tokens
        .map((token) => token.text)
        .join('')
        .replace(/[^\p{L}\d]/gu, '').length,
    0,
  );
}

function cleaned(words: readonly Token[]): string {
  return words
    .map((word) => word.text)
    .join(' ')
    .replaceAll('\0', '-')
    .trim();
}

/** Confidence of a number with letters in place of digits. */
const MENDED_CONFIDENCE = 0.4;

function numberField(span: NumberSpan | undefined): Maybe<Scaled> {
  return span === undefined ? null : amountField(span);
}

export function amountField(span: NumberSpan): ReadField<Scaled> {
  // The confidence of a currency sign does not apply to the digits.
  const digits = span.tokens.filter((token) => /\d/.test(token.text));
  const confidence = Math.min(1, ...digits.map((token) => token.confidence));
  const field = { ...fieldFrom(span.value, span.tokens, span.text), confidence };
  return span.isMended ? { ...field, confidence: Math.min(field.confidence, MENDED_CONFIDENCE) } : field;
}
