import { DomainError } from '../../errors.js';

/** Too much of something: says which limit policies were exceeded, and from when on a repeat can succeed. */
export class LimitError extends DomainError {
  /** Names of the limit policies, as the RateLimit fields name them. */
  readonly violatedPolicies: readonly string[];

  constructor(violatedPolicies: readonly string[], sentence: string, retryAfterSeconds: number) {
    super('rate_limited', sentence, { retryAfterSeconds });
    this.violatedPolicies = violatedPolicies;
  }
}
