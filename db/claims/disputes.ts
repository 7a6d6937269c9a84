import type { DisputeStatus, DisputeTier } from '../../domain/claims/financialSummary.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { newUuid } from '../../domain/ids.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  type FindingLineText,
  type Finding as FoundFinding,
  linesFromText,
} from '../../domain/reconciliation/engine/index.js';

import type { WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import {
  disputeMessage,
  disputeResolvedMessage,
  type ResolvedDispute,
} from '../../domain/webhooks/messages.js';
import { column, defineEntity, findEntity, listEntities, listNewest, type TimePage } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { DAY_AMOUNTS, type DayAmounts, type FindingEvidence } from '../reconciliation/findings.js';
import { publishMessages } from '../webhooks/webhookDeliveries.js';

export interface StoredDispute {
  id: string;
  findingId: string;
  claimId: string | null;
  provider: string;
  accountId: string;
  model: string;
  kind: FindingKind;
  periodStart: string;
  periodEnd: string;
  status: DisputeStatus;
  /** Sum of its days' impact, rounded down. */
  amountCents: number;
  billedPico: Pico;
  expectedPico: Pico;
  tier: DisputeTier;
  /** The finding's cause at that time, and the dollars of the dispute's days. */
  reason: string;
  /** The run that published it. */
  runId: string;
  notes: string | null;
  openedAtMicros: bigint;
  openedBy: string;
  resolution: string | null;
  resolutionNotes: string | null;
  resolvedAtMicros: bigint | null;
  resolvedBy: string | null;
  /** Whether runs still find its mistake. */
  isFound: boolean;
}

const DISPUTE = defineEntity<StoredDispute>('disputes', {
  id: column(),
  findingId: column(),
  claimId: column(),
  provider: column(),
  accountId: column('provider_account_id'),
  model: column(),
  kind: column(),
  periodStart: column(),
  periodEnd: column(),
  status: column(),
  amountCents: column(),
  billedPico: column('provider_cost_usd'),
  expectedPico: column('our_cost_usd'),
  tier: column('confidence_tier'),
  reason: column(),
  runId: column("evidence ->> 'run_id'"),
  notes: column(),
  openedAtMicros: column(),
  openedBy: column(),
  resolution: column(),
  resolutionNotes: column(),
  resolvedAtMicros: column(),
  resolvedBy: column(),
  isFound: column(
    `exists (select from findings f where f.org_id = disputes.org_id and f.id = disputes.finding_id and f.status <> 'gone')`,
  ),
});

export async function listDisputes(
  orgDb: OrgDb,
  filter: {
    status?: DisputeStatus | undefined;
    provider?: string | undefined;
    findingId?: string | undefined;
  },
  page: TimePage,
): Promise<StoredDispute[]> {
  const where = { status: filter.status, provider: filter.provider, finding_id: filter.findingId };
  return listNewest(orgDb, DISPUTE, { where, time: 'opened_at', page });
}

export function findDispute(orgDb: OrgDb, id: string): Promise<StoredDispute | undefined> {
  return findEntity(orgDb, DISPUTE, { id });
}

/** The evidence of a dispute when it was opened. */
export interface DisputeEvidence extends FindingEvidence {
  next: FoundFinding['next'];
  weightSet: string;
}

export async function findDisputeEvidence(orgDb: OrgDb, id: string): Promise<DisputeEvidence | undefined> {
  const rows = await orgDb.rows<{
    evidence: {
      lines: FindingLineText[];
      waterfall: WaterfallStep[];
      next_best: FoundFinding['next'];
      weight_set: string;
    };
  }>('select evidence from disputes where org_id = $1 and id = $2::uuid', [orgDb.orgId, id]);
  const evidence = rows[0]?.evidence;
  return (
    evidence && {
      lines: linesFromText(evidence.lines),
      waterfall: evidence.waterfall,
      next: evidence.next_best,
      weightSet: evidence.weight_set,
    }
  );
}

export async function listDisputeDays(orgDb: OrgDb, id: string): Promise<DayAmounts[]> {
  return orgDb.rows<DayAmounts>(
    `select ${DAY_AMOUNTS} from dispute_days n where n.org_id = $1 and n.dispute_id = $2::uuid order by n.day`,
    [orgDb.orgId, id],
  );
}

/** Days of a finding without a dispute, neither over the finding nor over the same explanation. */
export async function listUndisputedDays(inside: OrgDb, findingId: string): Promise<DayAmounts[]> {
  return inside.rows<DayAmounts>(
    `select ${DAY_AMOUNTS}
     from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
     where f.org_id = $1 and f.id = $2::uuid and not exists (
       select from disputes p join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
       where p.org_id = $1 and p.finding_id = f.id and d.day = n.day)
       and not exists (
       select from dispute_days d
       where d.org_id = $1 and d.provider = f.provider and d.provider_account_id = f.provider_account_id and d.model = f.model
         and d.day = n.day and d.kind = f.kind and d.variant = f.variant)
     order by n.day`,
    [inside.orgId, findingId],
  );
}

/** An open dispute over the same days whose finding is gone or lost those days: perhaps the same dollars. */
export async function findRivalDispute(inside: OrgDb, findingId: string): Promise<string | undefined> {
  const rows = await inside.rows<{ id: string }>(
    `select d.dispute_id as id
     from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
     join dispute_days d on d.org_id = $1 and d.provider = f.provider and d.provider_account_id = f.provider_account_id
       and d.model = f.model and d.day = n.day and d.live
     join disputes p on p.org_id = $1 and p.id = d.dispute_id and p.finding_id <> f.id
     where f.org_id = $1 and f.id = $2::uuid and not exists (
       select from findings o join finding_days s on s.org_id = $1 and s.finding_id = o.id and s.day = d.day
       where o.org_id = $1 and o.id = p.finding_id and o.status <> 'gone')
     order by d.day, d.dispute_id limit 1`,
    [inside.orgId, findingId],
  );
  return rows[0]?.id;
}

/** Disputes over the finding or over the same explanation of one of its days, newest first. */
export async function listDisputesOf(orgDb: OrgDb, findingId: string): Promise<StoredDispute[]> {
  return orgDb.rows<StoredDispute>(
    `select ${DISPUTE.columns} from disputes where org_id = $1 and (finding_id = $2::uuid or id in (
       select t.dispute_id
       from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
       join dispute_days t on t.org_id = $1 and t.provider = f.provider and t.provider_account_id = f.provider_account_id
         and t.model = f.model and t.kind = f.kind and t.variant = f.variant and t.day = n.day
       where f.org_id = $1 and f.id = $2::uuid))
     order by opened_at desc, id desc`,
    [orgDb.orgId, findingId],
  );
}

export interface NewDispute {
  id: string;
  /** Days of the finding without a dispute. */
  days: readonly DayAmounts[];
  amountCents: bigint;
  reason: string;
  tier: DisputeTier;
  notes: string | null;
  openedBy: string;
}

/** Opens a dispute and publishes its message. undefined: the finding does not exist. */
export async function insertDispute(
  inside: OrgDb,
  findingId: string,
  { id, days, amountCents, reason, tier, notes, openedBy }: NewDispute,
): Promise<StoredDispute | undefined> {
  const values = [inside.orgId, findingId, id, plainArray(days.map(({ day }) => day))];
  await inside.run(
    `insert into disputes (org_id, id, finding_id, provider, provider_account_id, model, kind, period_start, period_end, amount_cents,
       provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, notes, opened_by)
     select f.org_id, $3::uuid, f.id, f.provider, f.provider_account_id, f.model, f.kind, n.first_day, n.last_day, $5::bigint,
       n.billed_usd, n.expected_usd, $6, $9,
       jsonb_build_object('run_id', coalesce(f.run_id, f.invoice_run_id), 'grade', f.grade, 'probability', f.probability, 'match_probability', f.match_probability,
         'visibility', f.visibility, 'missing_gates', f.missing_gates, 'next_best', f.next_best, 'lines', f.lines,
         'waterfall', f.waterfall, 'advice', f.advice, 'weight_set', f.weight_set, 'invoice_id', f.invoice_id), $7, $8
     from findings f cross join lateral (
       select min(day) as first_day, max(day) as last_day, sum(billed_usd) as billed_usd, sum(expected_usd) as expected_usd
       from finding_days where org_id = $1 and finding_id = f.id and day = any($4::date[])) n
     where f.org_id = $1 and f.id = $2::uuid`,
    [...values, amountCents, tier, notes, openedBy, reason],
  );
  await inside.run(
    `insert into dispute_days (org_id, dispute_id, day, provider, provider_account_id, model, kind, variant, billed_usd, expected_usd,
       impact_usd, rate_usd, volume_usd, own_pricing_usd)
     select n.org_id, $3::uuid, n.day, f.provider, f.provider_account_id, f.model, f.kind, f.variant, n.billed_usd, n.expected_usd,
       n.impact_usd, n.rate_usd, n.volume_usd, n.own_pricing_usd
     from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id and n.day = any($4::date[])
     where f.org_id = $1 and f.id = $2::uuid`,
    values,
  );
  const opened = await findDispute(inside, id);
  if (opened) await publishMessages(inside, [disputeMessage(opened)]);
  return opened;
}

/** A dispute that is locked against resolving and claiming, with the status of its claim. */
export interface HeldDispute {
  dispute: StoredDispute;
  claimStatus: ClaimStatus | null;
}

export async function lockDispute(inside: OrgDb, id: string): Promise<HeldDispute | undefined> {
  const held = await inside.rows('select 1 from disputes where org_id = $1 and id = $2::uuid for update', [
    inside.orgId,
    id,
  ]);
  // Read by a separate statement, whose snapshot is from after the lock.
  const dispute = held.length === 0 ? undefined : await findDispute(inside, id);
  if (!dispute) return undefined;
  const [claim] = await inside.rows<{ status: ClaimStatus }>(
    'select status from claims where org_id = $1 and id = $2::uuid',
    [inside.orgId, dispute.claimId],
  );
  return { dispute, claimStatus: claim?.status ?? null };
}

export interface Resolution {
  resolution: string;
  notes: string | null;
  by: string;
  /** Default: now, by the database's clock. */
  atMicros?: bigint;
}

/** Resolves a locked dispute that is in no claim. */
export function resolveOpenDispute(inside: OrgDb, id: string, resolution: Resolution): Promise<void> {
  return resolveWhere(inside, `id = $2::uuid and status = 'open' and claim_id is null`, id, resolution);
}

/** Resolves the unresolved disputes of an ended claim. */
export function resolveDisputesOfClaim(
  inside: OrgDb,
  claimId: string,
  resolution: Resolution,
): Promise<void> {
  return resolveWhere(inside, `claim_id = $2::uuid and status <> 'resolved'`, claimId, resolution);
}

/** Resolves disputes, releases their days and publishes one message each. */
async function resolveWhere(
  inside: OrgDb,
  condition: string,
  id: string,
  { resolution, notes, by, atMicros }: Resolution,
): Promise<void> {
  const resolved = await inside.rows<ResolvedDispute>(
    `update disputes set status = 'resolved', resolution = $3, resolution_notes = $4, resolved_by = $5,
       resolved_at = coalesce($6::timestamptz, now())
     where org_id = $1 and ${condition}
     returning id, finding_id as "findingId", claim_id as "claimId", kind, provider, confidence_tier as tier,
       amount_cents as "amountCents", period_start as "periodStart", period_end as "periodEnd", resolution,
       resolved_at as "resolvedAtMicros"`,
    [inside.orgId, id, resolution, notes, by, atMicros === undefined ? null : isoFromMicros(atMicros)],
  );
  if (resolved.length === 0) return;
  const ids = plainArray(resolved.map((dispute) => dispute.id));
  // Findings are locked before days, in the order of a publishing run. Findings whose days the disputes held are open again.
  await inside.run(
    `update findings set status = 'open', decided_at = null, decided_by = null, decision_reason = null, held_by = null, updated_at = now()
     where org_id = $1 and held_by = any($2::uuid[])`,
    [inside.orgId, ids],
  );
  await inside.run(
    'update dispute_days set live = false where org_id = $1 and dispute_id = any($2::uuid[]) and live',
    [inside.orgId, ids],
  );
  await publishMessages(
    inside,
    resolved.map((dispute) => disputeResolvedMessage(newUuid(dispute.resolvedAtMicros), dispute)),
  );
}

/** A dispute as exports show it. */
export interface ExportedDispute {
  id: string;
  claimId: string | null;
  provider: string;
  model: string;
  periodStart: string;
  periodEnd: string;
  kind: FindingKind;
  status: DisputeStatus;
  /** Exact: the sum of its days. */
  amountPico: Pico;
  amountCents: number;
  tier: DisputeTier;
  reason: string;
  resolution: string | null;
  /** Of the person who resolved it; before that, of the person who opened it. */
  notes: string | null;
  openedAtMicros: bigint;
  resolvedAtMicros: bigint | null;
}

const EXPORTED = defineEntity<ExportedDispute>('disputes', {
  id: column(),
  claimId: column(),
  provider: column(),
  model: column(),
  periodStart: column(),
  periodEnd: column(),
  kind: column(),
  status: column(),
  amountPico: column('provider_cost_usd - our_cost_usd'),
  amountCents: column(),
  tier: column('confidence_tier'),
  reason: column(),
  resolution: column(),
  notes: column('coalesce(resolution_notes, notes)'),
  openedAtMicros: column(),
  resolvedAtMicros: column(),
});

const EXPORT_ROWS = 500;

/** Disputes in order of opening; each page is one statement, so that a slow reader delays nothing. */
export async function* streamDisputes(
  orgDb: OrgDb,
  status: DisputeStatus | undefined,
): AsyncGenerator<ExportedDispute[]> {
  for (let last: ExportedDispute | undefined; ; ) {
    const page: ExportedDispute[] = await listEntities(orgDb, EXPORTED, {
      where: { status },
      order: [
        { column: 'opened_at', type: 'timestamptz' },
        { column: 'id', type: 'uuid' },
      ],
      direction: 'asc',
      page: { limit: EXPORT_ROWS, offset: 0, after: last && [isoFromMicros(last.openedAtMicros), last.id] },
    });
    if (page.length > 0) yield page;
    last = page.at(-1);
    if (page.length < EXPORT_ROWS) return;
  }
}
