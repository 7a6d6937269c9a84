import type { DisputeStatus, DisputeTier } from '../../domain/claims/decision.js';
import type { DraftDispute, DraftEvidence, NettedUndercharge } from '../../domain/claims/draft.js';
import type { Pico } from '../../domain/money.js';
import type { Finding } from '../../domain/reconciliation/inference/finding.js';
import {
  type FindingLineText,
  linesFromText,
} from '../../domain/reconciliation/inference/findingLineText.js';
import { reasonOf } from '../../domain/reconciliation/inference/words.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { amountsOfDay, type DayRow } from '../reconciliation/findings.js';

/** An account of a provider, as claims are made of one. */
export interface ClaimedAccount {
  provider: string;
  accountId: string;
}

/** Of a dispute, what decides whether a claim may be made over it. */
export interface ClaimableDispute extends ClaimedAccount {
  id: string;
  status: DisputeStatus;
  claimId: string | null;
}

const CLAIMABLE = 'id, status, claim_id as "claimId", provider, provider_account_id as "accountId"';

/** Those of these disputes that there are, by id. */
export async function listClaimable(orgDb: OrgDb, ids: readonly string[]): Promise<ClaimableDispute[]> {
  return orgDb.rows<ClaimableDispute>(
    `select ${CLAIMABLE} from disputes where org_id = $1 and id = any($2::uuid[]) order by id`,
    [orgDb.orgId, plainArray(ids)],
  );
}

/** As `listClaimable`, and nobody else claims or resolves them until the transaction ends. */
export async function lockClaimable(inside: OrgDb, ids: readonly string[]): Promise<ClaimableDispute[]> {
  return inside.rows<ClaimableDispute>(
    `select ${CLAIMABLE} from disputes where org_id = $1 and id = any($2::uuid[]) order by id for update`,
    [inside.orgId, plainArray(ids)],
  );
}

/**
 * Accounts with disputes that a run drafts claims over, by name: open ones in no claim, all of whose days are still found,
 * final and not UNVERIFIED, and for no less than a cent under what is disputed. Null: of every provider, every account.
 */
export async function listDraftableAccounts(
  orgDb: OrgDb,
  provider: string | null,
  accountId: string | null = null,
): Promise<(ClaimedAccount & { disputeIds: string[] })[]> {
  const rows = await orgDb.rows<{ provider: string; provider_account_id: string; ids: string[] }>(
    `select p.provider, p.provider_account_id, array_agg(p.id::text order by p.id) as ids
     from disputes p join findings o on o.org_id = $1 and o.id = p.finding_id and o.status <> 'gone'
     where p.org_id = $1 and p.status = 'open' and p.claim_id is null and ($2::text is null or p.provider = $2)
       and ($3::text is null or p.provider_account_id = $3)
       and not exists (
         select from dispute_days d where d.org_id = $1 and d.dispute_id = p.id and not exists (
           select from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id and n.day = d.day
           where f.org_id = $1 and f.provider = d.provider and f.provider_account_id = d.provider_account_id and f.model = d.model
             and (f.id = p.finding_id or (f.kind = d.kind and f.variant = d.variant))
             and f.status in ('open', 'confirmed') and f.direction = 'overcharge' and not f.provisional
             and (f.grade <> 'UNVERIFIED' or f.kind = 'unexplained') and n.impact_usd > d.impact_usd - 0.01))
     group by p.provider, p.provider_account_id order by p.provider, p.provider_account_id`,
    [orgDb.orgId, provider, accountId],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.provider_account_id,
    disputeIds: row.ids,
  }));
}

interface DraftDisputeRow {
  id: string;
  finding_id: string;
  provider: string;
  provider_account_id: string;
  model: string;
  kind: FindingKind;
  confidence_tier: DisputeTier;
  reason: string;
  notes: string | null;
  period_start: string;
  period_end: string;
  amount_cents: number;
  provider_cost_usd: Pico;
  our_cost_usd: Pico;
  opened_at: bigint;
  evidence: EvidenceText;
}

/** What `insertDispute` keeps of the finding. */
interface EvidenceText {
  run_id: string;
  grade: DraftEvidence['grade'];
  probability: number;
  match_probability: number;
  visibility: DraftEvidence['visibility'];
  missing_gates: DraftEvidence['missing'];
  next_best: Finding['next'];
  lines: FindingLineText[];
  waterfall: DraftEvidence['waterfall'];
  advice: string[];
  weight_set: string;
}

