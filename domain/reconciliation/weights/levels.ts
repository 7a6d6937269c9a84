/**
 * The evidence that an outcome of a claim is learned by: the level of each signal of its match, and the engine's
 * probability before outcomes changed it. Both are read from the waterfall that is stored with the dispute.
 */
import type { WaterfallStep } from '../matching/cells.js';
import { LINK_WEIGHTS } from '../matching/linkModels.js';

/** The level of each signal of the link score, by the signal's name; signals that the waterfall lacks are not in it. */
export type LevelVector = Readonly<Record<string, string>>;

/** The step of a waterfall that holds what outcomes have taught: bits that were added to the engine's own. */
export const LEARNED_SIGNAL = 'learned_from_claims';

/**
 * The level vector of a stored waterfall, in the order of the link score's signals. What is not a signal of the link
 * score (the steps of an explanation, of two models, of what was learned) is left out: of those there are no levels to
 * learn.
 */
export function levelsOf(waterfall: readonly WaterfallStep[]): LevelVector {
  const found = new Map(waterfall.map((step) => [step.signal, step.level]));
  return Object.fromEntries(
    Object.keys(LINK_WEIGHTS).flatMap((signal): [string, string][] => {
      const level = found.get(signal);
      return level === undefined ? [] : [[signal, level]];
    }),
  );
}

/**
 * The probability of a finding before what outcomes had taught by then was added: what the next weights are learned from,
 * so that nothing is learned twice. The same as `probability` where the waterfall has no learned step.
 */
export function rawProbabilityOf(probability: number, waterfall: readonly WaterfallStep[]): number {
  const bits = waterfall
    .filter((step) => step.signal === LEARNED_SIGNAL)
    .reduce((sum, step) => sum + step.bits, 0);
  if (bits === 0 || probability <= 0 || probability >= 1) return probability;
  const odds = (probability / (1 - probability)) * 2 ** -bits;
  return odds / (1 + odds);
}
