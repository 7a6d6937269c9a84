import type { Claim } from './words';

/** The parts of frozen evidence that the screen shows: trueup-claim-evidence/1, docs/evidence.md. */
export interface Evidence {
  totals: {
    billed_usd_exact: string;
    expected_usd_exact: string;
    disputed_usd_exact: string;
    netted_usd_exact: string;
    recoverable_usd_exact: string;
    recoverable_cents: number;
  };
  disputes: {
    dispute_id: string;
    finding_id: string;
    kind: string;
    model: string;
    period_start: string;
    period_end: string;
    difference_usd_exact: string;
    confidence_tier: 'HIGH' | 'MEDIUM' | 'LOW';
    reason: string;
  }[];
  pricing_snapshot: {
    version: string;
    captured_at: string;
    rates: EvidenceRate[];
    sources: { key: string; name: string; url: string | null }[];
  };
  notes: string[];
  requested_remedy: string;
  events: { total: number };
}

export interface EvidenceRate {
  id: string;
  kind: string;
  model: string;
  token_class: string;
  service_tier: string;
  is_batch: boolean;
  long_context: boolean;
  usd_per_mtok_exact: string;
  list_usd_per_mtok_exact: string | null;
  effective_from: string | null;
  effective_to: string | null;
  source_keys: string[];
  contract: { document: string | null; clause: string | null } | null;
}

export const evidenceOf = (claim: Claim) => claim.evidence as unknown as Evidence;
