/** What the engine has to make of the planted gaps: each by its name, with its days and its dollars. */
import type { PlantedGap } from './answerKey.js';
import type { DemoProvider } from './prices.js';
import type { Days } from './schedule.js';

/**
 * Faults of which the engine says what they are. Hours that nobody reported are no mistake of the provider's: the share of
 * calls seen falls, and whether more is said depends on how unlike the rest the missing calls were.
 */
export type ExplainedFault = Exclude<PlantedGap['kind'], 'missing_window'>;

/** One explanation of a model's days. */
export interface PlantedFinding {
  fault: ExplainedFault;
  /** As Trueup names it. */
  kind: string;
  /** A mistake of the provider's, which can be asked back. */
  claimable: boolean;
  grade: 'HIGH' | 'MEDIUM' | 'LOW';
  provider: DemoProvider;
  model: string;
  days: Days;
  /** Billed beyond what would have been right. */
  impactPico: bigint;
}

type Name = Pick<PlantedFinding, 'kind' | 'claimable' | 'grade'>;

const ofProvider = (kind: string, grade: PlantedFinding['grade'] = 'HIGH'): Name => ({
  kind,
  claimable: true,
  grade,
});

/**
 * A wrong rate shows in the bill itself; a day billed twice, beside the provider's own usage report. Of a key that is not
 * registered nobody knows whether it is not one's own after all, so it is LOW.
 */
const NAMES: Record<ExplainedFault, Name> = {
  stale_price: ofProvider('price_effective_date_mismatch'),
  doubled_day: ofProvider('duplicate_charge'),
  cache_at_full_rate: ofProvider('cache_read_rate_mismatch'),
  contract_discount_not_applied: ofProvider('contract_rate_not_applied'),
  batch_discount_not_applied: ofProvider('batch_discount_not_applied'),
  unknown_key: ofProvider('unauthorized_key_usage', 'LOW'),
};

/** Gaps of one fault and model as one finding each: the days of a fault follow each other. */
export function findingsOf(gaps: readonly PlantedGap[]): PlantedFinding[] {
  const findings = new Map<string, PlantedFinding>();
  for (const { kind: fault, provider, model, offset, gapPico } of gaps) {
    if (fault === 'missing_window') continue;
    const id = `${fault}|${model}`;
    const known = findings.get(id);
    if (known) {
      known.days = {
        first: Math.min(known.days.first, offset),
        last: Math.max(known.days.last, offset),
      };
      known.impactPico += gapPico;
    } else {
      const days = { first: offset, last: offset };
      findings.set(id, { fault, ...NAMES[fault], provider, model, days, impactPico: gapPico });
    }
  }
  return [...findings.values()];
}
