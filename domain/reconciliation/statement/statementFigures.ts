import type { ChargeCategory } from '../../billing/billedRow.js';
import { nextMonth } from '../../billing/periods.js';
import { compare } from '../../compare.js';
import type { Pico } from '../../money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../period.js';
import { type BucketReason, GRADES, type Grade } from '../matching/cells.js';
import type { DayCharge } from '../matching/charges.js';

/**
 * The figures of a statement for one account, one provider or all: the billed amounts, their parts, and the
 * certainty with which they match usage. All are sums, so figures of parts add up to those of the whole.
 */
export interface StatementFigures {
  /** Usage at list, as far as it has a price. */
  listPico: Pico;
  /** List − agreed, by the organization's contract. */
  contractDiscountPico: Pico;
  /** The bill's own list price − billed, if the quantity has no price. */
  otherDiscountPico: Pico;
  /** Billed − agreed: charged above (positive) or below the agreed rate. */
  rateDifferencePico: Pico;
  /** Billed usage without a known list price. list − discounts + rate difference + this = usage. */
  notPricedPico: Pico;
  /**
   * For a closed month: billed usage at its closing − billed usage by the present bills. An item of both sums of
   * usage.
   */
  restatedPico: Pico;
  /** The list price of usage at amount zero; part of no other figure. */
  freeAllowancePico: Pico;
  /** Billed amounts by category; they add up to the invoice. */
  billed: Record<ChargeCategory, Pico>;
  /** Billed usage that observed calls explain, by grade. */
  verified: Record<Grade, Pico>;
  /** The remaining billed usage by state; with `verified` these add up to the billed usage. */
  notObservablePico: Pico;
  notYetObservedPico: Pico;
  /** Days whose bill changed after the last comparison. */
  notComparedPico: Pico;
  /** Compared only as a sum over the provider's accounts; zero for a provider and for the total. */
  acrossAccountsPico: Pico;
  /** Usage that no call matches: `explainedByFindingsOf` + `unexplained`. */
  notMatchedPico: Pico;
  /** The part of `notMatched` that was charged above the agreed rate. */
  notMatchedRatePico: Pico;
  /** Dollars that neither calls nor findings nor nuisances explain, in whole cents, as in the financial summary. */
  unexplainedPico: Pico;
  /** The sum of explained findings less undercharges; part of no sum. */
  inFindingsPico: Pico;
  /** Presently disputed dollars of these days, claimed or not; part of no sum. */
  disputedPico: Pico;
  /** Credits of providers on claims for these days, at any time; part of no sum. */
  creditedPico: Pico;
}

export function noFigures(): StatementFigures {
  return {
    listPico: 0n,
    contractDiscountPico: 0n,
    otherDiscountPico: 0n,
    rateDifferencePico: 0n,
    notPricedPico: 0n,
    restatedPico: 0n,
    freeAllowancePico: 0n,
    billed: { usage: 0n, tax: 0n, credit: 0n, refund: 0n, purchase: 0n, adjustment: 0n },
    verified: { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n },
    notObservablePico: 0n,
    notYetObservedPico: 0n,
    notComparedPico: 0n,
    acrossAccountsPico: 0n,
    notMatchedPico: 0n,
    notMatchedRatePico: 0n,
    unexplainedPico: 0n,
    inFindingsPico: 0n,
    disputedPico: 0n,
    creditedPico: 0n,
  };
}

type AmountName = Exclude<keyof StatementFigures, 'billed' | 'verified'>;

export function addFigures(whole: StatementFigures, part: StatementFigures): void {
  for (const name of Object.keys(part) as (keyof StatementFigures)[])
    if (name !== 'billed' && name !== 'verified') whole[name as AmountName] += part[name as AmountName];
  for (const category of Object.keys(part.billed) as ChargeCategory[])
    whole.billed[category] += part.billed[category];
  for (const grade of GRADES) whole.verified[grade] += part.verified[grade];
}

/** The sum of all charges and credits: the invoice. */
export function invoiceTotalOf({ billed }: StatementFigures): Pico {
  return Object.values(billed).reduce((total, amount) => total + amount, 0n);
}

/** List − billed of everything with a price, signed: charges above the agreed rate reduce it. */
export function discountsOf(figures: StatementFigures): Pico {
  return figures.contractDiscountPico + figures.otherDiscountPico - figures.rateDifferencePico;
}

