import { MICROS_PER_DAY, microsOfDay } from '../../period.js';

/**
 * Names what the search for explanations and the comparison do: another text whenever either would say something else of
 * the same data, so that the next run of an upgraded installation compares everything again.
 */
export const ENGINE_VERSION = '7.9';

/** All that the result of matching one provider-day depends on. */
export interface DayInputs {
  day: string;
  nowMicros: bigint;
  /** The accounts that the bill covers, in the order of their names, and the copies that count. */
  covered: readonly {
    accountId: string;
    countedSources: string;
    fetchedAtMicros: bigint;
    provisionalDays: number;
  }[];
  /** Revision of the day's calls. */
  observedRevision: number;
  /** First event of each account. */
  observedSince: ReadonlyMap<string, bigint>;
  /** Which account each of the provider's keys belongs to. */
  keys: string;
  prices: string;
  weights: string;
  withHours: boolean;
  /** Whether the calls themselves are still stored, not only their sums. */
  callsKept: boolean;
}

/**
 * The text that stands for these inputs: two days with the same text are matched alike. Times enter as what they decide,
 * so that a day does not change because a minute has passed.
 */
export function inputMark(inputs: DayInputs): string {
  const dayMicros = microsOfDay(inputs.day);
  const accounts = inputs.covered.map((account) => {
    const closedFrom = dayMicros + BigInt(account.provisionalDays) * MICROS_PER_DAY;
    const isOpen = inputs.nowMicros < closedFrom || account.fetchedAtMicros < closedFrom;
    return [account.accountId, account.countedSources, isOpen];
  });
  const since = [...inputs.observedSince]
    .map(([account, micros]): [string, boolean] => [account, micros > dayMicros])
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([
    ENGINE_VERSION,
    inputs.weights,
    inputs.prices,
    inputs.keys,
    accounts,
    since,
    inputs.observedRevision,
    inputs.withHours,
    inputs.callsKept,
  ]);
}
