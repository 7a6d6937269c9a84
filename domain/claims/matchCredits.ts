import { groupBy } from '../groupBy.js';
import { divideHalfEven, type Pico } from '../money.js';
import { inOrder } from './draft.js';

/** Matches credits on later bills with claims (docs/claims.md, “Credits”). */

const PICO_PER_CENT = 10n ** 10n;

export interface CreditRow {
  /** Equal for the same row in every copy of the bill. */
  key: string;
  accountId: string;
  day: string;
  /** The end of the credited period: a monthly row is stored on the month's first day. */
  endMicros: bigint;
  /** The returned amount, above zero. */
  amountPico: Pico;
  /** The provider's label, verbatim. */
  description: string;
  /** Whether the bill categorises it as usage: then it must match to the cent. */
  isUsage: boolean;
}

/** A claim that credits of its provider may answer. */
export interface CreditableClaim {
  id: string;
  /** '': unknown, so any account of the provider may match. */
  accountId: string;
  submittedAtMicros: bigint;
  /** Both inclusive. */
  periodStart: string;
  periodEnd: string;
  /** The outstanding amount: the claimed amount less proposed and accepted credits, or the announced credit. */
  wantedCents: bigint;
  /** false: somebody recorded a credit, so only credits that match it to the cent are its answer. */
  isOpen: boolean;
  /** References that a description may contain: the provider’s ticket and our own id. */
  tickets: readonly string[];
}

export interface FoundCredit {
  claimId: string;
  cents: bigint;
  rows: readonly { row: CreditRow; cents: bigint }[];
}

/** Whether this row was rejected for this claim before. */
type IsRefused = (claimId: string, rowKey: string) => boolean;

/** A claim and the strength of a description's reference to it: 2 its ticket, 1 its period, 0 neither. */
interface Candidate {
  claim: CreditableClaim;
  named: number;
}

/**
 * Matches single rows that equal a claim, then rows of one day or label, then partial rows that name it; ambiguous
 * ones match nothing.
 */
export function matchCredits(
  claims: readonly CreditableClaim[],
  rows: readonly CreditRow[],
  isRefused: IsRefused = () => false,
): FoundCredit[] {
  const search = new Search(claims, isRefused);
  const sorted = [...rows].sort(
    (a, b) => search.bestNamed(b) - search.bestNamed(a) || inOrder([a.day, a.key], [b.day, b.key]),
  );
  for (const row of sorted) search.tie([row]);
  for (const group of groupsOf(sorted.filter((row) => search.isLeft(row)))) search.tie(group);
  for (const row of sorted) search.takePart(row);
  return search.found;
}

class Search {
  readonly found: FoundCredit[] = [];
  private readonly taken = new Set<string>();
  private readonly wanted: Map<string, bigint>;
  private readonly claims: readonly CreditableClaim[];

  constructor(
    claims: readonly CreditableClaim[],
    private readonly isRefused: IsRefused,
  ) {
    this.claims = [...claims].sort((a, b) => inOrder([a.id], [b.id]));
    this.wanted = new Map(claims.map(({ id, wantedCents }) => [id, wantedCents]));
  }

  isLeft({ key }: CreditRow): boolean {
    return !this.taken.has(key);
  }

  bestNamed(row: CreditRow): number {
    return Math.max(0, ...this.claims.map((claim) => namedBy(claim, [row])));
  }

  /** Matches rows that equal a claim's outstanding amount to the cent; of several claims the named one, else none. */
  tie(rows: readonly CreditRow[]): void {
    if (rows.some(({ key }) => this.taken.has(key))) return;
    const cents = divideHalfEven(sumOf(rows), PICO_PER_CENT);
    const fits = this.candidatesOf(rows).filter(({ claim }) => cents > 0n && this.wantedOf(claim) === cents);
    const claim = onlyOf(fits);
    if (claim) this.take(claim, rows, cents);
    // An ambiguous full match must not be used as a partial match either.
    else if (fits.length > 1) for (const { key } of rows) this.taken.add(key);
  }

  /** Matches a row below a claim's outstanding amount if the row names the claim. */
  takePart(row: CreditRow): void {
    if (this.taken.has(row.key) || row.isUsage) return;
    const cents = row.amountPico / PICO_PER_CENT;
    const claim = onlyOf(
      this.candidatesOf([row]).filter(
        ({ claim, named }) => claim.isOpen && named > 0 && cents > 0n && cents <= this.wantedOf(claim),
      ),
    );
    if (claim) this.take(claim, [row], cents);
  }

  /** The claims that rows may answer; a named ticket excludes all others. */
  private candidatesOf(rows: readonly CreditRow[]): Candidate[] {
    const all = this.claims
      .filter((claim) =>
        rows.every(
          (row) =>
            (claim.accountId === '' || claim.accountId === row.accountId) &&
            row.endMicros > claim.submittedAtMicros &&
            !this.isRefused(claim.id, row.key),
        ),
      )
      .map((claim) => ({ claim, named: namedBy(claim, rows) }));
    const byTicket = all.filter(({ named }) => named === 2);
    return byTicket.length > 0 ? byTicket : all;
  }

