import { divideHalfEven } from '../../money.js';
import type { InvoiceLineReading, Maybe, ReadField, Scaled } from '../invoiceReading.js';
import { findProduct, statedUnitsOf } from '../productOf.js';
import type { Token } from './deskew.js';
import { CARRIED, CARRIED_WORDS, type ColumnRole } from './labels.js';
import type { Column, NumberedRow, TableRegion } from './lineTable.js';
import { halfUnit, isWithin, type NumberSpan, ONE } from './printedNumber.js';
import { fieldFrom } from './textRows.js';

/** A line before its classification. */
export type DraftLine = Omit<InvoiceLineReading, 'line' | 'kind' | 'model' | 'tokenClass'> & {
  /** Label of the row whose amount includes the line. */
  group: string | null;
};

/** Index of the column of the lines' amounts, the likeliest first. */
export type AmountChoice = 0 | 1 | 2;

interface Parts {
  quantity?: NumberSpan;
  unitPrice?: NumberSpan;
  taxRate?: NumberSpan;
  amount: NumberSpan;
}

/** A row at a greater distance from its line, in heights, is not part of the description. */
const WRAP_REACH = 2.6;
/** A quantity of one as recognition reads it; in any other column it is a ruled line. */
const LONE_STROKE = /^[iIlL|!]{1,2}[.:]?$/;
/** A number may lie beside its header by this many heights. */
const BESIDE_REACH = 3;
/** Gaps within this share of each other are equal: the row then belongs to the line above. */
const WRAP_TIE = 0.2;

