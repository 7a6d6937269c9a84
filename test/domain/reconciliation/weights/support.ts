import type { Outcome } from '../../../../domain/reconciliation/weights/outcome.js';

/** A new outcome of a claim that was sure of its match and denied for what it was. */
export function anOutcome(given: Partial<Outcome> = {}): Outcome {
  const claimedType = given.claimedType ?? 'cache_read_rate_mismatch';
  return {
    claimId: 'c-1',
    claimedType,
    provider: 'openai',
    status: 'denied',
    violationType: claimedType,
    claimedCents: 10_000n,
    fraction: 0,
    levels: {
      prior: 'blocked_pair',
      time: 'same_bucket',
      model: 'exact',
      scope: 'unknown',
      quantities: 'within_0_2_percent',
      calls: 'equal',
      rate: 'known_multiplier',
      total: 'not_used',
      invoice: 'none',
    },
    rawProbability: 0.97,
    atMicros: NOW,
    ...given,
  };
}

export const NOW = 1_790_000_000_000_000n;
export const DAY = 86_400_000_000n;

export const credit = (given: Partial<Outcome> = {}): Outcome =>
  anOutcome({ status: 'credit_issued', violationType: null, fraction: 1, ...given });

/** The same outcome of so many claims. */
export const times = (count: number, outcome: Outcome): Outcome[] =>
  Array.from({ length: count }, (_, at) => ({ ...outcome, claimId: `${outcome.claimId}-${at}` }));
