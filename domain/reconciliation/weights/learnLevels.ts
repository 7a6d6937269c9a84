/**
 * Learns the bits of the link score: for each signal, how often each level was present in claims that were credited
 * and in claims that were denied (Fellegi and Sunter's m and u, with Dirichlet priors at the base's bits).
 */
import { type LinkWeights, linkProbability } from '../matching/linkModels.js';
import type { WeighedOutcome } from './outcome.js';
import { nonIncreasing } from './poolAdjacent.js';

/** The weight of the priors, in outcomes. */
const PRIOR_OUTCOMES = 50;
/** No level moves further from the base than this. */
const BITS_MOVED_MAX = 3;
/** Levels of an absent signal: nothing is learned of them, and they stay unchanged. */
const SILENT: ReadonlySet<string> = new Set(['absent', 'not_used', 'unknown', 'none']);

/** The outcomes behind a level's bits, weighed by age. */
export interface LevelCounts {
  readonly credited: number;
  readonly denied: number;
}

export interface LearnedLevels {
  readonly link: LinkWeights;
  /** By signal and level; those with a count alone. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, LevelCounts>>>>;
}

export function learnLevels(outcomes: readonly WeighedOutcome[], base: LinkWeights): LearnedLevels {
  const link: Record<string, Record<string, number>> = {};
  const counts: Record<string, Record<string, LevelCounts>> = {};
  for (const [signal, levels] of Object.entries(base)) {
    const counted = countsOf(signal, levels, outcomes, base);
    link[signal] = counted.size === 0 ? { ...levels } : learnedBits(levels, counted);
    if (counted.size > 0) counts[signal] = Object.fromEntries(counted);
  }
  return { link, counts };
}

function countsOf(
  signal: string,
  levels: LinkWeights[string],
  outcomes: readonly WeighedOutcome[],
  base: LinkWeights,
): Map<string, LevelCounts> {
  const counts = new Map<string, LevelCounts>();
  if (speakingOf(levels).length < 2) return counts;
  for (const outcome of outcomes) {
    const level = outcome.levels[signal];
    const bits = level === undefined || SILENT.has(level) ? undefined : levels[level];
    if (level === undefined || bits === undefined) continue;
    const before = counts.get(level) ?? { credited: 0, denied: 0 };
    const credited = before.credited + outcome.weight * outcome.fraction;
    const isAgainst = outcome.status === 'denied' && bits > 0;
    const denied = before.denied + (isAgainst ? outcome.weight * doubtOfMatch(outcome, base) : 0);
    if (credited > 0 || denied > 0) counts.set(level, { credited, denied });
  }
  return counts;
}

/**
 * The share of a refusal that the match can be to blame for: the probability that the charge was not that usage at all, given
 * that the claim was wrong. The rest is the explanation's, and its precision has learned it.
 */
export function doubtOfMatch(
  { levels, rawProbability }: Pick<WeighedOutcome, 'levels' | 'rawProbability'>,
  base: LinkWeights,
): number {
  const match = linkProbability(
    Object.entries(levels).map(([signal, level]) => ({ signal, level, bits: base[signal]?.[level] ?? 0 })),
  );
  if (rawProbability >= 1) return 1;
  return Math.min(1, (1 - match) / (1 - rawProbability));
}

const speakingOf = (levels: LinkWeights[string]): [string, number][] =>
  Object.entries(levels)
    .filter(([level]) => !SILENT.has(level))
    .sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1));

/** The best agreement first: no better one may score lower than a worse one, and none moves further than it may. */
function learnedBits(
  levels: LinkWeights[string],
  counts: ReadonlyMap<string, LevelCounts>,
): Record<string, number> {
  const speaking = speakingOf(levels);
  const priors = priorsOf(speaking.map(([, bits]) => bits));
  const of = (level: string) => counts.get(level) ?? { credited: 0, denied: 0 };
  const [credited, denied] = [...counts.values()].reduce(
    ([m, u], one) => [m + one.credited, u + one.denied],
    [0, 0],
  );
  const raw = speaking.map(([level, bits], at) => {
    const { m, u } = priors[at] ?? { m: 1, u: 1 };
    return bits + moved(of(level).credited, credited, m) - moved(of(level).denied, denied, u);
  });
  const weights = speaking.map(([level], at) => {
    const { m, u } = priors[at] ?? { m: 1, u: 1 };
    return of(level).credited + of(level).denied + PRIOR_OUTCOMES * (m + u);
  });
  const ordered = nonIncreasing(raw, weights);
  const learned = new Map(
    speaking.map(([level, bits], at) => [
      level,
      Math.min(bits + BITS_MOVED_MAX, Math.max(bits - BITS_MOVED_MAX, ordered[at] ?? bits)),
    ]),
  );
  return Object.fromEntries(
    Object.entries(levels).map(([level, bits]) => [level, learned.get(level) ?? bits]),
  );
}

/** log2 of the share of a level after `count` of `total`, less log2 of its prior share. */
function moved(count: number, total: number, prior: number): number {
  if (total === 0) return 0;
  return Math.log2((count + PRIOR_OUTCOMES * prior) / ((total + PRIOR_OUTCOMES) * prior));
}

/**
 * Shares m and u of the levels, each adding up to 1, whose ratio is what the bits say: m = c·2^((1−t)·bits),
 * u = c·2^(−t·bits). There is one t for which both add up.
 */
function priorsOf(bits: readonly number[]): { m: number; u: number }[] {
  const total = (t: number) => bits.reduce((sum, one) => sum + 2 ** (t * one), 0);
  let [low, high] = [0, 1];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (total(1 - middle) > total(-middle)) low = middle;
    else high = middle;
  }
  const t = (low + high) / 2;
  const all = total(-t);
  return bits.map((one) => ({ m: 2 ** ((1 - t) * one) / all, u: 2 ** (-t * one) / all }));
}
