import type { BilledClass, ChargeCategory } from '../billing/billedRow.js';
import { groupBy } from '../groupBy.js';
import { absPico, divideHalfEven } from '../money.js';
import type { LineKind, Scaled } from './invoiceReading.js';

/** One charge of an invoice, with a person's corrections. */
export interface TieOutLine {
  line: number;
  kind: LineKind;
  description: string;
  /** In the terms of the bill's rows. */
  model: string | null;
  tokenClass: BilledClass | null;
  quantity: Scaled | null;
  unitPrice: Scaled | null;
  amount: Scaled;
  /** Charged days, both inclusive. */
  fromDay: string;
  toDay: string;
}

/** Sum of the provider's bill rows of one account, day, category, model and class. */
export interface BilledSum {
  accountId: string;
  day: string;
  category: ChargeCategory;
  model: string | null;
  tokenClass: BilledClass;
  amount: Scaled;
  /** Tokens or units, twelve decimals; null if the bill has none. */
  quantity: Scaled | null;
}

/** Calls of one model, class and day. */
export interface ObservedSum {
  day: string;
  model: string;
  tokenClass: BilledClass;
  /** Twelve decimals. */
  tokens: Scaled;
}

/** Another invoice of the same account with common days; neither a copy nor a receipt. */
export interface PeerInvoice {
  id: string;
  number: string;
  fromDay: string;
  toDay: string;
  usage: Scaled;
  /** The part of lines that repeat an earlier line of that invoice. */
  repeated: Scaled;
  /** Whether it precedes this one, by issue date, then number. */
  isEarlier: boolean;
}

export interface TieOutInput {
  number: string;
  fromDay: string;
  toDay: string;
  lines: readonly TieOutLine[];
  /** Discounts below the lines; zero or negative. */
  discounts: Scaled;
  bill: {
    rows: readonly BilledSum[];
    /** Days of the period without a bill; a bill of a whole month covers its days. */
    missingDays: readonly string[];
  };
  observed: readonly ObservedSum[];
  peers: readonly PeerInvoice[];
}

export const LINE_MATCHES = ['matched', 'partial', 'unmatched', 'not_billed_by_api'] as const;
export type LineMatch = (typeof LINE_MATCHES)[number];

export interface TiedLine {
  line: number;
  status: LineMatch;
  /** The bill's share of the line; null if no comparison is possible. */
  billed: Scaled | null;
  /** `amount - billed`. */
  difference: Scaled | null;
  /** Tokens of our calls of the same model, class and days; null without a model. */
  observedTokens: Scaled | null;
  /** Compared rows of the bill. */
  rows: readonly BilledSum[];
}

/** `close`: within a thousandth; lines were rounded, or a part of the bill is still provisional. */
export const TIES = ['exact', 'close', 'contradicts', 'not_comparable'] as const;
export type Tie = (typeof TIES)[number];

/** Reasons for no comparison; `shared_period`: a later invoice of the same days carries the difference. */
export const TIE_REASONS = ['no_bill', 'incomplete_bill', 'no_usage', 'no_rate', 'shared_period'] as const;
export type TieReason = (typeof TIE_REASONS)[number];

/** A difference that a person may confirm as the provider's mistake. */
export interface Contradiction {
  kind: 'duplicate_charge' | 'period_double_count' | 'invoice_total_mismatch';
  /** Affected lines; empty: the document as a whole. */
  lines: readonly number[];
  model: string | null;
  charged: Scaled;
  right: Scaled;
  /** One sentence without amounts. */
  cause: string;
}

export interface TieOut {
  tie: Tie;
  reason: TieReason | null;
  /** Sum of the charges that a bill can contain. */
  invoiced: Scaled;
  billed: Scaled | null;
  difference: Scaled | null;
  lines: readonly TiedLine[];
  contradictions: readonly Contradiction[];
}

/** Half a cent: the rounding of one printed amount. */
const HALF_CENT: Scaled = 5_000_000_000n;
/** A difference below this share of the bill is close. */
const CLOSE_DIVISOR = 1000n;

