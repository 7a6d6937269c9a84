import type { DraftDispute, DraftEvidence, NettedUndercharge } from '../../domain/claims/draft.js';
import type { DisputeStatus } from '../../domain/claims/financialSummary.js';
import {
  type Finding,
  type FindingLineText,
  linesFromText,
  reasonOf,
} from '../../domain/reconciliation/engine/index.js';

import { column, converted, defineEntity } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { DAY_AMOUNTS, type DayAmounts } from '../reconciliation/findings.js';

export interface ClaimedAccount {
  provider: string;
  accountId: string;
}

/** The properties of a dispute that decide whether it can be claimed. */
export interface ClaimableDispute extends ClaimedAccount {
  id: string;
  status: DisputeStatus;
  claimId: string | null;
}

const CLAIMABLE = 'id, status, claim_id as "claimId", provider, provider_account_id as "accountId"';

export async function listClaimable(orgDb: OrgDb, ids: readonly string[]): Promise<ClaimableDispute[]> {
  return orgDb.rows<ClaimableDispute>(
    `select ${CLAIMABLE} from disputes where org_id = $1 and id = any($2::uuid[]) order by id`,
    [orgDb.orgId, plainArray(ids)],
  );
}

/** `listClaimable` with a lock: the disputes can be neither claimed nor resolved until the transaction ends. */
export async function lockClaimable(inside: OrgDb, ids: readonly string[]): Promise<ClaimableDispute[]> {
  return inside.rows<ClaimableDispute>(
    `select ${CLAIMABLE} from disputes where org_id = $1 and id = any($2::uuid[]) order by id for update`,
    [inside.orgId, plainArray(ids)],
  );
}

/**
 * Accounts with open unclaimed disputes whose days are all still found, final and verified, for at most a cent less.
 */
export async function listDraftableAccounts(
  orgDb: OrgDb,
  provider: string | null,
  accountId: string | null = null,
): Promise<(ClaimedAccount & { disputeIds: string[] })[]> {
  return orgDb.rows<ClaimedAccount & { disputeIds: string[] }>(
    `select p.provider, p.provider_account_id as "accountId", array_agg(p.id::text order by p.id) as "disputeIds"
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
}

/** The parts of the finding that insertDispute stores. */
interface EvidenceText {
  run_id: string;
  /** Absent in disputes from before invoices were read. */
  invoice_id?: string | null;
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

const DRAFT_DISPUTE = defineEntity<Omit<DraftDispute, 'days'>>('disputes', {
  id: column(),
  findingId: column(),
  provider: column(),
  accountId: column('provider_account_id'),
  model: column(),
  kind: column(),
  tier: column('confidence_tier'),
  reason: column(),
  notes: column(),
  periodStart: column(),
  periodEnd: column(),
  amountCents: column(),
  billedPico: column('provider_cost_usd'),
  expectedPico: column('our_cost_usd'),
  openedAtMicros: column(),
  evidence: converted((text: EvidenceText) => ({
    grade: text.grade,
    probability: text.probability,
    matchProbability: text.match_probability,
    visibility: text.visibility,
    missing: text.missing_gates,
    next: text.next_best,
    lines: linesFromText(text.lines),
    waterfall: text.waterfall,
    advice: text.advice,
    weightSet: text.weight_set,
    runId: text.run_id,
    invoiceId: text.invoice_id ?? null,
  })),
});

/** These disputes with their days and their evidence, by first day and id. */
export async function loadDraftDisputes(orgDb: OrgDb, ids: readonly string[]): Promise<DraftDispute[]> {
  const values = [orgDb.orgId, plainArray(ids)];
  const disputes = await orgDb.rows<Omit<DraftDispute, 'days'>>(
    `select ${DRAFT_DISPUTE.columns} from disputes where org_id = $1 and id = any($2::uuid[]) order by period_start, id`,
    values,
  );
  const days = new Map<string, DraftDispute['days'][number][]>(disputes.map(({ id }) => [id, []]));
  for (const { disputeId, ...day } of await orgDb.rows<DayAmounts & { disputeId: string; variant: string }>(
    `select n.dispute_id as "disputeId", n.variant, ${DAY_AMOUNTS}
     from dispute_days n where n.org_id = $1 and n.dispute_id = any($2::uuid[]) order by n.day`,
    values,
  ))
    days.get(disputeId)?.push(day);
  return DRAFT_DISPUTE.read(disputes).map((dispute) => ({ ...dispute, days: days.get(dispute.id) ?? [] }));
}

/**
 * Undercharges of months (`YYYY-MM`) that no claim has netted: final verified provider mistakes that were not
 * dismissed.
 */
export async function listNettable(
  orgDb: OrgDb,
  { provider, accountId }: ClaimedAccount,
  months: readonly string[],
): Promise<NettedUndercharge[]> {
  const rows = await orgDb.rows<Omit<NettedUndercharge, 'reason'> & { cause: string }>(
    `select f.id as "findingId", n.day, f.provider, f.provider_account_id as "accountId", f.model, f.kind, f.variant,
       n.billed_usd as "billedPico", n.expected_usd as "expectedPico", n.impact_usd as "impactPico", f.cause
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
  return rows.map(({ cause, ...undercharge }) => ({
    ...undercharge,
    reason: reasonOf({ cause, blame: 'provider' }, [undercharge]),
  }));
}