/** The part of not matched usage that is not unexplained: findings, nuisances, and decided or provisional days. */
export function explainedByFindingsOf({ notMatchedPico, unexplainedPico }: StatementFigures): Pico {
  return notMatchedPico - unexplainedPico;
}

/** Adds a charge's list price and its parts; false: it has no list price and must be listed. */
export function addCharge(figures: StatementFigures, charge: DayCharge): boolean {
  const { verdict, billedPico, agreedPico, listPico, givenListPico } = charge;
  if (verdict === 'free_allowance') {
    figures.freeAllowancePico += listPico ?? givenListPico ?? 0n;
    return true;
  }
  const isJudged = verdict === 'as_agreed' || verdict === 'differs';
  if (isJudged && agreedPico !== null && listPico !== null) {
    figures.listPico += listPico;
    figures.contractDiscountPico += listPico - agreedPico;
    figures.rateDifferencePico += billedPico - agreedPico;
    return true;
  }
  if (givenListPico !== null) {
    figures.listPico += givenListPico;
    figures.otherDiscountPico += givenListPico - billedPico;
    return true;
  }
  figures.notPricedPico += billedPico;
  return billedPico === 0n;
}

/** A published bucket of a day whose bill has not changed since the comparison. */
export interface ComparedBucket {
  provider: string;
  /** '': calls of unknown account are compared with the sum over all accounts. */
  accountId: string;
  day: string;
  grade: Grade;
  reason: BucketReason | null;
  providerCostPico: Pico;
  matchedPico: Pico;
  /** null: the bill has no quantities. */
  ratePico: Pico | null;
}

export function addBucket(figures: StatementFigures, bucket: ComparedBucket): void {
  const { reason, ratePico } = bucket;
  figures.verified[bucket.grade] += bucket.matchedPico;
  const rest = bucket.providerCostPico - bucket.matchedPico;
  if (reason === 'not_observable' || reason === 'free_allowance') figures.notObservablePico += rest;
  else if (reason === 'not_yet_observed') figures.notYetObservedPico += rest;
  else {
    figures.notMatchedPico += rest;
    if (ratePico !== null && ratePico > 0n && rest > 0n)
      figures.notMatchedRatePico += ratePico < rest ? ratePico : rest;
  }
}

/** The copy of an account's bill that counts for a day. */
export interface CountedCopy {
  provider: string;
  accountId: string;
  day: string;
  kind: 'file' | 'api';
  /** The id of the import, or of the connection that fetched it. */
  sourceId: string;
  /** The name of the file or connection. */
  name: string;
  /** The time when it was read, or when the provider last confirmed it. */
  toldAtMicros: bigint;
  /** Days from a day's start in which the provider may still restate it. */
  provisionalDays: number;
  /** The provider closes all days of a month at once: every day has another number of days. */
  closesWithMonth: boolean;
}

/** Days of an account, first and last included. */
export interface DayRange {
  provider: string;
  accountId: string;
  firstDay: string;
  lastDay: string;
  days: number;
}

/** A source of the month's bill, with the days for which it counts. */
export interface StatementSource extends DayRange {
  kind: CountedCopy['kind'];
  sourceId: string;
  name: string;
  /** The latest time when it was read or confirmed. */
  toldAtMicros: bigint;
}

export type StatementStatus = 'final' | 'provisional' | 'no_billing_data';

/** The finality of a month's bill, and its missing days. */
export interface MonthCoverage {
  status: StatementStatus;
  /** The first day on which no day of the month can be restated any more. */
  finalFrom: string;
  /** Days whose bill the provider may still restate, or whose copy was read while it could. */
  provisional: DayRange[];
  /** Provisional days that only a newer copy of the bill makes final. */
  staleCopies: DayRange[];
  /** Past days without a bill, whose cost is unknown instead of zero. */
  missing: DayRange[];
  sources: StatementSource[];
}

interface AccountDay {
  provider: string;
  accountId: string;
  day: string;
}

export interface CoverageInput {
  firstDay: string;
  nowMicros: bigint;
  copies: readonly CountedCopy[];
  /** The days with billed rows of any category. */
  billedDays: readonly AccountDay[];
  /** Accounts that are expected to have a bill. */
  accounts: readonly { provider: string; accountId: string }[];
}

/** Used if a provider's restatement time is unknown (the shortest known one). */
const PROVISIONAL_DAYS_MIN = 2;