/** Categories of a bill for each kind of line; empty: no provider's API bills them. */
const CATEGORIES: Readonly<Record<LineKind, readonly ChargeCategory[]>> = {
  usage: ['usage'],
  credit: ['credit', 'refund', 'adjustment'],
  discount: ['credit', 'refund', 'adjustment'],
  tax: ['tax'],
  prepaid_purchase: ['purchase'],
  subscription: [],
  proration: [],
  other: ['adjustment'],
};

/**
 * Compares an invoice with the provider's own bill of the same days and with our calls: usage line by line, other kinds if
 * the bill has a category for them. Lines with the same rows share them in the order of the document, so a repeated line
 * has no rows left. All amounts are in one currency.
 */
export function tieOut(input: TieOutInput): TieOut {
  const { lines, bill } = input;
  const billedKinds = new Set(bill.rows.map(({ category }) => category));
  const isComparable = ({ kind }: TieOutLine) =>
    kind === 'usage' || CATEGORIES[kind].some((category) => billedKinds.has(category));
  const usage = lines.filter(({ kind }) => kind === 'usage');
  const invoiced = sumOf(usage.map(({ amount }) => amount));
  if (usage.length === 0) return notComparable(input, invoiced, 'no_usage');
  if (!billedKinds.has('usage')) return notComparable(input, invoiced, 'no_bill');
  const tied = tieLines(lines.filter(isComparable), input);
  const results = lines.map((line) => tied.get(line.line) ?? notBilled(line, input));
  const billed = sumOf(bill.rows.filter(isUsage).map(({ amount }) => amount));
  const { isShared, ...verdict } = judge(input, invoiced, billed, results);
  // A bill that ties is complete: there was no usage on its missing days.
  if (verdict.tie !== 'exact' && bill.missingDays.length > 0)
    return {
      ...{ tie: 'not_comparable', reason: 'incomplete_bill', invoiced, billed, ...NO_VERDICT },
      lines: results,
    };
  return { ...verdict, lines: isShared ? results.map(asShared(lines)) : results };
}

const NO_VERDICT = { difference: null, contradictions: [] } as const;
const isUsage = ({ category }: BilledSum) => category === 'usage';

function notComparable(input: TieOutInput, invoiced: Scaled, reason: TieReason): TieOut {
  const lines = input.lines.map(
    (line): TiedLine =>
      line.kind === 'usage' ? { ...notBilled(line, input), status: 'unmatched' } : notBilled(line, input),
  );
  return { tie: 'not_comparable', reason, invoiced, billed: null, ...NO_VERDICT, lines };
}

function notBilled(line: TieOutLine, input: TieOutInput): TiedLine {
  return {
    ...{ line: line.line, status: 'not_billed_by_api', billed: null, difference: null, rows: [] },
    observedTokens: observedOf(line, input),
  };
}

function observedOf(line: TieOutLine, { observed }: TieOutInput): Scaled | null {
  if (line.kind !== 'usage' || line.model === null || line.quantity === null) return null;
  const calls = observed.filter(
    (one) =>
      one.model === line.model &&
      (line.tokenClass === null || one.tokenClass === line.tokenClass) &&
      isWithin(one.day, line),
  );
  return sumOf(calls.map(({ tokens }) => tokens));
}

const isWithin = (day: string, { fromDay, toDay }: { fromDay: string; toDay: string }) =>
  day >= fromDay && day <= toDay;

/** Equally specific lines share the rows of the bill that they describe. */
function tieLines(lines: readonly TieOutLine[], input: TieOutInput): Map<number, TiedLine> {
  const tied = new Map<number, TiedLine>();
  const taken = new Set<BilledSum>();
  // A more specific line takes its rows first: "input tokens of a model" before "usage".
  const groups = [...groupBy(lines, subjectOf).values()].sort(([a], [b]) => detailOf(b) - detailOf(a));
  for (const group of groups) {
    const [first] = group;
    if (!first) continue;
    const rows = input.bill.rows.filter((row) => !taken.has(row) && isOf(row, first));
    for (const row of rows) taken.add(row);
    shareRows(group, rows, input, tied);
  }
  return tied;
}

