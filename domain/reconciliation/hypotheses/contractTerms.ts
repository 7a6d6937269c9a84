import { absPico } from '../../money.js';
import type { Hypothesis } from './hypothesis.js';
import { multipleOf } from './predict.js';
import { chargedMeters, sharedRatio } from './ratios.js';
import { touchesEdge } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  discount:
    'Everything was charged % percent below what is entered: a discount that no entered contract tells of.',
};

const DISCOUNT_PERCENT_MAX = 60n;
/** Discounts are agreed in whole halves of a percent. */
const STEPS_PER_PERCENT = 2n;
const SAME_RATIO_PARTS = 2_000n;

/**
 * The same round discount in every class, and no contract that says so: none is entered, or one of a smaller discount. Under
 * an entered contract a discount that comes and goes is the bill's.
 */
export const contractTerms: Hypothesis = {
  kind: 'contract_terms',
  nature: 'rate',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) => {
    const charged = chargedMeters(day.meters);
    const ratio = sharedRatio(charged);
    if (!ratio || ratio.billedPico >= ratio.expectedPico) return [];
    const { billedPico, expectedPico } = ratio;
    const whole = 100n * STEPS_PER_PERCENT;
    const steps = ((expectedPico - billedPico) * whole + expectedPico / 2n) / expectedPico;
    if (steps === 0n || steps > DISCOUNT_PERCENT_MAX * STEPS_PER_PERCENT) return [];
    const predicted = (expectedPico * (whole - steps)) / whole;
    if (absPico(predicted - billedPico) * SAME_RATIO_PARTS > expectedPico) return [];
    const percent = `${steps / STEPS_PER_PERCENT}${steps % STEPS_PER_PERCENT === 0n ? '' : '.5'}`;
    return multipleOf(day, `discount:${percent}`, whole - steps, whole, (meter) =>
      charged.some((one) => one.index === meter.index),
    );
  },
  fits: (run, context) => !context.hasContract || touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Enter the contract under /pricing/contract-rates with its first day: without it nobody can say whether it was applied.',
  ],
};
