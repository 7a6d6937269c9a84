import type { Token } from './deskew.js';
import { COLUMN_LABELS, type ColumnRole, type SumRole, sumRoleOf } from './labels.js';
import { joinGroups, mendedNumbersIn, mendSigns, withCents } from './mendedNumbers.js';
import { type DateOrder, findDate, type PrintedDate } from './printedDate.js';
import { type DecimalMark, halfUnit, isWithin, type NumberSpan, numbersIn } from './printedNumber.js';
import { CELL_GAP, type Row, textOf, tokensAt } from './textRows.js';

/** A header cell: role and horizontal extent of its column. */
export interface Column {
  role: ColumnRole;
  left: number;
  right: number;
}

/** Notation of a document's numbers and dates. */
export interface Notation {
  mark: DecimalMark | undefined;
  order: DateOrder;
  /** Year of dates that are printed without one. */
  year: number | undefined;
  /** Whether amounts have cents. */
  hasCents: boolean;
  /** Whether thousands are separated by spaces. */
  hasSpaces: boolean;
}

/** A row with its numbers at the right end and the words before them. */
export interface NumberedRow {
  row: Row;
  /** The numbers at the right end of the row, from left to right; empty if the row ends with words. */
  trailing: readonly NumberSpan[];
  /** The words before these numbers. */
  label: string;
  labelTokens: Row['tokens'];
  dates: readonly (PrintedDate & { tokens: Row['tokens'] })[];
  /** The row whose amount includes this one. */
  group?: NumberedRow;
}

/** Rows between a header, or the beginning, and the sums. */
export interface TableRegion {
  columns: readonly Column[];
  rows: readonly NumberedRow[];
}

/** Words between or behind the numbers of a line. */
const UNIT_WORD =
  /^(?:tokens?|units?|requests?|calls?|seats?|users?|images?|pages?|hours?|hrs?|h|minutes?|mins?|seconds?|gb|mb|gb-?hours?|gb-mo(?:nth)?s?|months?|mo|days?|pcs|stk\.?|x|×|@|per|\/|each|ea\.?|pro|par|cr|dr|credits?|million|mio\.?|thousand|m|k|mtok|ktok|1m|1k|10k|100k|1000|1,000|1,000,000|1000000|\/\s?(?:1m|1k|m|k|mtok|unit|tokens?|seat|user|hour|month|mo|1,000|1,000,000|million|request)(?:tokens)?|[a-z]{0,3}\$|€|£|usd|eur|gbp|chf|[-–—=*\0\u00ad]|\[\d\]|\(\d\)|[¹²³*†]+)$/i;

export function numberRow(printed: Row, { mark, order, year, hasCents, hasSpaces }: Notation): NumberedRow {
  const signed = mendSigns(printed.tokens);
  const tokens = hasSpaces ? joinGroups(signed) : signed;
  const row = { ...printed, tokens, text: textOf(tokens) };
  const dates = datesIn(row, order, year);
  const dated = new Set(dates.flatMap((date) => date.tokens));
  const spans = [...numbersIn(row.tokens, mark), ...mendedNumbersIn(row.tokens, mark)]
    .map((span) => (hasCents ? withCents(span) : span))
    .filter((span) => !span.tokens.some((token) => dated.has(token)))
    .sort((a, b) => a.start - b.start);
  const trailing: NumberSpan[] = [];
  let at = row.tokens.length - 1;
  while (at >= 0) {
    const token = row.tokens[at] as Row['tokens'][number];
    const span = spans.find((one) => one.tokens.includes(token));
    if (span) {
      trailing.unshift(span);
      at = row.tokens.indexOf(span.tokens[0] as Row['tokens'][number]) - 1;
    } else if (UNIT_WORD.test(token.text) || (dated.has(token) && trailing.length > 0)) at -= 1;
    else break;
  }
  const from =
    trailing[0] === undefined
      ? row.tokens.length
      : row.tokens.indexOf(trailing[0].tokens[0] as Row['tokens'][number]);
  const labelTokens = row.tokens.slice(0, from);
  return { row, trailing, label: textOf(labelTokens), labelTokens, dates };
}

