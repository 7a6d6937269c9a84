import type { BilledClass, ChargeCategory } from '../billing/billedRow.js';
import { absPico, type Pico } from '../money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../period.js';
import type { DayCharge } from './charges.js';
import type { UnjudgedReason } from './judgeMeter.js';
import {
  addBucket,
  addCharge,
  addFigures,
  type ComparedBucket,
  noFigures,
  type StatementFigures,
} from './statementFigures.js';
import { nextMonth } from './summary.js';

/** What an account was billed on a day in one category. */
export interface StatementTotal {
  provider: string;
  accountId: string;
  day: string;
  chargeCategory: ChargeCategory;
  amountPico: Pico;
}

/** The copy of an account's bill that counts for a day. */
export interface CountedCopy {
  provider: string;
  accountId: string;
  day: string;
  sourceId: string;
  filename: string;
  /** When it was read, or last confirmed by the provider. */
  fetchedAtMicros: bigint;
  /** For so many days from a day's beginning the provider may still restate it. */
  provisionalDays: number;
}

export interface StatementInput {
  /** First day of the month. */
  firstDay: string;
  nowMicros: bigint;
  totals: readonly StatementTotal[];
  /** Usage charges of the month, provider-day by provider-day. */
  charges: readonly { provider: string; charges: readonly DayCharge[] }[];
  compared: readonly ComparedBucket[];
  copies: readonly CountedCopy[];
  /** Accounts that had a bill in this month or in the months beside it. */
  accounts: readonly { provider: string; accountId: string }[];
}

/** Days of an account, first and last included. */
export interface DayRange {
  provider: string;
  accountId: string;
  firstDay: string;
  lastDay: string;
  days: number;
}

/** Billed usage without a list price, by label and why. */
export interface NotPriced {
  provider: string;
  accountId: string;
  label: string;
  tokenClass: BilledClass;
  reason: UnjudgedReason | 'no_list_price';
  billedPico: Pico;
}

export type StatementStatus = 'final' | 'provisional' | 'no_billing_data';

export interface AccountStatement extends StatementFigures {
  provider: string;
  accountId: string;
}

export interface ProviderStatement extends StatementFigures {
  provider: string;
}

export interface Statement {
  /** `YYYY-MM` */
  period: string;
  status: StatementStatus;
  /** The first day on which no day of the month can be restated any more. */
  finalFrom: string;
  accounts: AccountStatement[];
  providers: ProviderStatement[];
  total: StatementFigures;
  /** Largest amount first. */
  notPriced: NotPriced[];
  /** Days that are over and have no bill: they are not free, nobody knows what they cost. */
  missing: DayRange[];
  /** Days whose bill the provider may still restate, or whose copy was read while it could. */
  provisional: DayRange[];
  /** Of these: days that only a newer copy of the bill makes final. */
  staleCopies: DayRange[];
  sources: StatementSource[];
}

/** A source of the month's bill, with the days for which it counts. */
export interface StatementSource extends DayRange {
  sourceId: string;
  filename: string;
  fetchedAtMicros: bigint;
}

/** Where nothing says how long a provider restates its days (billing-facts A.7: the shortest known). */
const PROVISIONAL_DAYS_MIN = 2;

