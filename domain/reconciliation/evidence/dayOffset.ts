import type { BilledClass } from '../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';

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

/** A provider's bill of a day for one model and class; all rows together. */
export interface BilledUse {
  readonly model: string;
  /** `other`: the bill has one amount for the model. */
  readonly tokenClass: BilledClass;
  /** Days since 1970. */
  readonly day: number;
  /** In 1e-12 tokens; null: the bill has no quantity. */
  readonly quantity: bigint | null;
  readonly amountPico: Pico;
}

/** The observed use of one model in an hour; failed attempts, which no bill should have, are left out. */
export interface ObservedUse {
  readonly model: string;
  /** Start of the hour in UTC, whole hours since 1970. */
  readonly hour: number;
  readonly tokens: Readonly<Record<TokenClass, bigint>>;
  readonly computedCostPico: Pico;
}

/** The newest billed days that are compared, so that a clock is the same in every run over some weeks. */
export const OFFSET_DAYS = 28;
/** Fewer days of a line do not show its usual share of observed calls. */
const LINE_DAYS_MIN = 14;
/** A day's share this near the usual one is as good as equal: it is what a few calls at midnight amount to. */
const SAME = 0.002;
/**
 * UTC is refused only where its mean logarithm of deviations is worse by a quarter and by four standard errors.
 */
const WORSE_MIN = 0.25;
const ERRORS_MIN = 4;
/** Offsets this near each other divide the days alike: no calls are at the hours between them. */
const ALIKE = 0.02;

/**
 * Hours that the provider's clock is ahead of UTC where it reports days alone; undefined: too few days. Days cut at
 * another hour exchange calls with the days beside them, so the share that was observed alternates; at the right offset
 * each line has its usual share again. Mistakes and outages change some days of some lines, at every offset alike. Of
 * offsets that no call distinguishes it is the nearest to UTC. `nameOf`: the name to compare with a bill.
 */
export function findOffsetOfDays(
  days: readonly BilledUse[],
  hours: readonly ObservedUse[],
  nameOf: (model: string) => string,
): number | undefined {
  const observed = new Map<string, Map<number, number>>();
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { model, hour, tokens, computedCostPico } of hours) {
    for (const name of TOKEN_CLASSES) add(observed, `${nameOf(model)} ${name}`, hour, tokens[name]);
    add(observed, `${nameOf(model)} other`, hour, computedCostPico);
    [first, last] = [Math.min(first, hour), Math.max(last, hour)];
  }
  const uncounted = new Set(days.flatMap((one) => (one.quantity === null ? [lineOf(one, nameOf)] : [])));
  const billed = new Map<string, Map<number, number>>();
  for (const one of days) {
    const line = lineOf(one, nameOf);
    // At every offset the same days are compared: those with calls on both sides.
    if (one.day * 24 - OFFSET_MAX < first || one.day * 24 + 23 + OFFSET_MAX > last) continue;
    add(billed, line, one.day, uncounted.has(line) ? one.amountPico : (one.quantity ?? 0n));
  }
  const lossesBy = new Map<number, readonly number[]>();
  for (let offset = -OFFSET_MAX; offset <= OFFSET_MAX; offset += 1)
    lossesBy.set(
      offset,
      [...billed].flatMap(([line, ofLine]) => lossesAt(ofLine, observed.get(line), offset)),
    );
  const meanAt = (offset: number) => meanOf(lossesBy.get(offset) ?? []);
  const without = lossesBy.get(0) ?? [];
  if (without.length === 0) return undefined;
  const offsets = [...lossesBy.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
  const least = Math.min(...offsets.map(meanAt));
  const best = offsets.find((offset) => meanAt(offset) <= least + ALIKE) ?? 0;
  const worse = without.map((loss, at) => loss - (lossesBy.get(best)?.[at] ?? 0));
  const mean = meanOf(worse);
  const error = Math.sqrt(meanOf(worse.map((one) => (one - mean) ** 2)) / worse.length);
  return mean >= WORSE_MIN && mean >= ERRORS_MIN * error ? best : 0;
}

const lineOf = ({ model, tokenClass }: BilledUse, nameOf: (model: string) => string): string =>
  `${nameOf(model)} ${tokenClass}`;

function add(lines: Map<string, Map<number, number>>, line: string, at: number, value: bigint): void {
  if (value === 0n) return;
  const ofLine = lines.get(line) ?? new Map<number, number>();
  lines.set(line, ofLine.set(at, (ofLine.get(at) ?? 0) + Number(value)));
}

/** By day the logarithm of how far the share that was observed is from the line's usual one. */
function lossesAt(
  billed: ReadonlyMap<number, number>,
  observed: ReadonlyMap<number, number> | undefined,
  offset: number,
): number[] {
  if (!observed || billed.size < LINE_DAYS_MIN) return [];
  const ratios = [...billed].map(([day, theirs]) => {
    const from = day * 24 - offset;
    let ours = 0;
    for (let hour = from; hour < from + 24; hour += 1) ours += observed.get(hour) ?? 0;
    return ours > 0 && theirs > 0 ? Math.log(theirs / ours) : Number.NaN;
  });
  const known = ratios.filter((ratio) => !Number.isNaN(ratio)).sort((a, b) => a - b);
  const usual = known[known.length >> 1] ?? 0;
  const apart = (ratio: number) => (Number.isNaN(ratio) ? 1 : Math.min(1, Math.abs(ratio - usual)));
  return ratios.map((ratio) => Math.log(SAME + apart(ratio)));
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0) / Math.max(1, values.length);