function datesIn(row: Row, order: DateOrder, year: number | undefined): NumberedRow['dates'] {
  const found: (PrintedDate & { tokens: Row['tokens'] })[] = [];
  let from = 0;
  for (let date = findDate(row.text, order, year); date; date = findDate(row.text.slice(from), order, year)) {
    const start = from + date.start;
    const end = from + date.end;
    found.push({ ...date, start, end, tokens: tokensAt(row.tokens, start, end) });
    from = end;
  }
  return found;
}

/** The columns of a header row; undefined for other rows. */
export function columnsOf(row: Row): readonly Column[] | undefined {
  if (row.text.length > HEADER_CHARS_MAX) return undefined;
  const text = textOf(row.tokens, CELL_GAP);
  const taken: { role: ColumnRole; start: number; end: number }[] = [];
  for (const [role, pattern] of COLUMN_LABELS)
    for (const match of text.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (taken.some((one) => start < one.end && end > one.start)) continue;
      // The longest match names a role's column. Only amounts may have several columns.
      const other = role === 'amount' ? undefined : taken.find((one) => one.role === role);
      if (other && end - start <= other.end - other.start) continue;
      if (other) taken.splice(taken.indexOf(other), 1);
      taken.push({ role, start, end });
    }
  const roles = new Set(taken.map((one) => one.role));
  const isMoney = roles.has('amount') || roles.has('gross');
  if (!isMoney || roles.size < (roles.has('description') || roles.has('unitPrice') ? 2 : 3)) return undefined;
  const named = taken.reduce((sum, one) => sum + one.end - one.start, 0);
  // A header has few words that name no column; a sentence has many.
  if (named < text.replace(/\s/g, '').length * HEADER_SHARE) return undefined;
  // The only numbers in a header are units of prices.
  if (/(?<!\p{L})\d/u.test(text.replace(/\(.*?\)|(?:\/|per) ?[\d.,]+\w*|\b1[km]\b/gi, ''))) return undefined;
  const columns = taken
    .map(({ role, start, end }) => {
      const named = tokensAt(row.tokens, start, end, CELL_GAP);
      const others = taken
        .filter((one) => one.start !== start)
        .flatMap((one) => tokensAt(row.tokens, one.start, one.end, CELL_GAP));
      return { role, ...reachOf(named, row, others) };
    })
    .sort((a, b) => a.left - b.left);
  return columns.map((column, at) => {
    // An amount to the right of an amount and its tax includes the tax.
    const isGross =
      column.role === 'amount' &&
      columns
        .slice(0, at)
        .some(
          (tax, index) =>
            /^tax/.test(tax.role) && columns.slice(0, index).some((one) => one.role === 'amount'),
        );
    return isGross ? { ...column, role: 'gross' } : column;
  });
}

/** Extent of a column's name, with adjacent words that name no other column. */
function reachOf(named: Row['tokens'], row: Row, others: Row['tokens']): { left: number; right: number } {
  let from = row.tokens.indexOf(named[0] as Token);
  let to = row.tokens.indexOf(named.at(-1) as Token);
  const isOwn = (inner: number, outer: number) => {
    const [one, other] = [row.tokens[inner], row.tokens[outer]];
    if (!one || !other || others.includes(other)) return false;
    return Math.max(one.left, other.left) - Math.min(one.right, other.right) < row.height * CELL_GAP;
  };
  while (isOwn(to, to + 1)) to += 1;
  while (isOwn(from, from - 1)) from -= 1;
  return { left: row.tokens[from]?.left ?? 0, right: row.tokens[to]?.right ?? 0 };
}

const HEADER_CHARS_MAX = 160;
const HEADER_SHARE = 0.5;

/** A row of sums and its role. */
export interface SumRow {
  row: NumberedRow;
  role: SumRole;
}