const subjectOf = ({ kind, model, tokenClass, fromDay, toDay }: TieOutLine): string =>
  JSON.stringify([CATEGORIES[kind], model, tokenClass, fromDay, toDay]);

const detailOf = (line: TieOutLine | undefined): number => (line?.model ? 2 : 0) + (line?.tokenClass ? 1 : 0);

function isOf(row: BilledSum, line: TieOutLine): boolean {
  return (
    CATEGORIES[line.kind].includes(row.category) &&
    (line.model === null || row.model === line.model) &&
    (line.tokenClass === null || row.tokenClass === line.tokenClass) &&
    isWithin(row.day, line)
  );
}

/** Distributes the rows' sum over the lines in their order; the last line also takes the remainder. */
function shareRows(
  group: readonly TieOutLine[],
  rows: readonly BilledSum[],
  input: TieOutInput,
  tied: Map<number, TiedLine>,
): void {
  const tolerance = HALF_CENT * BigInt(group.length + 1);
  let left = sumOf(rows.map(({ amount }) => amount));
  for (const [at, line] of group.entries()) {
    const isLast = at === group.length - 1;
    const fits = absPico(line.amount - left) <= tolerance;
    const billed = fits || isLast || absPico(left) < absPico(line.amount) ? left : line.amount;
    left -= billed;
    const difference = line.amount - billed;
    tied.set(line.line, {
      ...{ line: line.line, billed, difference: fits ? 0n : difference, rows },
      status: statusOf(rows, billed, absPico(difference) <= tolerance),
      observedTokens: observedOf(line, input),
    });
  }
}

function statusOf(rows: readonly BilledSum[], billed: Scaled, isEqual: boolean): LineMatch {
  if (isEqual && rows.length > 0) return 'matched';
  return billed === 0n ? 'unmatched' : 'partial';
}

type Verdict = Pick<TieOut, 'tie' | 'reason' | 'invoiced' | 'billed' | 'difference' | 'contradictions'> & {
  isShared: boolean;
};

/**
 * Compares the usage of this invoice and its peers with the bill of the same days. If several invoices share the days,
 * their sum is compared, and the last one carries the difference.
 */
function judge(input: TieOutInput, gross: Scaled, billed: Scaled, tied: readonly TiedLine[]): Verdict {
  const { peers, lines } = input;
  const tolerance = HALF_CENT * BigInt(lines.length + 1 + peers.length);
  const ties = (amount: Scaled, other: Scaled) => absPico(amount - other) <= tolerance;
  const net = gross + input.discounts + sumOf(lines.filter(isDeduction).map(({ amount }) => amount));
  // Some bills state usage before discounts, some after them.
  const invoiced = !ties(gross, billed) && ties(net, billed) ? net : gross;
  const verdict = { reason: null, invoiced, billed, difference: invoiced - billed, isShared: false };
  const sumOfPeers = (some: readonly PeerInvoice[]) => sumOf(some.map(({ usage }) => usage));
  const others = sumOfPeers(peers);
  const earlier = peers.filter(({ isEarlier }) => isEarlier);
  const [first] = earlier;
  const before = sumOfPeers(earlier);
  const beforeOnce = before - sumOf(earlier.map(({ repeated }) => repeated));
  if (others !== 0n && ties(invoiced + others, billed))
    return { ...verdict, tie: 'exact', billed: invoiced, difference: 0n, contradictions: [], isShared: true };
  if (first && (ties(before, billed) || ties(beforeOnce, billed))) {
    const contradictions = [billedTwice(input, first, invoiced)];
    return { ...verdict, tie: 'contradicts', billed: 0n, difference: invoiced, contradictions };
  }
  if (ties(invoiced, billed)) return { ...verdict, tie: 'exact', difference: 0n, contradictions: [] };
  const repeated = repeatedLines(lines, tied);
  const excess = sumOf(repeated.map(({ charged }) => charged));
  if (excess !== 0n && ties(invoiced - excess, billed))
    return {
      ...{ ...verdict, tie: 'contradicts', contradictions: repeated },
      ...{ billed: invoiced - excess, difference: excess },
    };
  if (earlier.length < peers.length)
    return { ...verdict, tie: 'not_comparable', reason: 'shared_period', ...NO_VERDICT };
  const difference = invoiced + others - billed;
  const tie = absPico(difference) * CLOSE_DIVISOR <= absPico(billed) ? 'close' : 'contradicts';
  const contradictions = explain(input, tied, { difference, invoiced, tolerance });
  return { ...verdict, tie, billed: invoiced - difference, difference, contradictions };
}

