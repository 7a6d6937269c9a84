import { compare } from '../compare.js';
import type { Provider } from '../providers.js';
import { checkInvoice, isAccepted } from './checkInvoice.js';
import type { InvoiceLineReading, InvoiceReading, Maybe, ReadField, Scaled } from './invoiceReading.js';
import { classifyLine } from './lineClass.js';
import type { InvoiceExtraction } from './pageWords.js';
import { findProduct, statedUnitsOf } from './productOf.js';
import { type DocumentFields, readFields } from './reading/documentFields.js';
import { type AmountChoice, type DraftLine, linesOf } from './reading/draftLines.js';
import { type EntityReading, readEntities } from './reading/entityReading.js';
import { type InvoiceSums, type PlacedSum, readSums } from './reading/invoiceSums.js';
import { findIssuer, type Layout, layoutOf } from './reading/layouts.js';
import { type Notation, type TableRegion, tablesOf } from './reading/lineTable.js';
import { dateOrderOf } from './reading/printedDate.js';
import type { DecimalMark } from './reading/printedNumber.js';
import {
  currenciesIn,
  currencyCodesIn,
  decimalMarkOf,
  haveCents,
  printedDecimals,
  sharedSignOf,
} from './reading/printedNumber.js';
import { repairReading } from './reading/repairReading.js';
import { fieldFrom, type Row, rowsOf, tokensAt } from './reading/textRows.js';

/** A document with more tables is read as one table: the combinations double with each. */
const TABLES_MAX = 5;
/** Limits the readings to repair: the work grows with the lines. */
const REPAIRED_MAX = 6;
const CHOICES: readonly AmountChoice[] = [0, 1, 2];

/**
 * Reads a document in several ways and returns the reading whose sums agree best; undefined if no line is found.
 */
export function readInvoice(
  extraction: InvoiceExtraction,
  { provider }: { provider: Provider },
): InvoiceReading | undefined {
  const rows = rowsOf(extraction.pages);
  return best(readingsOf(rows, extraction.entities, provider));
}

/** A reading and the decimal mark of its numbers. */
interface Candidate {
  reading: InvoiceReading;
  mark: DecimalMark | undefined;
}

/** Rates the agreement of a reading's sums: failed checks weigh more than the number of those that hold. */
function scoreOf(reading: InvoiceReading): number {
  const checks = checkInvoice(reading);
  const weight = (name: string) =>
    name === 'total_evidence' || name === 'total' || name === 'lines_sum' ? 6 : 2;
  const sums = checks.filter((check) => check.difference !== null || check.check === 'total_evidence');
  return sums.reduce((sum, check) => sum + (check.ok ? 1 : -weight(check.check)), 0);
}

/** Returns the reading whose sums agree best. If no reading is accepted, repairs the best ones first. */
function best(candidates: readonly Candidate[]): InvoiceReading | undefined {
  const scored = candidates.map((candidate, at) => ({ ...candidate, at, score: scoreOf(candidate.reading) }));
  scored.sort((a, b) => b.score - a.score || compare(a.at, b.at));
  const first = scored[0]?.reading;
  if (first === undefined || isAccepted(checkInvoice(first))) return first;
  const repaired = scored.slice(0, REPAIRED_MAX).map(({ reading, mark, at, score }) => {
    const after = repairReading(reading, mark);
    return { reading: after, at, score: after === reading ? score : scoreOf(after) };
  });
  return repaired.sort((a, b) => b.score - a.score || compare(a.at, b.at))[0]?.reading;
}

