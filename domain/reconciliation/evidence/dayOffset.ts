/** One hour of a provider, for all accounts and models: tokens in its usage report, and observed tokens. */
export interface HourOfBoth {
  /** Start of the hour by each side's own clock, whole hours since 1970. */
  readonly hour: number;
  readonly billed: number;
  readonly observed: number;
}

/** Time zones reach from twelve hours behind UTC to fourteen ahead. */
const OFFSET_MAX = 14;
/** Fewer hours with usage on both sides are not sufficient. */
const HOURS_MIN = 72;
/**
 * Shares of usage that differ between the sides: the maximum at the right offset; below, the minimum without an
 * offset and the factor by which every other offset must be worse.
 */
const APART_MAX = 0.1;
const APART_WITHOUT_MIN = 0.15;
const RIVAL_FACTOR = 3;

/** Hours that the provider's clock is ahead of UTC, if exactly one offset makes both sides agree; else undefined. */
export function findDayOffset(hours: readonly HourOfBoth[]): number | undefined {
  const billed = new Map<number, number>();
  const observed = new Map<number, number>();
  for (const one of hours) {
    billed.set(one.hour, (billed.get(one.hour) ?? 0) + one.billed);
    observed.set(one.hour, (observed.get(one.hour) ?? 0) + one.observed);
  }
  const used = [...billed.values()].filter((value) => value > 0).length;
  const seen = [...observed.values()].filter((value) => value > 0).length;
  if (used < HOURS_MIN || seen < HOURS_MIN) return undefined;
  const names = [...new Set([...billed.keys(), ...observed.keys()])].sort((a, b) => a - b);
  const without = apartAt(names, billed, observed, 0);
  if (without < APART_WITHOUT_MIN) return 0;
  let best = 0;
  let least = without;
  let second = Number.POSITIVE_INFINITY;
  for (let offset = -OFFSET_MAX; offset <= OFFSET_MAX; offset += 1) {
    const apart = apartAt(names, billed, observed, offset);
    if (apart < least) [best, least, second] = [offset, apart, least];
    else if (offset !== best) second = Math.min(second, apart);
  }
  return least <= APART_MAX && second >= RIVAL_FACTOR * least ? best : undefined;
}

/** The share of both sides' usage that differs. Hours whose counterpart is outside the window are left out. */
function apartAt(
  names: readonly number[],
  billed: ReadonlyMap<number, number>,
  observed: ReadonlyMap<number, number>,
  offset: number,
): number {
  const [first, last] = [names[0] ?? 0, names.at(-1) ?? 0];
  let [apart, all] = [0, 0];
  for (const hour of names) {
    const from = hour - offset;
    if (from < first || from > last) continue;
    const [theirs, ours] = [billed.get(hour) ?? 0, observed.get(from) ?? 0];
    apart += Math.abs(theirs - ours);
    all += theirs + ours;
  }
  return all === 0 ? 1 : apart / all;
}