/** Splits a document into tables and the rows of sums. */
export function tablesOf(
  rows: readonly Row[],
  notation: Notation,
): { tables: TableRegion[]; sums: SumRow[] } {
  const numbered = withGroups(rows.map((row) => numberRow(row, notation)));
  const headers = numbered.map((one) => columnsOf(one.row));
  const hasHeader = headers.some((columns) => columns !== undefined);
  const tables: { columns: readonly Column[]; rows: NumberedRow[] }[] = [];
  const sums: SumRow[] = [];
  const openTable = (columns: readonly Column[]) => {
    const table: { columns: readonly Column[]; rows: NumberedRow[] } = { columns, rows: [] };
    tables.push(table);
    return table;
  };
  let open = hasHeader ? undefined : openTable([]);
  for (const [at, one] of numbered.entries()) {
    const columns = headers[at];
    const sum = one.group === undefined ? roleOf(one) : undefined;
    if (columns) {
      if (!open || !sameColumns(open.columns, columns)) open = openTable(columns);
    } else if (sum !== undefined && (!open || endsTable(one, sum, numbered, at))) {
      sums.push({ row: one, role: sum });
      if (open && open.rows.length > 0) open = undefined;
    } else if (open) open.rows.push(one);
    else {
      const implied = one.group === undefined ? impliedRole(numbered, at, sums) : undefined;
      if (implied) sums.push({ row: one, role: implied });
      // A table without a header continues below a sum of its first part.
      else if (one.trailing.length > 0 && (!hasHeader || one.group !== undefined)) {
        open = openTable([]);
        open.rows.push(one);
      }
    }
  }
  return { tables: tables.filter((table) => table.rows.some((one) => one.trailing.length > 0)), sums };
}

function roleOf(one: NumberedRow): SumRole | undefined {
  return one.trailing.length === 0 ? undefined : sumRoleOf(sumLabel(one));
}

/** Rows between an unknown row of sums and the total, at most. */
const IMPLIED_ROWS_MAX = 6;

/** Role of a row with unknown words among the sums: a row with a rate is a tax, a negative one is a reduction. */
function impliedRole(rows: readonly NumberedRow[], at: number, sums: readonly SumRow[]): SumRole | undefined {
  const one = rows[at] as NumberedRow;
  const before = rows.slice(0, at).findLast((other) => other.trailing.length > 0);
  const last = sums.at(-1);
  if (one.trailing.length === 0 || last === undefined || last.row !== before) return undefined;
  const later = rows.slice(at + 1, at + 1 + IMPLIED_ROWS_MAX).map(roleOf);
  const amount = one.trailing.findLast((span) => !span.isPercent);
  if (!amount || one.row.page !== last.row.row.page) return undefined;
  const isBelowTotal = last.role === 'total' || last.role === 'credit';
  if (isBelowTotal) return amount.value < 0n && later.includes('due') ? 'credit' : undefined;
  if (!later.includes('total') && !later.includes('due')) return undefined;
  if (amount.value < 0n) return 'discount';
  return /%/.test(one.row.text) ? 'tax' : undefined;
}

/** Labels of rows that break down the amount above them. */
const PART =
  /^(?:charges?|usage(?: charges?)?|(?:.{0,40}\s)?credits?|(?:.{0,40}\s)?discounts?|(?:estimated )?(?:us )?(?:sales )?tax(?:es)?|vat|gst|ct|(?:.{0,40}\b)?(?:vat|gst|hst|jct|tax)\b.{0,40}|adjustments?)$/i;
const TAX_PART = /\b(?:vat|gst|hst|jct|ct|tax(?:es)?)\b/i;
const PARTS_MAX = 8;

/**
 * Marks rows that break down the amount of the row above them, as on Amazon's invoices: their charges are the line, their
 * tax belongs to the document. Rows that break down the document's own total, or an amount directly above it while other
 * breakdowns follow, are its sums.
 */
