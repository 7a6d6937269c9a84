import { PICO_PER_USD } from '../money.js';
import type { Severity } from '../policies/alerts/alert.js';
import type { Finding } from '../reconciliation/inference/finding.js';
import type { Grade } from '../reconciliation/matching/cells.js';

/** What people decide about findings: which of them they are asked about, and what becomes a dispute. */

/** `gone`: somebody had decided on it, and later runs no longer find it. */
export const FINDING_STATUSES = ['open', 'confirmed', 'dismissed', 'gone'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

/** `claimed`: a claim with it was sent to the provider. An open one may be resolved without a claim. */
export const DISPUTE_STATUSES = ['open', 'claimed', 'resolved'] as const;
export type DisputeStatus = (typeof DISPUTE_STATUSES)[number];

/** How sure what is disputed is; nothing that is UNVERIFIED is disputed. */
export const DISPUTE_TIERS = ['HIGH', 'MEDIUM', 'LOW'] as const satisfies readonly Grade[];
export type DisputeTier = (typeof DISPUTE_TIERS)[number];

const HIGH_IMPACT_PICO = 100n * PICO_PER_USD;
const MEDIUM_IMPACT_PICO = 10n * PICO_PER_USD;

type Judged = Pick<Finding, 'kind' | 'direction' | 'blame' | 'grade' | 'provisional'>;

/**
 * Whether people are asked about a finding: about the provider's mistakes of every grade and what nothing explains, once
 * the provider no longer restates the days. What is the organization's own mistake, or nobody's, is no violation.
 */
export function isForReview({ kind, blame, provisional }: Judged): boolean {
  return !provisional && (blame === 'provider' || kind === 'unexplained');
}

/** How urgent: by the dollars, and high whatever they are where the engine calls it critical. */
export function severityOf({ impactPico, critical }: Pick<Finding, 'impactPico' | 'critical'>): Severity {
  const size = impactPico < 0n ? -impactPico : impactPico;
  if (critical || size >= HIGH_IMPACT_PICO) return 'high';
  return size >= MEDIUM_IMPACT_PICO ? 'medium' : 'low';
}

/**
 * The tier of a dispute over a finding; undefined where it is too uncertain for one. What nothing explains is LOW
 * whatever its grade: the grade says how sure the gap is, not that it is the provider's mistake.
 */
export function disputeTier({ kind, grade }: Pick<Judged, 'kind' | 'grade'>): DisputeTier | undefined {
  if (kind === 'unexplained') return 'LOW';
  return DISPUTE_TIERS.find((tier) => tier === grade);
}

/** Why a finding is not among those that people decide on, as a sentence; undefined where it is. */
export function whyNotForReview(finding: Judged): string | undefined {
  if (isForReview(finding)) return undefined;
  return finding.provisional
    ? 'the provider may still restate these days; decide when they are final'
    : 'it is no mistake of the provider, so there is nothing to decide; its advice says what to change';
}

/** Why nothing of a finding can be disputed, as a sentence; undefined where it can. */
export function whyNotDisputable(finding: Judged): string | undefined {
  if (finding.direction === 'undercharge')
    return 'the provider charged too little, so there is nothing to ask back; claims of the same month are netted with it';
  if (disputeTier(finding) === undefined)
    return 'it is UNVERIFIED, and what cannot be shown is not disputed; its advice says what would raise its grade';
  return undefined;
}
