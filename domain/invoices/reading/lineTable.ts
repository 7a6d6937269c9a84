import { COLUMN_LABELS, type ColumnRole, sumRoleOf } from './labels.js';
import { mendedNumbersIn } from './mendedNumbers.js';
import { type DateOrder, findDate, type PrintedDate } from './printedDate.js';
import { type DecimalMark, type NumberSpan, numbersIn } from './printedNumber.js';
import { type Row, textOf, tokensAt } from './textRows.js';

/** A header cell: what its column holds, and where it stands. */
interface Column {
  role: ColumnRole;
  left: number;
  right: number;
}

/** How numbers and dates of a document are written. */
export interface Notation {
  mark: DecimalMark | undefined;
  order: DateOrder;
}

/** A row with its numbers at the right end and the words before them. */
export interface NumberedRow {
  row: Row;
  /** The numbers that end the row, from left to right; none where words end it. */
  trailing: readonly NumberSpan[];
  /** The words before these numbers. */
  label: string;
  labelTokens: Row['tokens'];
  dates: readonly (PrintedDate & { tokens: Row['tokens'] })[];
}

/** Rows between a header, or the beginning, and the sums. */
export interface TableRegion {
  columns: readonly Column[];
  rows: readonly NumberedRow[];
}

/** Words between or behind the numbers of a line. */
const UNIT_WORD =
  /^(?:tokens?|units?|requests?|calls?|seats?|users?|images?|pages?|hours?|hrs?|h|minutes?|mins?|seconds?|gb|mb|gb-?hours?|gb-mo(?:nth)?s?|months?|mo|days?|pcs|stk\.?|x|×|@|per|\/|each|ea\.?|pro|par|cr|dr|credits?|million|mio\.?|thousand|m|k|mtok|ktok|1m|1k|10k|100k|1000|1,000|1,000,000|1000000|\/\s?(?:1m|1k|m|k|mtok|unit|tokens?|seat|user|hour|month|mo|1,000|1,000,000|million|request)(?:tokens)?|[a-z]{0,3}\$|€|£|usd|eur|gbp|chf|[-–—=*])$/i;

