import { isAccepted } from '../../domain/invoices/checkInvoice.js';
import type {
  InvoiceCheck,
  InvoiceLineReading,
  InvoiceReading,
  Maybe,
  Scaled,
} from '../../domain/invoices/invoiceReading.js';
import type { Contradiction, InvoiceTruth, TruthLine } from '../generators/invoiceTruth.js';

/** Number of values that were read as printed. */
export interface Score {
  right: number;
  all: number;
}

export interface Verdict {
  amounts: Score;
  descriptions: Score;
  periods: Score;
  /** Kinds of lines and of the document. */
  kinds: Score;
  /** Number, currency, dates and account. */
  facts: Score;
  isAccepted: boolean;
  /** Accepted with a wrong total, currency or amount due, or although the document contradicts itself. */
  isWronglyAccepted: boolean;
  /** Accepted although some amount differs from the print. */
  isAcceptedWithError: boolean;
  hasContradiction: boolean;
  /** A failed check names the planted contradiction. */
  isContradictionNamed: boolean;
  /** Values that differ from the print, one sentence each. */
  faults: string[];
}

const CHECK_OF: Record<Contradiction['kind'], string> = {
  line: 'quantity_times_unit_price',
  lines_sum: 'lines_sum',
  tax: 'tax',
  total: 'total',
  amount_due: 'amount_due',
};
const DECIMALS = 12;

/** A decimal in the product's representation. */
export function scaled(text: string): Scaled {
  const [whole = '0', part = ''] = text.replace('-', '').split('.');
  const value = BigInt(whole + part.padEnd(DECIMALS, '0'));
  return text.startsWith('-') ? -value : value;
}

/** Judges one reading; `undefined` means that reading failed. */
export function compareReading(
  truth: InvoiceTruth,
  reading: InvoiceReading | undefined,
  checks: readonly InvoiceCheck[],
): Verdict {
  const tally = new Tally();
  const pairs = alignLines(truth.lines, reading?.lines ?? []);
  for (const { line, read, at } of pairs) compareLine(tally, line, read, at);
  compareSums(tally, truth, reading);
  compareFacts(tally, truth, reading);
  const accepted = reading !== undefined && isAccepted(checks);
  const sumsAreRight =
    reading?.total?.value === scaled(truth.total) &&
    reading.currency?.value === truth.currency &&
    (truth.amountDue === null || !reading.amountDue || reading.amountDue.value === scaled(truth.amountDue));
  const hasContradiction = truth.contradictions.length > 0;
  return {
    ...tally.scores,
    isAccepted: accepted,
    isWronglyAccepted: accepted && (hasContradiction || !sumsAreRight),
    isAcceptedWithError: accepted && tally.scores.amounts.right < tally.scores.amounts.all,
    hasContradiction,
    isContradictionNamed: truth.contradictions.some(({ kind, line }) =>
      checks.some(
        (check) => !check.ok && check.check === CHECK_OF[kind] && (line === null || check.line === line),
      ),
    ),
    faults: tally.faults,
  };
}

type Scores = Pick<Verdict, 'amounts' | 'descriptions' | 'periods' | 'kinds' | 'facts'>;

class Tally {
  readonly faults: string[] = [];
  readonly scores: Scores = {
    amounts: { right: 0, all: 0 },
    descriptions: { right: 0, all: 0 },
    periods: { right: 0, all: 0 },
    kinds: { right: 0, all: 0 },
    facts: { right: 0, all: 0 },
  };

  add(score: keyof Scores, isRight: boolean, fault: () => string): void {
    this.scores[score].all += 1;
    if (isRight) this.scores[score].right += 1;
    else this.faults.push(fault());
  }

  amount(name: string, printed: string | null, read: Maybe<Scaled> | undefined): void {
    // A concluded value has no box; a value with a box was read without being printed.
    if (printed === null) {
      if (read?.box) this.add('amounts', false, () => `${name}: none is printed, read ${read.text}`);
      return;
    }
    const isRight = read !== null && read !== undefined && read.value === scaled(printed);
    this.add(
      'amounts',
      isRight,
      () => `${name}: printed ${printed}, read ${read ? shown(read.value) : 'nothing'}`,
    );
  }

  /** Amounts in any order. */
  amounts(name: string, printed: readonly string[], read: readonly Scaled[]): void {
    const left = [...read];
    for (const text of printed) {
      const at = left.indexOf(scaled(text));
      this.add(
        'amounts',
        at >= 0,
        () => `${name}: printed ${text}, read ${left.map(shown).join(', ') || 'nothing'}`,
      );
      if (at >= 0) left.splice(at, 1);
    }
    for (const value of left)
      if (left.length > printed.length || !printed.length)
        this.add('amounts', false, () => `${name}: ${shown(value)} is not printed`);
  }
}