/** The month's statement: pure, the same for the same input. */
export function buildStatement(input: StatementInput): Statement {
  const accounts = new Map<string, AccountStatement>();
  const accountOf = (provider: string, accountId: string): AccountStatement => {
    const key = `${provider}\n${accountId}`;
    const known = accounts.get(key) ?? { provider, accountId, ...noFigures() };
    accounts.set(key, known);
    return known;
  };
  for (const total of input.totals)
    accountOf(total.provider, total.accountId).billed[total.chargeCategory] += total.amountPico;
  const notPriced = priceCharges(input, accountOf);
  const shared = verify(input, accountOf);
  const listed = [...accounts.values()].sort(
    (a, b) => compare(a.provider, b.provider) || compare(a.accountId, b.accountId),
  );
  const providers = sumProviders(listed, shared);
  const total = noFigures();
  for (const provider of providers) addFigures(total, provider);
  return {
    period: input.firstDay.slice(0, 7),
    ...statusOf(input),
    accounts: listed,
    providers,
    total,
    notPriced,
    missing: missingDays(input),
    sources: sourcesOf(input.copies),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

type AccountOf = (provider: string, accountId: string) => AccountStatement;

function priceCharges(input: StatementInput, accountOf: AccountOf): NotPriced[] {
  const named = new Map<string, NotPriced>();
  for (const { provider, charges } of input.charges) {
    for (const charge of charges) {
      const { accountId, label, tokenClass, verdict, billedPico } = charge;
      if (addCharge(accountOf(provider, accountId), charge)) continue;
      const reason = verdict === 'as_agreed' || verdict === 'differs' ? 'no_list_price' : verdict;
      const key = [provider, accountId, label, tokenClass, reason].join('\n');
      const known = named.get(key);
      if (known) known.billedPico += billedPico;
      else named.set(key, { provider, accountId, label, tokenClass, reason, billedPico });
    }
  }
  return [...named.values()].sort((a, b) => {
    const [left, right] = [absPico(a.billedPico), absPico(b.billedPico)];
    return left === right ? compare(a.label, b.label) : left > right ? -1 : 1;
  });
}

/**
 * Adds what the runs verified. A provider-day counts as compared when it has buckets. What an account was billed on such
 * a day and none of its own buckets holds was compared as a sum over accounts; these sums come back by provider.
 */
function verify(input: StatementInput, accountOf: AccountOf): Map<string, StatementFigures> {
  const shared = new Map<string, StatementFigures>();
  const comparedDays = new Set<string>();
  for (const bucket of input.compared) {
    comparedDays.add(`${bucket.provider}\n${bucket.day}`);
    if (bucket.accountId !== '') {
      const account = accountOf(bucket.provider, bucket.accountId);
      addBucket(account, bucket);
      account.acrossAccountsPico -= bucket.providerCostPico;
      continue;
    }
    const figures = shared.get(bucket.provider) ?? noFigures();
    addBucket(figures, bucket);
    figures.acrossAccountsPico -= bucket.providerCostPico;
    shared.set(bucket.provider, figures);
  }
  for (const { provider, accountId, day, chargeCategory, amountPico } of input.totals) {
    if (chargeCategory !== 'usage') continue;
    const account = accountOf(provider, accountId);
    if (comparedDays.has(`${provider}\n${day}`)) account.acrossAccountsPico += amountPico;
    else account.notComparedPico += amountPico;
  }
  return shared;
}

function sumProviders(
  accounts: readonly AccountStatement[],
  shared: ReadonlyMap<string, StatementFigures>,
): ProviderStatement[] {
  const providers = new Map<string, ProviderStatement>();
  for (const { provider, accountId: _, ...figures } of accounts) {
    const known = providers.get(provider) ?? { provider, ...noFigures() };
    addFigures(known, figures);
    providers.set(provider, known);
  }
  for (const [provider, figures] of shared) {
    const known = providers.get(provider);
    if (known) addFigures(known, figures);
  }
  return [...providers.values()];
}

type Finality = Pick<Statement, 'status' | 'finalFrom' | 'provisional' | 'staleCopies'>;

function statusOf(input: StatementInput): Finality {
  const end = microsOfDay(nextMonth(input.firstDay));
  const window = input.copies.reduce((most, copy) => Math.max(most, copy.provisionalDays), 0);
  const closedFrom = (day: bigint, days: number) => day + BigInt(days) * MICROS_PER_DAY;
  const finalFrom = closedFrom(end - MICROS_PER_DAY, window === 0 ? PROVISIONAL_DAYS_MIN : window);
  const open = input.copies.filter((copy) => {
    const from = closedFrom(microsOfDay(copy.day), copy.provisionalDays);
    return input.nowMicros < from || copy.fetchedAtMicros < from;
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

/** Days of the month that are over, by account, without a row of any bill. */
function missingDays(input: StatementInput): DayRange[] {
  const billed = new Set(
    input.totals.map(({ provider, accountId, day }) => `${provider}\n${accountId}\n${day}`),
  );
  const end = microsOfDay(nextMonth(input.firstDay));
  const missing: { provider: string; accountId: string; day: string }[] = [];
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
export function rangesOf(days: readonly { provider: string; accountId: string; day: string }[]): DayRange[] {
  const sorted = [...days].sort(
    (a, b) => compare(a.provider, b.provider) || compare(a.accountId, b.accountId) || compare(a.day, b.day),
  );
  const ranges: DayRange[] = [];
  for (const { provider, accountId, day } of sorted) {
    const last = ranges.at(-1);
    const isSame = last?.provider === provider && last.accountId === accountId;
    if (last && isSame && last.lastDay === day) continue;
    if (last && isSame && microsOfDay(day) - microsOfDay(last.lastDay) === MICROS_PER_DAY) {
      last.lastDay = day;
      last.days += 1;
    } else ranges.push({ provider, accountId, firstDay: day, lastDay: day, days: 1 });
  }
  return ranges;
}

/** Sources and what they count for: one entry for each source and account, however its days lie. */
function sourcesOf(copies: readonly CountedCopy[]): StatementSource[] {
  const sources = new Map<string, StatementSource & { seen: Set<string> }>();
  for (const { provider, accountId, sourceId, filename, fetchedAtMicros, day } of copies) {
    const key = [provider, accountId, sourceId].join('\n');
    const known = sources.get(key);
    if (!known) {
      const range = { provider, accountId, firstDay: day, lastDay: day, days: 1 };
      sources.set(key, { ...range, sourceId, filename, fetchedAtMicros, seen: new Set([day]) });
      continue;
    }
    known.seen.add(day);
    known.days = known.seen.size;
    if (day < known.firstDay) known.firstDay = day;
    if (day > known.lastDay) known.lastDay = day;
  }
  return [...sources.values()]
    .map(({ seen: _, ...source }) => source)
    .sort(
      (a, b) =>
        compare(a.provider, b.provider) ||
        compare(a.accountId, b.accountId) ||
        compare(a.firstDay, b.firstDay) ||
        compare(a.sourceId, b.sourceId),
    );
}