export function numberRow(row: Row, { mark, order }: Notation): NumberedRow {
  const dates = datesIn(row, order);
  const dated = new Set(dates.flatMap((date) => date.tokens));
  const spans = [...numbersIn(row.tokens, mark), ...mendedNumbersIn(row.tokens, mark)]
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

function datesIn(row: Row, order: DateOrder): NumberedRow['dates'] {
  const found: (PrintedDate & { tokens: Row['tokens'] })[] = [];
  let from = 0;
  for (let date = findDate(row.text, order); date; date = findDate(row.text.slice(from), order)) {
    const start = from + date.start;
    const end = from + date.end;
    found.push({ ...date, start, end, tokens: tokensAt(row.tokens, start, end) });
    from = end;
  }
  return found;
}

/** The columns that a row names; undefined for a row that is no header. */
export function columnsOf(row: Row): readonly Column[] | undefined {
  if (row.text.length > HEADER_CHARS_MAX) return undefined;
  const taken: { role: ColumnRole; start: number; end: number }[] = [];
  for (const [role, pattern] of COLUMN_LABELS)
    for (const match of row.text.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (taken.some((one) => start < one.end && end > one.start)) continue;
      // Only the first of a role names its column, but several amounts may stand side by side.
      if (role !== 'amount' && taken.some((one) => one.role === role)) continue;
      taken.push({ role, start, end });
    }
  const roles = new Set(taken.map((one) => one.role));
  const isMoney = roles.has('amount') || roles.has('gross');
  if (!isMoney || roles.size < 2) return undefined;
  const named = taken.reduce((sum, one) => sum + one.end - one.start, 0);
  // Words that name no column are few in a header; a sentence has many.
  if (named < row.text.replace(/\s/g, '').length * HEADER_SHARE) return undefined;
  if (/[$€£]\s?\d|\d[.,]\d\d\b/.test(row.text)) return undefined;
  return taken
    .map(({ role, start, end }) => {
      const tokens = tokensAt(row.tokens, start, end);
      return { role, left: tokens[0]?.left ?? 0, right: tokens.at(-1)?.right ?? 0 };
    })
    .sort((a, b) => a.left - b.left);
}

const HEADER_CHARS_MAX = 160;
const HEADER_SHARE = 0.5;

/** Splits a document into tables and the rows of sums. */
export function tablesOf(
  rows: readonly Row[],
  notation: Notation,
): { tables: TableRegion[]; sums: NumberedRow[] } {
  const numbered = rows.map((row) => numberRow(row, notation));
  const headers = rows.map(columnsOf);
  const hasHeader = headers.some((columns) => columns !== undefined);
  const lastSum = numbered.findLastIndex((one) => sumOf(one) === 'total' || sumOf(one) === 'due');
  const tables: TableRegion[] = [];
  const sums: NumberedRow[] = [];
  let open: { columns: readonly Column[]; rows: NumberedRow[] } | undefined = hasHeader
    ? undefined
    : { columns: [], rows: [] };
  if (open) tables.push(open);
  for (const [at, one] of numbered.entries()) {
    const columns = headers[at];
    const sum = sumOf(one);
    if (columns) {
      const isSame = open !== undefined && sameColumns(open.columns, columns);
      if (isSame) continue;
      open = { columns, rows: [] };
      tables.push(open);
    } else if (sum !== undefined && (!open || endsTable(one, sum, numbered, at))) {
      sums.push(one);
      if (open && open.rows.length > 0) open = undefined;
    } else if (open) open.rows.push(one);
    else if (!hasHeader && at < lastSum && one.trailing.length > 0 && tables.length > 0) {
      // A table without a header goes on behind a sum of its first part.
      open = { columns: [], rows: [one] };
      tables.push(open);
    }
  }
  return { tables: tables.filter((table) => table.rows.some((one) => one.trailing.length > 0)), sums };
}

function sumOf(one: NumberedRow): ReturnType<typeof sumRoleOf> {
  return one.trailing.length === 0 ? undefined : sumRoleOf(sumLabel(one));
}

/** The words beside a sum: the last cell before its number, which may stand beside other print. */
export function sumLabel(one: NumberedRow): string {
  const first = one.trailing[0]?.tokens[0];
  const before = one.row.cells.filter((cell) => first === undefined || cell.left < first.left);
  const cell = before.findLast((candidate) => /\p{L}/u.test(candidate.text));
  if (!cell) return one.label;
  const tokens = cell.tokens.filter((token) => first === undefined || token.right <= first.left + 0.01);
  return textOf(tokens.length > 0 ? tokens : cell.tokens);
}

/** Taxes, discounts and credits among the lines are lines, unless only sums follow. */
function endsTable(
  one: NumberedRow,
  sum: NonNullable<ReturnType<typeof sumRoleOf>>,
  rows: readonly NumberedRow[],
  at: number,
): boolean {
  if (hasProduct(one)) return false;
  if (sum === 'subtotal' || sum === 'net' || sum === 'total' || sum === 'due') return true;
  for (const later of rows.slice(at + 1)) {
    if (later.trailing.length === 0) continue;
    const role = sumOf(later);
    if (role === 'subtotal' || role === 'net') return false;
    if (role === 'total' || role === 'due') return true;
    if (role === undefined) return false;
  }
  return false;
}

/** A quantity and a price beside the amount: only lines have them. */
function hasProduct({ trailing }: NumberedRow): boolean {
  return trailing.filter((span) => !span.isPercent).length >= 3;
}

function sameColumns(one: readonly Column[], other: readonly Column[]): boolean {
  return one.length === other.length && one.every((column, at) => column.role === other[at]?.role);
}