  private wantedOf({ id }: CreditableClaim): bigint {
    return this.wanted.get(id) ?? 0n;
  }

  private take(claim: CreditableClaim, rows: readonly CreditRow[], cents: bigint): void {
    for (const { key } of rows) this.taken.add(key);
    this.wanted.set(claim.id, this.wantedOf(claim) - cents);
    this.found.push({ claimId: claim.id, cents, rows: shareCents(rows, cents) });
  }
}

/** The only candidate, or the best named one. */
function onlyOf(candidates: readonly Candidate[]): CreditableClaim | undefined {
  const best = Math.max(0, ...candidates.map(({ named }) => named));
  const [first, ...others] = candidates.filter(({ named }) => named === best);
  return others.length === 0 ? first?.claim : undefined;
}

function namedBy(claim: CreditableClaim, rows: readonly CreditRow[]): number {
  if (rows.some(({ description }) => claim.tickets.some((ticket) => namesTicket(description, ticket))))
    return 2;
  return rows.every(({ description }) => namesPeriod(description, claim)) ? 1 : 0;
}

/** Rows of one account that may be one credit: of one label and day, of one day, or of one label and month. */
function groupsOf(rows: readonly CreditRow[]): CreditRow[][] {
  const ways: ((row: CreditRow) => string[])[] = [
    ({ accountId, day, description }) => [accountId, day, description],
    ({ accountId, day }) => [accountId, day],
    ({ accountId, day, description }) => [accountId, day.slice(0, 7), description],
  ];
  return ways.flatMap((nameOf) => {
    const groups = groupBy(rows, (row) => JSON.stringify(nameOf(row)));
    return [...groups].sort(([a], [b]) => inOrder([a], [b])).flatMap(([, of]) => (of.length > 1 ? [of] : []));
  });
}

/** Divides cents among the rows by cumulative sums, so that they add up to the whole. */
function shareCents(rows: readonly CreditRow[], cents: bigint): FoundCredit['rows'] {
  const inDays = [...rows].sort((a, b) => inOrder([a.day, a.key], [b.day, b.key]));
  let sum = 0n;
  let given = 0n;
  return inDays.map((row, at) => {
    sum += row.amountPico;
    const upTo = at === inDays.length - 1 ? cents : sum / PICO_PER_CENT;
    const share = upTo - given;
    given = upTo;
    return { row, cents: share };
  });
}

const sumOf = (rows: readonly CreditRow[]): Pico =>
  rows.reduce((sum, { amountPico }) => sum + amountPico, 0n);

/** Shorter references occur in too many texts by chance. */
const TICKET_CHARS_MIN = 4;

const MONTHS = [
  ...['january', 'february', 'march', 'april', 'may', 'june'],
  ...['july', 'august', 'september', 'october', 'november', 'december'],
];

/** Whether a text contains a reference as a word, ignoring case. */
function namesTicket(description: string, ticket: string): boolean {
  const wanted = ticket.trim().toLowerCase();
  if (wanted.length < TICKET_CHARS_MIN) return false;
  return hasWord(description.toLowerCase(), wanted);
}

/** Whether a text names a month of the period: `2026-03`, `2026/03`, `03/2026`, `March 2026`, `Mar 2026`. */
function namesPeriod(
  description: string,
  { periodStart, periodEnd }: { periodStart: string; periodEnd: string },
): boolean {
  const text = description.toLowerCase();
  return monthsBetween(periodStart, periodEnd).some((month) =>
    formsOf(month).some((form) => hasWord(text, form)),
  );
}

/** The months, `YYYY-MM`, from that of `from` to that of `to`. */
function monthsBetween(from: string, to: string): string[] {
  const numberOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1;
  const first = numberOf(from);
  return Array.from({ length: Math.max(0, numberOf(to) - first + 1) }, (_, at) => {
    const month = first + at;
    return `${Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, '0')}`;
  });
}

function formsOf(month: string): string[] {
  const [year = '', number = ''] = month.split('-');
  const name = MONTHS[Number(number) - 1] ?? '';
  const short = name.slice(0, 3);
  return [
    ...[month, `${year}/${number}`, `${number}/${year}`, `${year}${number}`],
    ...[`${name} ${year}`, `${short} ${year}`, `${name}, ${year}`, `${short}-${year}`],
  ];
}

/** Whether a text contains another one without a letter or digit right before or after it. */
function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isWordCharacter(text[at - 1]) && !isWordCharacter(text[at + word.length])) return true;
  }
  return false;
}

const isWordCharacter = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}]/u.test(character);