/** Every way to read the rows: the column of the amounts, the tables that count, the sums. */
function readingsOf(
  rows: readonly Row[],
  entities: InvoiceExtraction['entities'],
  provider: Provider,
): Candidate[] {
  const layout = layoutOf(rows, provider);
  const texts = rows.map((row) => row.text);
  const order = dateOrderOf(texts) ?? layout.dateOrder;
  const stated = readEntities(entities, decimalMarkOf(texts));
  const fields = withStated(readFields(rows, order), stated);
  const day = fields.periodEnd ?? fields.issueDate;
  const notation: Notation = {
    mark: decimalMarkOf(texts),
    order,
    year: day === null ? undefined : Number(day.value.slice(0, 4)),
    hasCents: haveCents(texts),
    hasSpaces: texts.some((text) =>
      /(?<![\d.,])\d{1,3}(?: \d{3})+(?:,\d{2}|(?<=\d \d{3} \d{3}))(?!\d)/.test(text),
    ),
  };
  const { tables, sums } = tablesOf(rows, notation);
  const draft: Draft = {
    fields,
    found: readSums(sums, rows, notation.mark),
    layout,
    provider,
    issuer: findIssuer(rows, provider) ?? stated?.fields.issuer ?? null,
    codes: rows.flatMap((row) => currencyCodesIn(row.text).map((code) => ({ code, row }))),
  };
  const readings: InvoiceReading[] = [];
  for (const choice of CHOICES) {
    for (const lines of lineSets(tables, choice)) readings.push(...withSums({ ...draft, lines }));
    // Other columns are tried only while the sums disagree: a line's own product is no reason.
    if (readings.some(hasFootingSums)) break;
  }
  if (stated) readings.push(fromEntities(draft, stated));
  return readings.map((reading) => ({ reading, mark: notation.mark }));
}

function hasFootingSums(reading: InvoiceReading): boolean {
  return checkInvoice(reading).every(
    (check) => check.ok || check.line !== null || !SUM_CHECKS.has(check.check),
  );
}

const SUM_CHECKS: ReadonlySet<string> = new Set([
  'required_fields',
  'lines_sum',
  'total',
  'amount_due',
  'total_evidence',
]);

/** Fills missing fields from the engine's own fields. */
function withStated(fields: DocumentFields, stated: EntityReading | undefined): DocumentFields {
  return {
    ...fields,
    number: fields.number ?? stated?.fields.number ?? null,
    issueDate: fields.issueDate ?? stated?.fields.issueDate ?? null,
    dueDate: fields.dueDate ?? stated?.fields.dueDate ?? null,
  };
}

/** The engine's own lines and sums, completed from the words. */
function fromEntities(
  { fields, issuer, provider, codes, found }: Draft,
  stated: EntityReading,
): InvoiceReading {
  const lines = stated.lines.map((line, at) => classified(line, at + 1, provider));
  const { total, subtotal } = stated.sums;
  return {
    ...fields,
    ...periodOf(fields, lines),
    ...stated.sums,
    layout: 'document_ai',
    issuer,
    currency: stated.fields.currency ?? currencyOf(codes, [total, subtotal]),
    lines,
    discounts: [],
    credits: [],
    amountDue: found.dues.at(-1)?.field ?? null,
  };
}

function isProduct({ quantity, unitPrice, amount, description }: DraftLine): boolean {
  if (!quantity || !unitPrice) return false;
  const factor = (field: ReadField<Scaled>) => ({
    value: field.value,
    decimals: printedDecimals(field.text, 2),
  });
  const per = statedUnitsOf(`${unitPrice.text} ${description.value}`);
  return findProduct(factor(quantity), factor(unitPrice), factor(amount), per) !== undefined;
}

/** The lines of all tables, then of each subset: one table may repeat another in detail. */
function* lineSets(tables: readonly TableRegion[], choice: AmountChoice): Generator<DraftLine[]> {
  // Beside unit prices that make the amounts other columns are none: of single units their sum would be the same.
  if (choice > 0 && tables.some((table) => linesOf(table, 0).some(isProduct))) return;
  const byTable = tables.map((table) => linesOf(table, choice)).filter((lines) => lines.length > 0);
  if (byTable.length === 0) return;
  yield byTable.flat();
  if (byTable.length === 1 || byTable.length > TABLES_MAX) return;
  for (let mask = (1 << byTable.length) - 2; mask > 0; mask -= 1)
    yield byTable.filter((_, at) => (mask >> at) & 1).flat();
}

interface Draft {
  found: InvoiceSums;
  layout: Layout;
  provider: Provider;
  fields: DocumentFields;
  issuer: Maybe<string>;
  /** Currency codes with their rows. */
  codes: readonly { code: string; row: Row }[];
}

