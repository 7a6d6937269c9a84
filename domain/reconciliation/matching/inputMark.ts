import { MICROS_PER_DAY, microsOfDay } from '../../period.js';

/** Change this text whenever the engine's results change, so that the next run compares everything again. */
export const ENGINE_VERSION = '8.32';

export interface DayInputs {
  day: string;
  nowMicros: bigint;
  /** The accounts that the bill covers, by name, and their counted copies. */
  covered: readonly {
    accountId: string;
    countedSources: string;
    fetchedAtMicros: bigint;
    provisionalDays: number;
  }[];
  /** Revision of the day's calls. */
  observedRevision: number;
  observedSince: ReadonlyMap<string, bigint>;
  /** The account of each of the provider's keys. */
  keys: string;
  prices: string;
  weights: string;
  withHours: boolean;
  /** Whether the calls themselves are still stored, not only their sums. */
  callsKept: boolean;
}

/** Equal for days with equal comparisons; times affect it only through the decisions that depend on them. */
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
