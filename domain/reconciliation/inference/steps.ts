import type { WaterfallStep } from '../matching/cells.js';
import type { JudgedDay, RunOfDays } from './runs.js';
import { NULL_STATE } from './states.js';

const BITS_MAX = 60;
const bitsOf = (natural: number): number => Math.max(-BITS_MAX, Math.min(BITS_MAX, natural / Math.LN2));

/**
 * Why this explanation and no other, in bits: its prior against the null's, what amounts and quantities of its strongest
 * day say, and what the other days and the rival explanations add or take. The four sum to the log-odds of its
 * probability.
 */
export function explanationSteps(run: RunOfDays, strongest: JudgedDay, probability: number): WaterfallStep[] {
  const none = strongest.work.states.get(NULL_STATE);
  const { shown } = strongest;
  const prior = bitsOf(run.state.logPrior);
  const amounts = shown && none ? bitsOf(shown.fit.rate - none.fit.rate) : 0;
  const quantities = shown && none ? bitsOf(shown.fit.quantity - none.fit.quantity) : 0;
  const total = bitsOf(Math.log(probability / (1 - probability)));
  return [
    { signal: 'explanation_prior', level: run.state.kind, bits: prior },
    { signal: 'explanation_amounts', level: levelOf(amounts), bits: amounts },
    { signal: 'explanation_quantities', level: levelOf(quantities), bits: quantities },
    {
      signal: 'days_and_rivals',
      level: run.days.length === 1 ? 'one_day' : 'several_days',
      bits: total - prior - amounts - quantities,
    },
  ];
}

function levelOf(bits: number): string {
  if (bits >= 1) return 'speaks_for';
  return bits <= -1 ? 'speaks_against' : 'says_nothing';
}