/** A reading for each printed subtotal, total and amount due. */
function withSums(draft: Draft & { lines: readonly DraftLine[] }): InvoiceReading[] {
  const { found, fields, issuer } = draft;
  const lines = draft.lines.map((line, at) => classified(line, at + 1, draft.provider));
  const subtotals: (PlacedSum | null)[] = [...found.subtotals.toReversed(), ...found.nets];
  if (subtotals.length !== 1) subtotals.push(null);
  const totals =
    found.totals.length > 0 ? found.totals.toReversed() : [found.dues.at(-1) ?? found.paid[0] ?? null];
  const dues = found.dues.length > 0 ? found.dues.toReversed() : [null];
  const paid = found.paid.at(-1) ?? null;
  const period = periodOf(fields, lines);
  return totals.flatMap((total) =>
    subtotals.flatMap((subtotal) => {
      // A reduction above the subtotal is part of it; one above the total counts before the tax.
      const from = subtotal && (total === null || subtotal.at < total.at) ? subtotal.at : -1;
      const to = total?.at ?? Number.POSITIVE_INFINITY;
      const taken = (after: number, before: number) =>
        found.reductions.filter(({ at }) => at > after && at < before).map(({ field }) => field);
      return dues.map((amountDue) => ({
        ...fields,
        ...period,
        layout: draft.layout.name,
        issuer,
        currency: currencyOf(draft.codes, [
          total?.field ?? null,
          subtotal?.field ?? null,
          ...lines.map((line) => line.amount),
        ]),
        lines,
        subtotal: subtotal?.field ?? null,
        discounts: taken(from, to),
        taxes: found.taxes,
        credits: taken(to, Number.POSITIVE_INFINITY),
        total: total?.field ?? null,
        // A figure that replaces a missing total does not confirm it.
        amountPaid: paid === total ? null : (paid?.field ?? null),
        amountDue: amountDue === total ? null : (amountDue?.field ?? null),
      }));
    }),
  );
}

/** `Amazon Bedrock` for its charges; other parts below it have its name as a prefix. */
function groupedText(group: string, text: string): string {
  return /^charges?$/i.test(text) ? group : `${group} – ${text}`;
}

function classified({ group, ...line }: DraftLine, number: number, provider: Provider): InvoiceLineReading {
  const description =
    group === null
      ? line.description
      : { ...line.description, value: groupedText(group, line.description.value) };
  const { kind, model, tokenClass } = classifyLine(description.value, {
    amount: line.amount.value,
    provider,
    hasQuantity: line.quantity !== null,
  });
  return { ...line, line: number, description, kind, model, tokenClass };
}

/** The document's own period, or the one that its lines cover together. */
function periodOf(
  fields: Pick<InvoiceReading, 'periodStart' | 'periodEnd'>,
  lines: readonly InvoiceLineReading[],
): Pick<InvoiceReading, 'periodStart' | 'periodEnd'> {
  if (fields.periodStart && fields.periodEnd)
    return { periodStart: fields.periodStart, periodEnd: fields.periodEnd };
  const starts = lines.flatMap((line) => line.periodStart ?? []).sort((a, b) => compare(a.value, b.value));
  const ends = lines.flatMap((line) => line.periodEnd ?? []).sort((a, b) => compare(b.value, a.value));
  const concluded = (field: ReadField<string> | undefined) => (field ? { ...field, box: null } : null);
  return { periodStart: concluded(starts[0]), periodEnd: concluded(ends[0]) };
}

/** The currency beside the amounts. A sign of several currencies is resolved by the printed codes. */
function currencyOf(codes: Draft['codes'], fields: readonly Maybe<Scaled>[]): Maybe<string> {
  const printed = fields.find((field) => field !== null && currenciesIn(field.text).length > 0);
  const own = printed ? currenciesIn(printed.text)[0] : undefined;
  if (printed && own !== undefined && sharedSignOf(printed.text) === undefined)
    return { ...printed, value: own };
  const sharing = printed ? sharedSignOf(printed.text) : undefined;
  const fits = sharing ? codes.filter(({ code }) => sharing.test(code)) : codes;
  const counts = new Map<string, number>();
  for (const { code } of fits) counts.set(code, (counts.get(code) ?? 0) + 1);
  const [most] = [...counts].sort(([, a], [, b]) => b - a)[0] ?? [];
  const row = fits.find(({ code }) => code === most)?.row;
  if (most !== undefined && row) {
    const start = row.text.indexOf(most);
    return fieldFrom(most, tokensAt(row.tokens, start, start + most.length));
  }
  return printed && own !== undefined ? { ...printed, value: own } : null;
}