const isDeduction = ({ kind }: TieOutLine) => kind === 'discount' || kind === 'credit';

function billedTwice({ number, lines }: TieOutInput, first: PeerInvoice, invoiced: Scaled): Contradiction {
  return {
    ...{ kind: 'period_double_count', model: null, charged: invoiced, right: 0n },
    lines: lines.filter(({ kind }) => kind === 'usage').map(({ line }) => line),
    cause: `Invoice ${number} charges for days that invoice ${first.number} has charged in full.`,
  };
}

/** Repeated lines that explain the difference, and the remainder. */
function explain(
  { number, lines }: TieOutInput,
  tied: readonly TiedLine[],
  { difference, invoiced, tolerance }: { difference: Scaled; invoiced: Scaled; tolerance: Scaled },
): Contradiction[] {
  const found: Contradiction[] = [];
  let rest = difference;
  for (const repeated of repeatedLines(lines, tied)) {
    if (repeated.charged > rest + tolerance) continue;
    found.push(repeated);
    rest -= repeated.charged;
  }
  if (absPico(rest) > tolerance)
    found.push({
      ...{
        kind: 'invoice_total_mismatch',
        lines: [],
        model: null,
        charged: invoiced,
        right: invoiced - rest,
      },
      cause: `Invoice ${number} charges another amount for usage than the provider’s own bill of the same days.`,
    });
  return found;
}

/** On shared days a line below its rows is matched: the rest belongs to other invoices. */
function asShared(lines: readonly TieOutLine[]): (tied: TiedLine) => TiedLine {
  const amounts = new Map(lines.map(({ line, amount }) => [line, amount]));
  return (tied) => {
    const amount = amounts.get(tied.line) ?? 0n;
    const isWithinRows = tied.status === 'partial' && tied.billed !== null && tied.billed >= amount;
    return isWithinRows ? { ...tied, status: 'matched', billed: amount, difference: 0n } : tied;
  };
}

/** Lines that repeat an earlier line and have no rows on the bill. */
function repeatedLines(lines: readonly TieOutLine[], tied: readonly TiedLine[]): Contradiction[] {
  const statusOfLine = new Map(tied.map((one) => [one.line, one]));
  const seen = new Map<string, TieOutLine>();
  const found: Contradiction[] = [];
  for (const line of lines) {
    if (line.kind !== 'usage') continue;
    const key = JSON.stringify(
      [
        line.description.toLowerCase().replace(/\s+/g, ' '),
        line.quantity,
        line.unitPrice,
        line.amount,
        line.fromDay,
        line.toDay,
      ],
      (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value),
    );
    const first = seen.get(key);
    if (!first) seen.set(key, line);
    else if (statusOfLine.get(line.line)?.status === 'unmatched' && line.amount > 0n)
      found.push({
        ...{ kind: 'duplicate_charge', model: line.model, charged: line.amount, right: 0n },
        lines: [first.line, line.line],
        cause: `Line ${line.line} repeats line ${first.line} of the invoice, and the provider’s own bill has the charge once.`,
      });
  }
  return found;
}

/** An amount of another currency in dollars, at dollars for one unit. */
export function convert(amount: Scaled, rate: Scaled): Scaled {
  return divideHalfEven(amount * rate, 1_000_000_000_000n);
}

function sumOf(amounts: readonly Scaled[]): Scaled {
  return amounts.reduce((sum, amount) => sum + amount, 0n);
}
