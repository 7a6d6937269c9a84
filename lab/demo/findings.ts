/** The expected findings for the planted gaps, with their kinds, days and dollars. */
import type { PlantedGap } from './answerKey.js';
import type { DemoProvider } from './prices.js';
import type { Days } from './schedule.js';

/**
 * Faults that the engine must explain. Unreported hours are no mistake of the provider: coverage falls, and a
 * further explanation depends on how much the missing calls differ from the others.
 */
export type ExplainedFault = Exclude<PlantedGap['kind'], 'missing_window'>;

/** One explanation of a model's days. */
export interface PlantedFinding {
  fault: ExplainedFault;
  /** The kind in Trueup. */
  kind: string;
  /** A mistake of the provider that can be claimed. */
  claimable: boolean;
  grade: 'HIGH' | 'MEDIUM' | 'LOW';
  provider: DemoProvider;
  model: string;
  days: Days;
  /** Billed dollars above the right charge. */
  impactPico: bigint;
}

type Name = Pick<PlantedFinding, 'kind' | 'claimable' | 'grade'>;

const ofProvider = (kind: string, grade: PlantedFinding['grade'] = 'HIGH'): Name => ({
  kind,
  claimable: true,
  grade,
});

/**
 * The bill alone shows a wrong rate; a comparison with the provider's usage report shows a day that was billed
 * twice. An unregistered key may be the organization's own, so its finding is LOW.
 */
const NAMES: Record<ExplainedFault, Name> = {
  stale_price: ofProvider('price_effective_date_mismatch'),
  doubled_day: ofProvider('duplicate_charge'),
  cache_at_full_rate: ofProvider('cache_read_rate_mismatch'),
  contract_discount_not_applied: ofProvider('contract_rate_not_applied'),
  batch_discount_not_applied: ofProvider('batch_discount_not_applied'),
  unknown_key: ofProvider('unauthorized_key_usage', 'LOW'),
};

/** Gaps of one fault and model become one finding, since the days of a fault are consecutive. */
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
