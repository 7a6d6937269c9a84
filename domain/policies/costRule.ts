import { decimalFromPico, PICO_PER_USD, type Pico } from '../money.js';
import type { Violation } from './alerts/alert.js';

const PICO_PER_CENT = PICO_PER_USD / 100n;
/** From so many times the threshold on it is of high severity. */
const HIGH_TIMES = 10n;

export interface CostRule extends Pick<Violation, 'policyId' | 'policyType'> {
  thresholdCents: bigint;
}

/**
 * Whether a cost is at or above the threshold, in whole pico-dollars, so that nothing is lost to rounding: 0.29 USD is
 * 29 cents. Half a cent below is below.
 */
export function costViolation({ thresholdCents, ...named }: CostRule, cost: Pico): Violation | undefined {
  const threshold = thresholdCents * PICO_PER_CENT;
  if (cost < threshold) return undefined;
  return {
    ...named,
    severity: cost >= threshold * HIGH_TIMES ? 'high' : 'medium',
    message: `The call cost ${priceTag(cost)}; calls of ${priceTag(threshold)} and more need approval.`,
    details: {
      // Cut off, not rounded: held against the threshold the whole cents judge as the exact cost does.
      cost_cents: Number(cost / PICO_PER_CENT),
      threshold_cents: Number(thresholdCents),
    },
  };
}

/** "$2.90", "$0.289999": every digit that is known, and cents in any case. */
function priceTag(pico: Pico): string {
  const [whole, fraction = ''] = decimalFromPico(pico).split('.');
  return `$${whole}.${fraction.padEnd(2, '0')}`;
}
