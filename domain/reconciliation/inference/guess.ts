/** That an explanation is told because it is the nearest and not because it fits: such a one is a reason to look, and little more. */
import type { Gate } from './finding.js';
import type { RunOfDays } from './runs.js';

/** Below this share of the calls that are usually seen, an explanation asks for missing calls besides. */
const USUAL_SHARE = 0.8;

/**
 * Whether an explanation that leaves too much over is no more than a guess: the next one is hardly further, or it needs on most of
 * its days many more calls to be missing than usual, which is two mistakes at once. `usual` is the share of calls that is
 * seen on days without any mistake.
 */
export function isGuess({ days }: RunOfDays, missing: readonly Gate[], usual: number): boolean {
  if (!missing.includes('residual_within_tolerance')) return false;
  const short = days.filter(({ judged: { shown } }) => (shown?.fit.coverage ?? usual) < usual * USUAL_SHARE);
  return missing.includes('odds_against_next') || short.length * 2 > days.length;
}
