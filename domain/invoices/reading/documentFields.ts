import type { InvoiceKind, InvoiceReading, Maybe } from '../invoiceReading.js';
import { type DateOrder, findDate } from './printedDate.js';
import { type Cell, cellFrom, fieldFrom, type Row, tokensAt } from './textRows.js';

/** The facts in a document's head. */
export type DocumentFields = Pick<
  InvoiceReading,
  'kind' | 'number' | 'account' | 'issueDate' | 'dueDate' | 'periodStart' | 'periodEnd' | 'replaces'
>;

const NO = '(?:number|no\\.?|nr\\.?|num\\.?|id|#|№)';
const LABELS = {
  creditNumber: new RegExp(
    `(?:credit (?:note|memo)|gutschrift(?:s)?|avoir)[\\s-]*(?:${NO}|nummer)\\s*:?`,
    'i',
  ),
  number: new RegExp(
    `(?:(?:tax |vat )?invoice\\s*${NO}|document ${NO}|statement ${NO}|bill ${NO}|rechnungs?-?\\s?(?:nummer|nr\\.?)|(?:numéro|n°|no) de (?:la )?facture|facture n°|(?:número|n\\.?º) de factura|factura n\\.?º)\\s*:?`,
    'i',
  ),
  receiptNumber: new RegExp(`receipt\\s*${NO}\\s*:?`, 'i'),
  issueDate:
    /(?:date of issue|issue date|(?:tax )?invoice date|billing date|bill date|statement date|document date|(?:credit note|receipt) date|issued(?: on)?|date issued|date paid|rechnungsdatum|ausstellungsdatum|date de (?:facturation|la facture|facture)|date d['’]émission|fecha de (?:emisión|factura)|datum|date)\s*:?/i,
  dueDate:
    /(?:date due|due date|payment due(?: date| by| on)?|due (?:on|by)|pay by|fällig(?:keit)?(?:sdatum| am| bis)?|zahlbar bis|date d['’]échéance|échéance|(?:fecha de )?vencimiento|total amount due on|due)\s*:?/i,
  period:
    /(?:(?:billing|service|usage|statement|invoice|subscription|charge) (?:period|dates|cycle|month)|period(?: covered)?|(?:usage|summary|charges) for|leistungszeitraum|abrechnungszeitraum|zeitraum|période(?: de facturation)?|per[ií]odo(?: de facturación)?|for (?:the )?(?:billing |usage )?period(?: of)?)\s*:?/i,
  account: new RegExp(
    `(?:(?:billing )?account\\s*(?:${NO})?|customer\\s*${NO}|organi[sz]ation\\s*(?:${NO})?|org id|kunden-?\\s?(?:nummer|nr\\.?)|(?:numéro|n°) (?:de )?(?:client|compte)|billing profile(?: ${NO})?|workspace(?: ${NO})?|team(?: ${NO})?|tenant ${NO}|payer account ${NO})\\s*:?`,
    'i',
  ),
} as const;
type Label = keyof typeof LABELS;

const ANY_LABEL = new RegExp(
  `^(?:${Object.values(LABELS)
    .map((label) => label.source)
    .join('|')}|bill to|sold to|ship to|currency|payment (?:terms|method)|vat (?:${NO}|id)|tax id)\\b`,
  'i',
);

/** A document's number: letters and digits, at least one digit. */
const NUMBER_VALUE =
  /^[#:\s]*([A-Z0-9](?:[A-Z0-9._/\0\u2010-\u2015\u2212-]*[A-Z0-9])?)(\s*[\0\u2010-\u2015\u2212-]\s*\d{3,5}|\s+\d{4}(?!\d))?(?=\s|$)/i;

export function readFields(rows: readonly Row[], order: DateOrder): DocumentFields {
  const kind = kindOf(rows);
  const numberLabels: readonly Label[] =
    kind === 'credit_note' ? ['creditNumber', 'number'] : ['number', 'creditNumber', 'receiptNumber'];
  const number = first(numberLabels, (label) => findNumber(rows, label)) ?? titleNumber(rows);
  const issueDate = findDay(rows, 'issueDate', order);
  const period = findPeriod(rows, order);
  const invoiceNumber = kind === 'credit_note' ? findNumber(rows, 'number') : null;
  return {
    kind,
    number,
    account: findValue(rows, 'account', ACCOUNT_VALUE),
    issueDate,
    dueDate: findDay(rows, 'dueDate', order),
    periodStart: period?.start ?? null,
    periodEnd: period?.end ?? null,
    replaces: findReplaced(rows) ?? (invoiceNumber?.value !== number?.value ? invoiceNumber : null),
  };
}

function first<K, T>(keys: readonly K[], find: (key: K) => T | null): T | null {
  for (const key of keys) {
    const found = find(key);
    if (found !== null) return found;
  }
  return null;
}

const CREDIT_NOTE =
  /^(?:credit (?:note|memo)|gutschrift|rechnungskorrektur|stornorechnung|avoir|nota de crédito|factura rectificativa)(?![\p{L}])/iu;
const RECEIPT = /^(?:payment )?(?:receipt|quittung|zahlungsbeleg|reçu|recibo)(?![\p{L}])/iu;

function kindOf(rows: readonly Row[]): InvoiceKind {
  const head = rows.filter((row) => row.page === rows[0]?.page).slice(0, HEAD_ROWS);
  const titles = head.flatMap((row) => row.cells.map((cell) => cell.text));
  if (titles.some((title) => CREDIT_NOTE.test(title))) return 'credit_note';
  if (titles.some((title) => RECEIPT.test(title))) return 'receipt';
  return 'invoice';
}

/** Rows of the first page that may hold a title. */
const HEAD_ROWS = 14;

/** Candidates for a label's value: the rest of its cell, the next cell, the row below. */
function* valuesOf(rows: readonly Row[], label: Label): Generator<Cell> {
  const pattern = new RegExp(`^[^\\p{L}\\d]{0,2}(?:${LABELS[label].source})`, 'iu');
  for (const [at, row] of rows.entries())
    for (const [index, cell] of row.cells.entries()) {
      for (const part of [0, ...labelStarts(cell.text)]) {
        const match = pattern.exec(cell.text.slice(part));
        const end = part + (match?.[0].length ?? 0);
        if (!match || /[\p{L}\d]{2}/u.test(cell.text.slice(end - 1, end + 1))) continue;
        const rest = tokensAt(cell.tokens, part + match[0].length, cell.text.length);
        if (rest.length > 0 && cell.text.slice(part + match[0].length).trim() !== '') yield cellFrom(rest);
        const next = row.cells[index + 1];
        if (rest.length === 0 && next && !ANY_LABEL.test(next.text)) yield next;
        const below = rows[at + 1];
        if (
          rest.length === 0 &&
          below &&
          below.page === row.page &&
          below.middle - row.middle < 3 * row.height
        )
          yield* below.cells.filter((one) => one.left < cell.right && one.right > cell.left);
      }
    }
}

/** Labels that follow others in one cell, where columns lie close. */
function labelStarts(text: string): number[] {
  return [...text.matchAll(/ {2}(?=\S)|\s(?=(?:Date|Invoice|Due|Bill)\b)/g)].map(
    (match) => match.index + match[0].length,
  );
}

function findValue(rows: readonly Row[], label: Label, pattern: RegExp): Maybe<string> {
  for (const cell of valuesOf(rows, label)) {
    const match = pattern.exec(cell.text);
    const value = match?.[1];
    if (match && value !== undefined)
      return fieldFrom(value.trim(), tokensAt(cell.tokens, match.index, match.index + match[0].length));
  }
  return null;
}

/** Account ids contain a digit; account names are not keys. */
const ACCOUNT_VALUE = /^[#:\s]*((?=[\w.:-]*\d)[A-Za-z0-9][\w.:-]{2,})/;

function findNumber(rows: readonly Row[], label: Label): Maybe<string> {
  for (const cell of valuesOf(rows, label)) {
    const number = numberOf(cell);
    if (number) return number;
  }
  return null;
}

function numberOf(cell: Cell): Maybe<string> {
  const match = NUMBER_VALUE.exec(cell.text);
  const [whole = '', head = '', tail = ''] = match ?? [];
  // A NUL, another dash or a space before the last digits is a hyphen whose glyph was lost.
  const value = `${head}${tail === '' ? '' : `-${tail.replace(/[^\d]/g, '')}`}`.replace(
    /[\0\u2010-\u2015\u2212]+\s*/g,
    '-',
  );
  if (!/\d/.test(value) || value.length < 2) return null;
  const field = fieldFrom(value, tokensAt(cell.tokens, 0, whole.length));
  return value === field.text
    ? field
    : { ...field, confidence: Math.min(field.confidence, CONCLUDED_CONFIDENCE) };
}

/** Confidence of a value that differs from its print. */
export const CONCLUDED_CONFIDENCE = 0.5;

/** `Invoice INV-0042` as a title. */
function titleNumber(rows: readonly Row[]): Maybe<string> {
  const pattern =
    /^(?:tax |vat )?(?:invoice|rechnung|facture|credit note|receipt)\s*[#:№]?\s+(?=[\w./-]*\d)/i;
  for (const row of rows.slice(0, HEAD_ROWS))
    for (const cell of row.cells) {
      const match = pattern.exec(cell.text);
      if (!match) continue;
      const number = numberOf(cellFrom(tokensAt(cell.tokens, match[0].length, cell.text.length)));
      if (number && number.value.length >= 4) return number;
    }
  return null;
}

function findDay(rows: readonly Row[], label: Label, order: DateOrder): Maybe<string> {
  for (const cell of valuesOf(rows, label)) {
    const date = findDate(cell.text, order);
    if (date && date.start <= 3 && !date.isRange)
      return fieldFrom(date.first, tokensAt(cell.tokens, date.start, date.end));
  }
  if (label !== 'dueDate') return null;
  for (const row of rows.slice(0, 60)) {
    const due = /\bdue (?:on |by )?/i.exec(row.text);
    if (!due || !/\d/.test(row.text.slice(0, due.index))) continue;
    const from = due.index + due[0].length;
    const date = findDate(row.text.slice(from), order);
    if (date && date.start <= 2 && !date.isRange)
      return fieldFrom(date.first, tokensAt(row.tokens, from + date.start, from + date.end));
  }
  return null;
}

function findPeriod(
  rows: readonly Row[],
  order: DateOrder,
): { start: NonNullable<Maybe<string>>; end: NonNullable<Maybe<string>> } | undefined {
  const cells: Cell[] = [...valuesOf(rows, 'period')];
  for (const row of rows) {
    const match = LABELS.period.exec(row.text);
    if (match) cells.push(cellFrom(tokensAt(row.tokens, match.index, row.text.length)));
  }
  for (const cell of cells) {
    const date = findDate(cell.text, order);
    if (!date?.isRange) continue;
    const tokens = tokensAt(cell.tokens, date.start, date.end);
    return { start: fieldFrom(date.first, tokens), end: fieldFrom(date.last, tokens) };
  }
  return undefined;
}

const REPLACES =
  /\b(?:replac(?:es|ing|ement (?:for|of))|supersedes|correct(?:s|ing|ion (?:of|to))|cancel(?:s|lation of)|credit(?:s|ed)?(?: note)? (?:for|against|to)|applies to|original|refers to|reference to|in respect of|ersetzt|korrigiert|storniert|annule(?: et remplace)?|remplace|corrige)\s+(?:the |die |la |previous |our )*(?:(?:original )?(?:tax )?invoice|rechnung|facture|factura)?\s*(?:number|no\.?|nr\.?|n°|#)?\s*:?\s*/i;

function findReplaced(rows: readonly Row[]): Maybe<string> {
  for (const row of rows) {
    const match = REPLACES.exec(row.text);
    if (!match) continue;
    const number = numberOf(cellFrom(tokensAt(row.tokens, match.index + match[0].length, row.text.length)));
    if (number && number.value.length >= 4 && /\d/.test(number.value)) return number;
  }
  return null;
}