/** The lines of a table. */
export function linesOf(table: TableRegion, choice: AmountChoice): DraftLine[] {
  const columns = table.columns.length > 0 ? amountColumnsOf(table) : undefined;
  const amountColumn = columns?.[choice] ?? columns?.[0];
  const parts = table.rows.map((row) =>
    columns === undefined
      ? partsByPlace(row, choice)
      : amountColumn && partsByHeader(row, table, amountColumn),
  );
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

/** Quantity, price and amount of a row below a header. */
function partsByHeader(row: NumberedRow, table: TableRegion, amountColumn: Column): Parts | undefined {
  const cells = assign(row, table);
  const amount = cells.get(amountColumn);
  // A row without a number in the amount column ends with a number of its description.
  if (!amount) return undefined;
  // A number far beside its header belongs to the description.
  const reach = row.row.height * BESIDE_REACH;
  const cell = (role: ColumnRole) =>
    [...cells].find(
      ([column, span]) =>
        column.role === role &&
        (role === 'quantity' || !LONE_STROKE.test(span.text)) &&
        span.right > column.left - reach &&
        span.left < column.right + reach,
    )?.[1];
  const quantity = cell('quantity');
  const unitPrice = cell('unitPrice');
  const taxRate = row.trailing.find((span) => span.isPercent);
  const parts: Parts = {
    amount,
    ...(quantity ? { quantity } : {}),
    ...(unitPrice ? { unitPrice } : {}),
    ...(taxRate ? { taxRate } : {}),
  };
  const per = statedUnitsOf(row.row.text);
  if (!quantity || !unitPrice || findProduct(quantity, unitPrice, amount, per)) return parts;
  const plain = row.trailing.filter((span) => !span.isPercent);
  return { ...parts, ...productAmong(plain, per, amount) };
}

/** Quantity, price and amount of a row without a header. The amount is counted from the right end. */
function partsByPlace(row: NumberedRow, choice: AmountChoice): Parts | undefined {
  const percent = row.trailing.find((span) => span.isPercent);
  const plain = row.trailing.filter((span) => !span.isPercent);
  const amount = plain.at(-1 - choice);
  if (!amount || !isMoney(amount)) return undefined;
  const at = plain.indexOf(amount);
  if (!isNetOf(amount, plain.slice(at + 1), percent)) return undefined;
  const before = plain.slice(0, at);
  const per = statedUnitsOf(row.row.text);
  const product = productAmong([...before, amount], per, amount);
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

/** Whether the numbers to the right of an amount are its tax and the amount with tax, and nothing else. */
function isNetOf(amount: NumberSpan, right: readonly NumberSpan[], rate: NumberSpan | undefined): boolean {
  const [first, second] = right;
  if (first === undefined) return true;
  if (second === undefined) return isGrossOf(first, amount, rate);
  return right.length === 2 && amount.value + first.value === second.value;
}

/** Whether a number is an amount with tax at this rate; a supplier may round either way. */
function isGrossOf(gross: NumberSpan, net: NumberSpan, rate: NumberSpan | undefined): boolean {
  const tax = divideHalfEven(net.value * (rate?.value ?? 0n), 100n * ONE);
  return isWithin(gross.value - net.value - tax, rate === undefined ? 0n : 2n * halfUnit(gross.decimals));
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

/** Assigns each number, except rates, to the column of its header; of two numbers in one column the closer one. */
function assign({ trailing }: NumberedRow, { columns }: TableRegion): Map<Column, NumberSpan> {
  const numeric = columns.filter((column) => column.role !== 'description');
  const found = new Map<Column, { span: NumberSpan; distance: number }>();
  for (const span of trailing.filter((one) => !one.isPercent)) {
    let best: { column: Column; distance: number } | undefined;
    for (const column of numeric) {
      const distance = distanceOf(span, column);
      if (!best || distance < best.distance) best = { column, distance };
    }
    const held = best && found.get(best.column);
    if (best && (!held || best.distance <= held.distance))
      found.set(best.column, { span, distance: best.distance });
  }
  return new Map([...found].map(([column, { span }]) => [column, span]));
}

/**
 * Columns that may hold the lines' amounts, the likeliest first. Only a column with the name of an amount qualifies, never
 * a unit price. The net amount is certain where most rows prove it: net + tax = gross.
 */
function amountColumnsOf(table: TableRegion): Column[] {
  const rows = table.rows.map((row) => ({
    cells: assign(row, table),
    rate: row.trailing.find((span) => span.isPercent),
  }));
  const isAmount = ({ role }: Column) => role === 'amount' || role === 'gross';
  const candidates = table.columns.filter(isAmount);
  const holds = (test: (row: (typeof rows)[number]) => boolean | undefined) => {
    const results = rows.map(test).filter((result) => result !== undefined);
    // A single row may be misread or wrong.
    return 2 * results.filter(Boolean).length > results.length;
  };
  const isNet = (net: Column): boolean => {
    const right = table.columns.filter(
      (column) => column.left > net.left && (isAmount(column) || column.role === 'taxAmount'),
    );
    return right.some(
      (gross) =>
        holds(({ cells, rate }) => {
          const [amount, whole] = [cells.get(net), cells.get(gross)];
          return amount && whole && rate && isGrossOf(whole, amount, rate);
        }) ||
        right.some(
          (tax) =>
            tax !== gross &&
            holds(({ cells }) => {
              const [amount, part, whole] = [cells.get(net), cells.get(tax), cells.get(gross)];
              return amount && part && whole && amount.value + part.value === whole.value;
            }),
        ),
    );
  };
  const net = candidates.find(isNet);
  if (net) return [net];
  const named = candidates.findLast(({ role }) => role === 'amount');
  return named ? [named, ...candidates.filter((column) => column !== named)] : candidates;
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
    quantity: numberField(parts.quantity) ?? impliedOne(parts, table),
    unitPrice: numberField(parts.unitPrice),
    amount: amountField(parts.amount),
    taxRate: numberField(parts.taxRate),
    periodStart: period ? fieldFrom(period.first, period.tokens) : null,
    periodEnd: period ? fieldFrom(period.last, period.tokens) : null,
    group: row.group?.label.replace(/\s+/g, ' ').trim() ?? null,
  };
}

/** Recognition often loses a single 1. A price that equals the amount implies it, if the table has quantities. */
function impliedOne({ unitPrice, amount }: Parts, table: TableRegion): Maybe<Scaled> {
  const isRecognised = amount.tokens[0]?.engine !== 'text';
  const hasQuantities = table.columns.some((column) => column.role === 'quantity');
  if (!isRecognised || !hasQuantities || unitPrice?.value !== amount.value) return null;
  return { ...fieldFrom(ONE, amount.tokens, ''), box: null, confidence: MENDED_CONFIDENCE };
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
