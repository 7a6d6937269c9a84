import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { isoFromMicros } from '../../domain/period.js';
import type { WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind, TaxonomyKind } from '../../domain/reconciliation/taxonomy.js';
import type { LevelVector } from '../../domain/reconciliation/weights/levels.js';
import type { OrgDb } from '../orgDb.js';

/** The provider's last word on a claim. */
export interface ClaimOutcome {
  claimId: string;
  status: ClaimStatus;
  denialReason: string | null;
  violationType: TaxonomyKind | null;
  creditIssuedCents: number | null;
  /** The id of the key that recorded it. */
  actor: string;
  atMicros: bigint;
}

/** The same of one kind of what was claimed, with what it was believed on. */
export interface ClaimOutcomeKind {
  claimedType: FindingKind;
  claimedCents: bigint;
  levels: LevelVector;
  probability: number;
  rawProbability: number;
  weightSet: string;
}

/** What an outcome's kinds are made of: a dispute of the claim, as it was opened. */
export interface ClaimedDispute {
  id: string;
  kind: FindingKind;
  amountCents: number;
  probability: number;
  waterfall: readonly WaterfallStep[];
  weightSet: string;
}

/** What was said of a claim when it ended; none before that, one after it. */
export async function listClaimOutcomes(orgDb: OrgDb, claimId: string): Promise<ClaimOutcome[]> {
  const rows = await orgDb.rows<{
    claim_id: string;
    status: ClaimStatus;
    denial_reason: string | null;
    violation_type: TaxonomyKind | null;
    credit_issued_cents: number | null;
    actor: string;
    at: bigint;
  }>(
    `select claim_id, status, denial_reason, violation_type, credit_issued_cents, actor, at
     from claim_outcomes where org_id = $1 and claim_id = $2::uuid`,
    [orgDb.orgId, claimId],
  );
  return rows.map((row) => ({
    claimId: row.claim_id,
    status: row.status,
    denialReason: row.denial_reason,
    violationType: row.violation_type,
    creditIssuedCents: row.credit_issued_cents,
    actor: row.actor,
    atMicros: row.at,
  }));
}

/** The disputes of a claim, as outcomes are learned from them, the largest first. */
export async function listClaimedDisputes(orgDb: OrgDb, claimId: string): Promise<ClaimedDispute[]> {
  const rows = await orgDb.rows<{
    id: string;
    kind: FindingKind;
    amount_cents: number;
    probability: number | null;
    waterfall: WaterfallStep[] | null;
    weight_set: string | null;
  }>(
    `select id, kind, amount_cents, (evidence ->> 'probability')::double precision as probability,
       evidence -> 'waterfall' as waterfall, evidence ->> 'weight_set' as weight_set
     from disputes where org_id = $1 and claim_id = $2::uuid order by amount_cents desc, id`,
    [orgDb.orgId, claimId],
  );
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    amountCents: row.amount_cents,
    probability: row.probability ?? 0,
    waterfall: row.waterfall ?? [],
    weightSet: row.weight_set ?? '',
  }));
}

/** Writes the last word on a claim down, with its kinds, in the transaction that ends the claim. */
export async function insertClaimOutcome(
  inside: OrgDb,
  outcome: ClaimOutcome,
  { provider, fraction, kinds }: { provider: string; fraction: string; kinds: readonly ClaimOutcomeKind[] },
): Promise<void> {
  const at = isoFromMicros(outcome.atMicros);
  await inside.run(
    `insert into claim_outcomes (org_id, claim_id, status, denial_reason, violation_type, credit_issued_cents, actor, at)
     values ($1, $2::uuid, $3, $4, $5, $6, $7, $8::timestamptz)`,
    [
      ...[inside.orgId, outcome.claimId, outcome.status, outcome.denialReason, outcome.violationType],
      ...[outcome.creditIssuedCents, outcome.actor, at],
    ],
  );
  for (const kind of kinds)
    await inside.run(
      `insert into claim_outcome_kinds (org_id, claim_id, claimed_type, provider, claimed_cents, fraction, levels, probability, raw_probability, weight_set, at)
       values ($1, $2::uuid, $3, $4, $5, $6, $7::jsonb, $8, $9, $10, $11::timestamptz)`,
      [
        ...[inside.orgId, outcome.claimId, kind.claimedType, provider, kind.claimedCents, fraction],
        ...[JSON.stringify(kind.levels), kind.probability, kind.rawProbability, kind.weightSet, at],
      ],
    );
}