function withGroups(rows: readonly NumberedRow[]): NumberedRow[] {
  const marked = [...rows];
  const amountOf = (one: NumberedRow | undefined) => one?.trailing.findLast((span) => !span.isPercent)?.value;
  const totals = new Set(
    rows.filter((one) => roleOf(one) === 'total' || roleOf(one) === 'due').map(amountOf),
  );
  const dropped = new Set<number>();
  const wholes: { at: number; parts: number[] }[] = [];
  for (const [at, parent] of rows.entries()) {
    const printed = parent.trailing.findLast((span) => !span.isPercent);
    const amount = printed?.value;
    if (
      printed === undefined ||
      amount === undefined ||
      parent.trailing.length > 1 ||
      roleOf(parent) !== undefined ||
      parent.label.trim() === ''
    )
      continue;
    const parts: number[] = [];
    let sum = 0n;
    let whole: number[] = [];
    for (let next = at + 1; next < rows.length && parts.length < PARTS_MAX; next += 1) {
      const part = rows[next] as NumberedRow;
      const value = amountOf(part);
      if (value === undefined || !PART.test(part.label.trim())) break;
      parts.push(next);
      sum += value;
      if (isWithin(sum - amount, halfUnit(printed.decimals))) whole = [...parts];
    }
    if (whole.length > 0) wholes.push({ at, parts: whole });
  }
  for (const { at, parts } of wholes) {
    const parent = rows[at] as NumberedRow;
    dropped.add(at);
    const below = rows[(parts.at(-1) as number) + 1];
    const isAboveTotal = below !== undefined && roleOf(below) === 'total' && wholes.at(-1)?.at !== at;
    if (isAboveTotal || (parts.length > 1 && totals.has(amountOf(parent)))) continue;
    for (const part of parts) {
      const one = rows[part] as NumberedRow;
      if (TAX_PART.test(one.label)) dropped.add(part);
      else marked[part] = { ...one, group: parent };
    }
  }
  return marked.filter((_, at) => !dropped.has(at));
}

/**
 * The label of a sum: the last cell before its number, because the row may start with other text. A label with a lost
 * dash has two cells.
 */
export function sumLabel(one: NumberedRow): string {
  const first = one.trailing[0]?.tokens[0];
  const before = one.labelTokens;
  let from = before.length;
  for (let cells = 1; from > 0 && cells <= LABEL_CELLS_MAX; cells += 1) {
    from = cellStart(before, from, one.row.height * (cells === 1 ? CELL_GAP : LABEL_GAP));
    const text = textOf(before.slice(from));
    if (cells === LABEL_CELLS_MAX || from === 0 || sumRoleOf(text) !== undefined) return text;
  }
  return first === undefined ? one.label : '';
}

const LABEL_CELLS_MAX = 2;
/** Largest gap of a lost dash, in heights of the row. */
const LABEL_GAP = 2;

/** First token of the cell that ends before `end`. */
function cellStart(tokens: Row['tokens'], end: number, gap: number): number {
  let from = end - 1;
  while (from > 0 && (tokens[from] as Token).left - (tokens[from - 1] as Token).right < gap) from -= 1;
  return Math.max(from, 0);
}

/** A tax, discount or credit among the lines is a line, unless only sums follow it. */
function endsTable(one: NumberedRow, sum: SumRole, rows: readonly NumberedRow[], at: number): boolean {
  if (hasProduct(one)) return false;
  if (sum === 'subtotal' || sum === 'net' || sum === 'total' || sum === 'due') return true;
  for (const later of rows.slice(at + 1)) {
    if (later.trailing.length === 0) continue;
    const role = later.group === undefined ? roleOf(later) : undefined;
    if (role === 'subtotal' || role === 'net') return false;
    if (role === 'total' || role === 'due') return true;
    if (role === undefined) return false;
  }
  return false;
}

/** Only lines have a quantity and a price beside the amount. */
function hasProduct({ trailing }: NumberedRow): boolean {
  return trailing.filter((span) => !span.isPercent).length >= 3;
}

function sameColumns(one: readonly Column[], other: readonly Column[]): boolean {
  return one.length === other.length && one.every((column, at) => column.role === other[at]?.role);
}