function shown(value: Scaled): string {
  const digits = (value < 0n ? -value : value).toString().padStart(DECIMALS + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS).replace(/0{1,10}$/, '')}`;
}

interface LinePair {
  /** From 1; of extra lines, of the reading. */
  at: number;
  line: TruthLine | undefined;
  read: InvoiceLineReading | undefined;
}

/** Pairs lines in order and maximises their agreement. */
function alignLines(truth: readonly TruthLine[], read: readonly InvoiceLineReading[]): LinePair[] {
  const likeness = (line: TruthLine, other: InvoiceLineReading) =>
    (other.amount.value === scaled(line.amount) ? 3 : 0) +
    (isSameText(other.description.value, line.description) ? 2 : 0) +
    (line.quantity !== null && other.quantity?.value === scaled(line.quantity) ? 1 : 0) +
    0.5;
  const best = Array.from({ length: truth.length + 1 }, () => new Float64Array(read.length + 1));
  const cell = (row: number, column: number) => best[row]?.[column] ?? 0;
  for (let row = truth.length - 1; row >= 0; row -= 1)
    for (let column = read.length - 1; column >= 0; column -= 1) {
      const both =
        likeness(truth[row] as TruthLine, read[column] as InvoiceLineReading) + cell(row + 1, column + 1);
      (best[row] as Float64Array)[column] = Math.max(both, cell(row + 1, column), cell(row, column + 1));
    }
  const pairs: LinePair[] = [];
  for (let row = 0, column = 0; row < truth.length || column < read.length; ) {
    const line = truth[row];
    const other = read[column];
    const both = line && other ? likeness(line, other) + cell(row + 1, column + 1) : -1;
    if (line && other && both >= cell(row, column)) {
      pairs.push({ at: row + 1, line, read: other });
      row += 1;
      column += 1;
    } else if (line && (!other || cell(row + 1, column) >= cell(row, column + 1))) {
      pairs.push({ at: row + 1, line, read: undefined });
      row += 1;
    } else {
      pairs.push({ at: column + 1, line: undefined, read: other });
      column += 1;
    }
  }
  return pairs;
}

function compareLine(
  tally: Tally,
  line: TruthLine | undefined,
  read: InvoiceLineReading | undefined,
  at: number,
) {
  const name = `line ${at}`;
  if (!line) {
    tally.add(
      'amounts',
      false,
      () => `${name} is not printed: ${read?.description.value} ${read?.amount.text}`,
    );
    return;
  }
  tally.amount(`${name} amount`, line.amount, read?.amount);
  tally.amount(`${name} quantity`, line.quantity, read?.quantity);
  tally.amount(`${name} unit price`, line.unitPrice, read?.unitPrice);
  tally.add(
    'descriptions',
    read !== undefined && isSameText(read.description.value, line.description),
    () => `${name}: printed "${line.description}", read "${read?.description.value ?? ''}"`,
  );
  tally.add('kinds', read?.kind === line.kind, () => `${name} is ${line.kind}, read as ${read?.kind}`);
  if (line.periodStart === null) return;
  const isPeriod = read?.periodStart?.value === line.periodStart && read.periodEnd?.value === line.periodEnd;
  tally.add(
    'periods',
    isPeriod,
    () =>
      `${name}: ${line.periodStart} to ${line.periodEnd}, read ${read?.periodStart?.value} to ${read?.periodEnd?.value}`,
  );
}

function compareSums(tally: Tally, truth: InvoiceTruth, reading: InvoiceReading | undefined): void {
  if (truth.subtotal !== null) tally.amount('subtotal', truth.subtotal, reading?.subtotal);
  tally.amount('total', truth.total, reading?.total);
  if (truth.amountDue !== null) tally.amount('amount due', truth.amountDue, reading?.amountDue);
  if (truth.amountPaid !== null) tally.amount('amount paid', truth.amountPaid, reading?.amountPaid);
  const isSome = (value: Scaled) => value !== 0n;
  const deductions = [...(reading?.discounts ?? []), ...(reading?.credits ?? [])].map(({ value }) => value);
  tally.amounts('deduction', [...truth.discounts, ...truth.credits], deductions.filter(isSome));
  const taxes = truth.taxes.map(({ amount }) => amount).filter((amount) => isSome(scaled(amount)));
  tally.amounts('tax', taxes, (reading?.taxes ?? []).map(({ amount }) => amount.value).filter(isSome));
}

function compareFacts(tally: Tally, truth: InvoiceTruth, reading: InvoiceReading | undefined): void {
  const fact = (name: string, printed: string | null, read: Maybe<string> | undefined) => {
    if (printed === null) return;
    const isRight = isSameText(read?.value ?? '', printed);
    tally.add('facts', isRight, () => `${name}: printed ${printed}, read ${read?.value ?? 'nothing'}`);
  };
  fact('number', truth.number, reading?.number);
  fact('currency', truth.currency, reading?.currency);
  fact('date of issue', truth.issueDate, reading?.issueDate);
  fact('due date', truth.dueDate, reading?.dueDate);
  fact('account', truth.account, reading?.account);
  fact('replaced document', truth.replaces, reading?.replaces);
  tally.add('kinds', reading?.kind === truth.kind, () => `a ${truth.kind}, read as ${reading?.kind}`);
  const hasReverseCharge = truth.taxes.some((tax) => tax.isReverseCharge);
  if (hasReverseCharge)
    tally.add(
      'facts',
      reading?.taxes.some((tax) => tax.isReverseCharge) ?? false,
      () => 'reverse charge is not read',
    );
  if (truth.periodStart === null) return;
  const isPeriod =
    reading?.periodStart?.value === truth.periodStart && reading.periodEnd?.value === truth.periodEnd;
  tally.add(
    'periods',
    isPeriod,
    () =>
      `period: ${truth.periodStart} to ${truth.periodEnd}, read ${reading?.periodStart?.value} to ${reading?.periodEnd?.value}`,
  );
}

/** Compares letters and digits only, because hyphens may be lost. A heading may precede the text. */
function isSameText(read: string, printed: string): boolean {
  const plain = (text: string) =>
    text
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, '');
  const expected = plain(printed);
  return plain(read) === expected || (expected.length > 8 && plain(read).endsWith(expected));
}
