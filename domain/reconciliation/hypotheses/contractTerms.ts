import { absPico } from '../../money.js';
import type { Hypothesis, MeterDay, SeriesDay } from './hypothesis.js';
import { amountAs, multipleOf, sumOf } from './predict.js';
import { chargedMeters, type Ratio, sharedRatio } from './ratios.js';
import { sentenceOf } from './words.js';

const WORDS = {
  discount:
    'Everything was charged % percent below what is entered: a discount that no entered contract tells of.',
};

const DISCOUNT_PERCENT_MAX = 60n;
/** Discounts are agreed in whole halves of a percent. */
const STEPS_PER_PERCENT = 2n;
const SAME_RATIO_PARTS = 2_000n;
/** Against what was observed counts scatter. */
const SEEN_RATIO_PARTS = 300n;

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
    const hasQuantities = day.meters.some(({ meter }) => meter.quantity !== null);
    const charged = hasQuantities ? chargedMeters(day.meters) : seenMeters(day);
    const ratio = hasQuantities ? sharedRatio(charged) : sumsOf(charged);
    if (!ratio || ratio.billedPico >= ratio.expectedPico) return [];
    const { billedPico, expectedPico } = ratio;
    const whole = 100n * STEPS_PER_PERCENT;
    const steps = ((expectedPico - billedPico) * whole + expectedPico / 2n) / expectedPico;
    if (steps === 0n || steps > DISCOUNT_PERCENT_MAX * STEPS_PER_PERCENT) return [];
    const predicted = (expectedPico * (whole - steps)) / whole;
    const parts = hasQuantities ? SAME_RATIO_PARTS : SEEN_RATIO_PARTS;
    if (absPico(predicted - billedPico) * parts > expectedPico) return [];
    const percent = `${steps / STEPS_PER_PERCENT}${steps % STEPS_PER_PERCENT === 0n ? '' : '.5'}`;
    return multipleOf(day, `discount:${percent}`, whole - steps, whole, (meter) =>
      charged.some((one) => one.index === meter.index),
    );
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Enter the contract under /pricing/contract-rates with its first day: without it nobody can say whether it was applied.',
  ],
};

/** On a bill of amounts alone: what was observed at the agreed rates, in the place of the billed quantities. */
function seenMeters(day: SeriesDay): MeterDay[] {
  return day.meters.flatMap((one) => {
    const expectedPico = amountAs(day, one, one.observed);
    const isCharged = one.meter.amountPico > 0n && expectedPico !== null && expectedPico > 0n;
    return isCharged ? [{ ...one, expectedPico }] : [];
  });
}

function sumsOf(meters: readonly MeterDay[]): Ratio | undefined {
  const billedPico = sumOf(meters.map(({ meter }) => meter.amountPico));
  const expectedPico = sumOf(meters.map((one) => one.expectedPico ?? 0n));
  return billedPico > 0n && expectedPico > 0n ? { billedPico, expectedPico } : undefined;
}
