import type { DisputeStatus, DisputeTier } from '../../domain/claims/decision.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { FindingDay, Finding as FoundFinding } from '../../domain/reconciliation/inference/finding.js';
import {
  type FindingLineText,
  linesFromText,
} from '../../domain/reconciliation/inference/findingLineText.js';
import type { WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import { disputeMessage } from '../../domain/webhooks/disputeMessage.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { amountsOfDay, type DayRow, type FindingEvidence } from '../reconciliation/findings.js';
import { publishMessages } from '../webhooks/webhookMessages.js';

export interface StoredDispute {
  id: string;
  findingId: string;
  claimId: string | null;
  provider: string;
  accountId: string;
  model: string;
  kind: FindingKind;
  /** Both inclusive, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  status: DisputeStatus;
  /** Of its days' impact, rounded down. */
  amountCents: number;
  billedPico: Pico;
  expectedPico: Pico;
  tier: DisputeTier;
  /** The finding's cause as it was, and the dollars of the dispute's own days. */
  reason: string;
  /** The run whose result it was. */
  runId: string;
  notes: string | null;
  openedAtMicros: bigint;
  openedBy: string;
  resolution: string | null;
  resolutionNotes: string | null;
  resolvedAtMicros: bigint | null;
  resolvedBy: string | null;
  /** Whether runs still find what it is about. */
  isFound: boolean;
}

interface DisputeRow {
  id: string;
  finding_id: string;
  claim_id: string | null;
  provider: string;
  provider_account_id: string;
  model: string;
  kind: FindingKind;
  period_start: string;
  period_end: string;
  status: DisputeStatus;
  amount_cents: number;
  provider_cost_usd: Pico;
  our_cost_usd: Pico;
  confidence_tier: DisputeTier;
  reason: string;
  run_id: string;
  notes: string | null;
  opened_at: bigint;
  opened_by: string;
  resolution: string | null;
  resolution_notes: string | null;
  resolved_at: bigint | null;
  resolved_by: string | null;
  is_found: boolean;
}

const NAMES = [
  ...[
    'id',
    'finding_id',
    'claim_id',
    'provider',
    'provider_account_id',
    'model',
    'kind',
    'period_start',
    'period_end',
  ],
  ...[
    'status',
    'amount_cents',
    'provider_cost_usd',
    'our_cost_usd',
    'confidence_tier',
    'reason',
    'notes',
    'opened_at',
  ],
  ...['opened_by', 'resolution', 'resolution_notes', 'resolved_at', 'resolved_by'],
];
/** Of disputes `d` of organization $1. */
const COLUMNS = `${NAMES.map((name) => `d.${name}`).join(', ')}, d.evidence ->> 'run_id' as run_id,
  exists (select from findings f where f.org_id = $1 and f.id = d.finding_id and f.status <> 'gone') as is_found`;

function fromDisputeRow(row: DisputeRow): StoredDispute {
  return {
    id: row.id,
    findingId: row.finding_id,
    claimId: row.claim_id,
    provider: row.provider,
    accountId: row.provider_account_id,
    model: row.model,
    kind: row.kind,
    periodStart: row.period_start,
    periodEnd: row.period_end,
    status: row.status,
    amountCents: row.amount_cents,
    billedPico: row.provider_cost_usd,
    expectedPico: row.our_cost_usd,
    tier: row.confidence_tier,
    reason: row.reason,
    runId: row.run_id,
    notes: row.notes,
    openedAtMicros: row.opened_at,
    openedBy: row.opened_by,
    resolution: row.resolution,
    resolutionNotes: row.resolution_notes,
    resolvedAtMicros: row.resolved_at,
    resolvedBy: row.resolved_by,
    isFound: row.is_found,
  };
}

export interface DisputeFilter {
  status?: DisputeStatus | undefined;
  provider?: string | undefined;
  findingId?: string | undefined;
}

/** A page of disputes, newest first (opening, then id). */
export async function listDisputes(
  orgDb: OrgDb,
  filter: DisputeFilter,
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<StoredDispute[]> {
  const values: SqlValue[] = [orgDb.orgId];
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = ['d.org_id = $1'];
  if (filter.status !== undefined) conditions.push(`d.status = ${bind(filter.status)}`);
  if (filter.provider !== undefined) conditions.push(`d.provider = ${bind(filter.provider)}`);
  if (filter.findingId !== undefined) conditions.push(`d.finding_id = ${bind(filter.findingId)}::uuid`);
  if (page.after) {
    const at = `${bind(isoFromMicros(page.after.micros))}::timestamptz`;
    conditions.push(`(d.opened_at, d.id) < (${at}, ${bind(page.after.id)}::uuid)`);
  }
  const rows = await orgDb.rows<DisputeRow>(
    `select ${COLUMNS} from disputes d where ${conditions.join(' and ')}
     order by d.opened_at desc, d.id desc limit ${bind(page.limit)} offset ${bind(page.offset)}`,
    values,
  );
  return rows.map(fromDisputeRow);
}

export async function findDispute(orgDb: OrgDb, id: string): Promise<StoredDispute | undefined> {
  const rows = await orgDb.rows<DisputeRow>(
    `select ${COLUMNS} from disputes d where d.org_id = $1 and d.id = $2::uuid`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromDisputeRow(rows[0]);
}

/** What a dispute rested on when it was opened. */
export interface DisputeEvidence extends FindingEvidence {
  next: FoundFinding['next'];
  weightSet: string;
}

/** Undefined where there is no such dispute. */
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

/** The days that a dispute is about, as they were when it was opened, in their order. */
export async function listDisputeDays(orgDb: OrgDb, id: string): Promise<Omit<FindingDay, 'probability'>[]> {
  const rows = await orgDb.rows<DayRow>(
    `select day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd
     from dispute_days where org_id = $1 and dispute_id = $2::uuid order by day`,
    [orgDb.orgId, id],
  );
  return rows.map(amountsOfDay);
}

/**
 * The days of a finding that no dispute is about or was about, in their order: none over the finding, in whichever way it
 * was made then, and none over the same explanation of the day.
 */
export async function listUndisputedDays(
  inside: OrgDb,
  findingId: string,
): Promise<Omit<FindingDay, 'probability'>[]> {
  const rows = await inside.rows<DayRow>(
    `select n.day, n.billed_usd, n.expected_usd, n.impact_usd, n.rate_usd, n.volume_usd, n.own_pricing_usd
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
  return rows.map(amountsOfDay);
}

/**
 * An open dispute over days of a finding's series that was opened under another name, and whose own finding is gone or no
 * longer has those days: the same dollars, perhaps. Undefined where there is none. Disputes of findings that stand hold
 * other dollars of the same day, since none is found twice.
 */
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

/**
 * Disputes that a finding's days are in, newest first: those over the finding, and those over the same explanation of one
 * of its days that was another finding's then, as when later runs find in two parts what they had found in one.
 */
export async function listDisputesOf(orgDb: OrgDb, findingId: string): Promise<StoredDispute[]> {
  const rows = await orgDb.rows<DisputeRow>(
    `select ${COLUMNS} from disputes d where d.org_id = $1 and (d.finding_id = $2::uuid or d.id in (
       select t.dispute_id
       from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
       join dispute_days t on t.org_id = $1 and t.provider = f.provider and t.provider_account_id = f.provider_account_id
         and t.model = f.model and t.kind = f.kind and t.variant = f.variant and t.day = n.day
       where f.org_id = $1 and f.id = $2::uuid))
     order by d.opened_at desc, d.id desc`,
    [orgDb.orgId, findingId],
  );
  return rows.map(fromDisputeRow);
}

export interface NewDispute {
  id: string;
  /** Days of the finding that no dispute is about. */
  days: readonly Omit<FindingDay, 'probability'>[];
  amountCents: bigint;
  reason: string;
  tier: DisputeTier;
  notes: string | null;
  openedBy: string;
}

/**
 * Opens a dispute over days of a finding, in the transaction that holds it, and leaves its webhook message. Undefined, and
 * nothing done, where there is no such finding.
 */
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
       jsonb_build_object('run_id', f.run_id, 'grade', f.grade, 'probability', f.probability, 'match_probability', f.match_probability,
         'visibility', f.visibility, 'missing_gates', f.missing_gates, 'next_best', f.next_best, 'lines', f.lines,
         'waterfall', f.waterfall, 'advice', f.advice, 'weight_set', f.weight_set), $7, $8
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
