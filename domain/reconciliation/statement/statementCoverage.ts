import { nextMonth } from '../../billing/periods/month.js';
import { compare } from '../../compare.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../period.js';

/** The copy of an account's bill that counts for a day. */
export interface CountedCopy {
  provider: string;
  accountId: string;
  day: string;
  kind: 'file' | 'api';
  /** Of the import, or of the connection that fetched it. */
  sourceId: string;
  /** Of the file, or of the connection. */
  name: string;
  /** When it was read, or the provider last said the same. */
  toldAtMicros: bigint;
  /** For so many days from a day's beginning the provider may still restate it. */
  provisionalDays: number;
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
  /** The latest time at which it was read or confirmed. */
  toldAtMicros: bigint;
}

export type StatementStatus = 'final' | 'provisional' | 'no_billing_data';

/** How final a month's bill is, and what of it nobody knows. */
export interface MonthCoverage {
  status: StatementStatus;
  /** The first day on which no day of the month can be restated any more. */
  finalFrom: string;
  /** Days whose bill the provider may still restate, or whose copy was read while it could. */
  provisional: DayRange[];
  /** Of these: days that only a newer copy of the bill makes final. */
  staleCopies: DayRange[];
  /** Days that are over and have no bill: they are not free, nobody knows what they cost. */
  missing: DayRange[];
  sources: StatementSource[];
}

interface AccountDay {
  provider: string;
  accountId: string;
  day: string;
}

export interface CoverageInput {
  /** First day of the month. */
  firstDay: string;
  nowMicros: bigint;
  copies: readonly CountedCopy[];
  /** Days with a bill, in whichever category. */
  billedDays: readonly AccountDay[];
  /** Accounts that are expected to have a bill. */
  accounts: readonly { provider: string; accountId: string }[];
}

/** Where nothing says how long a provider restates its days (the shortest known). */
const PROVISIONAL_DAYS_MIN = 2;

/** What is known of a month's bill beside its amounts. */
export function coverageOf(input: CoverageInput): MonthCoverage {
  return { ...finalityOf(input), missing: missingDays(input), sources: sourcesOf(input.copies) };
}

type Finality = Omit<MonthCoverage, 'missing' | 'sources'>;

function finalityOf(input: CoverageInput): Finality {
  const end = microsOfDay(nextMonth(input.firstDay));
  const window = input.copies.reduce((most, copy) => Math.max(most, copy.provisionalDays), 0);
  const closedFrom = (day: bigint, days: number) => day + BigInt(days) * MICROS_PER_DAY;
  const finalFrom = closedFrom(end - MICROS_PER_DAY, window === 0 ? PROVISIONAL_DAYS_MIN : window);
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

/** Days of the month that are over, by account, without a row of any bill. */
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

/** Sources and what they count for: one entry for each source and account, however its days lie. */
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