/** These disputes with their days and what they were opened on, by first day and id. */
export async function loadDraftDisputes(orgDb: OrgDb, ids: readonly string[]): Promise<DraftDispute[]> {
  const values = [orgDb.orgId, plainArray(ids)];
  const rows = await orgDb.rows<DraftDisputeRow>(
    `select id, finding_id, provider, provider_account_id, model, kind, confidence_tier, reason, notes, period_start, period_end,
       amount_cents, provider_cost_usd, our_cost_usd, opened_at, evidence
     from disputes where org_id = $1 and id = any($2::uuid[]) order by period_start, id`,
    values,
  );
  const days = new Map<string, DraftDispute['days'][number][]>(rows.map(({ id }) => [id, []]));
  for (const row of await orgDb.rows<DayRow & { dispute_id: string; variant: string }>(
    `select dispute_id, variant, day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd
     from dispute_days where org_id = $1 and dispute_id = any($2::uuid[]) order by day`,
    values,
  ))
    days.get(row.dispute_id)?.push({ ...amountsOfDay(row), variant: row.variant });
  return rows.map((row) => fromDraftDisputeRow(row, days.get(row.id) ?? []));
}

function fromDraftDisputeRow(row: DraftDisputeRow, days: DraftDispute['days']): DraftDispute {
  return {
    id: row.id,
    findingId: row.finding_id,
    provider: row.provider,
    accountId: row.provider_account_id,
    model: row.model,
    kind: row.kind,
    tier: row.confidence_tier,
    reason: row.reason,
    notes: row.notes,
    periodStart: row.period_start,
    periodEnd: row.period_end,
    amountCents: row.amount_cents,
    billedPico: row.provider_cost_usd,
    expectedPico: row.our_cost_usd,
    openedAtMicros: row.opened_at,
    days,
    evidence: {
      grade: row.evidence.grade,
      probability: row.evidence.probability,
      matchProbability: row.evidence.match_probability,
      visibility: row.evidence.visibility,
      missing: row.evidence.missing_gates,
      next: row.evidence.next_best,
      lines: linesFromText(row.evidence.lines),
      waterfall: row.evidence.waterfall,
      advice: row.evidence.advice,
      weightSet: row.evidence.weight_set,
      runId: row.evidence.run_id,
    },
  };
}

interface UnderchargeRow {
  finding_id: string;
  day: string;
  provider: string;
  provider_account_id: string;
  model: string;
  kind: FindingKind;
  variant: string;
  billed_usd: Pico;
  expected_usd: Pico;
  impact_usd: Pico;
  cause: string;
}

/**
 * What a provider charged an account too little in months (`YYYY-MM`), day by day, as far as no claim has netted it:
 * mistakes of the provider that are final and not UNVERIFIED, and that nobody has dismissed. What a claim that was
 * credited has netted is settled with it and stays away.
 */
export async function listNettable(
  orgDb: OrgDb,
  { provider, accountId }: ClaimedAccount,
  months: readonly string[],
): Promise<NettedUndercharge[]> {
  const rows = await orgDb.rows<UnderchargeRow>(
    `select f.id as finding_id, n.day, f.provider, f.provider_account_id, f.model, f.kind, f.variant, n.billed_usd, n.expected_usd,
       n.impact_usd, f.cause
     from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
     where f.org_id = $1 and f.provider = $2 and f.provider_account_id = $3 and f.status in ('open', 'confirmed')
       and f.direction = 'undercharge' and f.blame = 'provider' and f.kind <> 'unexplained' and not f.provisional
       and f.grade <> 'UNVERIFIED' and n.impact_usd < 0 and to_char(n.day, 'YYYY-MM') = any($4::text[])
       and not exists (
         select from claim_undercharges u join claims c on c.org_id = $1 and c.id = u.claim_id
         where u.org_id = $1 and u.provider = f.provider and u.provider_account_id = f.provider_account_id and u.model = f.model
           and u.day = n.day and u.kind = f.kind and u.variant = f.variant
           and (u.live or c.status in ('credit_issued', 'partial')))
     order by n.day, f.model, f.kind, f.variant, f.id`,
    [orgDb.orgId, provider, accountId, plainArray(months)],
  );
  return rows.map((row) => ({
    findingId: row.finding_id,
    day: row.day,
    provider: row.provider,
    accountId: row.provider_account_id,
    model: row.model,
    kind: row.kind,
    variant: row.variant,
    billedPico: row.billed_usd,
    expectedPico: row.expected_usd,
    impactPico: row.impact_usd,
    reason: reasonOf({ cause: row.cause, blame: 'provider' }, [{ day: row.day, impactPico: row.impact_usd }]),
  }));
}