/** The facts of a month's bill beside its amounts. */
export function coverageOf(input: CoverageInput): MonthCoverage {
  return { ...finalityOf(input), missing: missingDays(input), sources: sourcesOf(input.copies) };
}

type Finality = Omit<MonthCoverage, 'missing' | 'sources'>;

function finalityOf(input: CoverageInput): Finality {
  const end = microsOfDay(nextMonth(input.firstDay));
  const closedFrom = (day: bigint, days: number) => day + BigInt(days) * MICROS_PER_DAY;
  const lastDay = end - MICROS_PER_DAY;
  const monthClosed = input.copies.map(({ day, provisionalDays, closesWithMonth }) =>
    closedFrom(closesWithMonth ? microsOfDay(day) : lastDay, provisionalDays),
  );
  const latest = monthClosed.reduce((most, one) => (one > most ? one : most), lastDay);
  const finalFrom = latest === lastDay ? closedFrom(lastDay, PROVISIONAL_DAYS_MIN) : latest;
  const open = input.copies.filter((copy) => {
    const from = closedFrom(microsOfDay(copy.day), copy.provisionalDays);
    return input.nowMicros < from || copy.toldAtMicros < from;
  });
  const stale = open.filter(
    (copy) => input.nowMicros >= closedFrom(microsOfDay(copy.day), copy.provisionalDays),
  );
  const isFinal = open.length === 0 && input.nowMicros >= finalFrom;
  return {
    status: input.copies.length === 0 ? 'no_billing_data' : isFinal ? 'final' : 'provisional',
    finalFrom: dayOf(finalFrom),
    provisional: rangesOf(open),
    staleCopies: rangesOf(stale),
  };
}

/** Past days of the month without any billed row, by account. */
function missingDays(input: CoverageInput): DayRange[] {
  const billed = new Set(
    input.billedDays.map(({ provider, accountId, day }) => `${provider}\n${accountId}\n${day}`),
  );
  const end = microsOfDay(nextMonth(input.firstDay));
  const missing: AccountDay[] = [];
  for (const { provider, accountId } of input.accounts) {
    for (let micros = microsOfDay(input.firstDay); micros < end; micros += MICROS_PER_DAY) {
      const day = dayOf(micros);
      const isOver = micros + MICROS_PER_DAY <= input.nowMicros;
      if (isOver && !billed.has(`${provider}\n${accountId}\n${day}`))
        missing.push({ provider, accountId, day });
    }
  }
  return rangesOf(missing);
}

/** Consecutive days of an account as ranges, by provider, account and day. */
export function rangesOf(days: readonly AccountDay[]): DayRange[] {
  const sorted = [...days].sort(
    (a, b) => compare(a.provider, b.provider) || compare(a.accountId, b.accountId) || compare(a.day, b.day),
  );
  const ranges: DayRange[] = [];
  for (const { provider, accountId, day } of sorted) {
    const last = ranges.at(-1);
    const isSame = last?.provider === provider && last.accountId === accountId;
    if (last && isSame && last.lastDay === day) continue;
    if (last && isSame && day === shiftDay(last.lastDay, 1)) {
      last.lastDay = day;
      last.days += 1;
    } else ranges.push({ provider, accountId, firstDay: day, lastDay: day, days: 1 });
  }
  return ranges;
}

/** Sources and their days: one entry for each source and account, also if the days have gaps. */
function sourcesOf(copies: readonly CountedCopy[]): StatementSource[] {
  const sources = new Map<string, { source: StatementSource; seen: Set<string> }>();
  for (const { provider, accountId, kind, sourceId, name, toldAtMicros, day } of copies) {
    const key = [provider, accountId, sourceId].join('\n');
    const range = { provider, accountId, firstDay: day, lastDay: day, days: 1 };
    const known = sources.get(key) ?? {
      source: { ...range, kind, sourceId, name, toldAtMicros },
      seen: new Set<string>(),
    };
    sources.set(key, known);
    const { source, seen } = known;
    source.days = seen.add(day).size;
    if (day < source.firstDay) source.firstDay = day;
    if (day > source.lastDay) source.lastDay = day;
    if (toldAtMicros > source.toldAtMicros) source.toldAtMicros = toldAtMicros;
  }
  const order = ({ provider, accountId, firstDay, sourceId }: StatementSource) =>
    [provider, accountId, firstDay, sourceId].join('\n');
  return [...sources.values()].map(({ source }) => source).sort((a, b) => compare(order(a), order(b)));
}
