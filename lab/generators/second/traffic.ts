/** Generates the true calls of a series: bursts, quiet days, heavy tails. */
import { type Asked, CLASSES, periodAt } from '../bills/rateBook.js';
import { DAY_SECONDS, weekday } from '../support/days.js';
import type { Random } from '../support/random.js';
import { pareto, type SeriesPlan } from './series.js';

export type Status = 'ok' | 'error' | 'cancelled';

export interface RealCall {
  series: SeriesPlan;
  keyId: string;
  project: string;
  service: string;
  endSeconds: number;
  asked: Asked;
  status: Status;
  /** In the order of CLASSES; for a failed attempt, the tokens that were sent. */
  tokens: readonly number[];
  reasoning: number;
}

const ERROR_SHARE = 0.025;
const CANCELLED_SHARE = 0.02;

/** All calls of a series. */
export function callsOf(random: Random, series: SeriesPlan): RealCall[] {
  const calls: RealCall[] = [];
  const sleepsOnSundays = random.chance(0.5);
  const errorShare = random.chance(0.3) ? random.between(0.05, 0.2) : ERROR_SHARE;
  for (let day = series.firstDay; day <= series.lastDay; day += 1) {
    const quiet = sleepsOnSundays && weekday(day) === 0 ? 0.15 : 1;
    const burst = random.chance(0.07) ? pareto(random, 2, 1.4, 8) : 1;
    const count = random.poisson(series.callsPerDay * quiet * burst * random.lognormal(1, 0.35));
    // A burst is within a few hours, an ordinary day's calls are in all of them.
    const from = burst > 1 ? random.between(0, 18) : 0;
    const width = burst > 1 ? 4 : 24;
    for (let n = 0; n < count; n += 1) {
      const hour = from + random.next() * width;
      calls.push(callAt(random, series, Math.floor(day * DAY_SECONDS + hour * 3_600), errorShare));
    }
  }
  return calls.sort((a, b) => a.endSeconds - b.endSeconds);
}

function callAt(random: Random, series: SeriesPlan, endSeconds: number, errorShare: number): RealCall {
  const period = periodAt(series.model, Math.floor(endSeconds / DAY_SECONDS));
  const whole = Math.round(
    pareto(
      random,
      series.inputLeast,
      series.inputExponent,
      Math.min(series.model.contextTokens * 0.9, 400_000),
    ),
  );
  const isLong = period.long !== undefined && whole > period.long.above;
  const isBatch = random.chance(series.batchShare) && (!isLong || period.long?.batch !== undefined);
  const hasTier = !isBatch && !isLong && random.chance(series.tierShare);
  const read = Math.round(whole * series.readShare * random.next());
  const write = Math.round(Math.min(whole - read, whole * series.writeShare * random.next() * 2));
  const output = Math.max(1, Math.round(random.lognormal(series.outputMedian, 1)));
  const status = random.chance(errorShare) ? 'error' : random.chance(CANCELLED_SHARE) ? 'cancelled' : 'ok';
  const tokens = CLASSES.map(() => 0);
  tokens[0] = whole - read - write;
  tokens[1] = read;
  tokens[series.hourWrites ? 3 : 2] = write;
  tokens[4] = status === 'error' ? 0 : output;
  return {
    series,
    keyId: keyAt(series, endSeconds),
    project: random.pick(series.projects),
    service: random.pick(series.services),
    endSeconds,
    asked: {
      isBatch,
      isLong,
      tier: hasTier ? series.tier : 'standard',
      geo: !isBatch && random.chance(series.geoShare) ? 'us' : 'global',
    },
    status,
    tokens,
    reasoning: status === 'error' ? 0 : Math.round(output * series.reasoningShare * random.next()),
  };
}

function keyAt(series: SeriesPlan, seconds: number): string {
  const held = series.keys.filter(({ fromSeconds }) => fromSeconds <= seconds);
  return (held.at(-1) ?? series.keys[0])?.keyId ?? '';
}
