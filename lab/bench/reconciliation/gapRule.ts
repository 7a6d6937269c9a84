/** The usual rule of thumb: claim a model's day whose bill exceeds the own computation by a percentage. */
import type { Judged, WorldFacts } from './judge.js';
import { type Matched, NOT_IN_LIBRARY, placeNamer } from './matchTruth.js';

export const BASELINE_PERCENTS = [5, 10] as const;

/** Dollars that the rule claims, the right part of them, and the part of the identifiable dollars that it finds. */
export interface RuleTally {
  claimed: number;
  right: number;
  found: number;
}

const usd = (pico: bigint) => Number(pico) / 1e12;
const lesser = (a: bigint, b: bigint) => (a < b ? a : b);

/** Applies the rule to the daily buckets of a judged world, with the same truth as for findings. */
export function applyGapRule(
  rule: RuleTally,
  percent: number,
  world: WorldFacts,
  judged: Judged,
  matched: Matched,
): void {
  const nameOf = placeNamer(judged.prices, BigInt(world.readAtSeconds) * 1_000_000n);
  const truths = new Map<string, { all: bigint; identifiable: bigint }>();
  for (const one of matched.truths) {
    if (one.direction === 'under' || one.truth.cause === NOT_IN_LIBRARY) continue;
    for (const account of [one.truth.accountId, '']) {
      const key = `${account}\n${one.place}\n${one.day}`;
      const sum = truths.get(key) ?? { all: 0n, identifiable: 0n };
      sum.all += one.impact;
      if (one.identifiable) sum.identifiable += one.impact;
      truths.set(key, sum);
    }
  }
  for (const { provider, bucket } of judged.buckets) {
    if (bucket.width !== 'day' || bucket.reason === 'not_observable' || bucket.reason === 'unparsed_line')
      continue;
    const gap = bucket.providerCostPico - bucket.ourCostPico;
    if (gap * 100n <= bucket.ourCostPico * BigInt(percent)) continue;
    const day = new Date(Number(bucket.startMicros / 1_000n)).toISOString().slice(0, 10);
    const truth = truths.get(`${bucket.accountId}\n${nameOf(provider, bucket.model)}\n${day}`);
    rule.claimed += usd(gap);
    rule.right += usd(lesser(gap, truth?.all ?? 0n));
    rule.found += usd(lesser(gap, truth?.identifiable ?? 0n));
  }
}
