import type { DisputeTier } from '../../domain/claims/decision.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { type OrgDb, type SqlValue, unscoped } from '../orgDb.js';

/** A claim without its evidence and its history. */
export interface StoredClaim {
  id: string;
  /** Counts up with every change that somebody asked for. */
  version: number;
  status: ClaimStatus;
  provider: string;
  accountId: string;
  /** Both inclusive, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  recoverableCents: number;
  tier: DisputeTier;
  /** Of the evidence's canonical text, hexadecimal. */
  evidenceSha256: string;
  /** When a day under it was restated after the evidence was frozen. */
  evidenceStaleAtMicros: bigint | null;
  submittedAtMicros: bigint | null;
  resolvedAtMicros: bigint | null;
  /** When it came into its status. */
  enteredAtMicros: bigint;
  externalTicketId: string | null;
  creditIssuedCents: number | null;
  notes: string | null;
  /** The next notice, and when it is due. */
  nextAction: string | null;
  nextActionAtMicros: bigint | null;
  /** The steps of its status that somebody was told of. */
  stepsTold: readonly string[];
  snoozedUntilMicros: bigint | null;
  createdAtMicros: bigint;
  createdBy: string;
  updatedAtMicros: bigint;
}

interface ClaimRow {
  id: string;
  version: number;
  status: ClaimStatus;
  provider: string;
  provider_account_id: string;
  period_start: string;
  period_end: string;
  total_recoverable_cents: number;
  confidence_tier: DisputeTier;
  evidence_sha256: Buffer;
  evidence_stale_at: bigint | null;
  submitted_at: bigint | null;
  resolved_at: bigint | null;
  entered_at: bigint;
  external_ticket_id: string | null;
  credit_issued_cents: number | null;
  notes: string | null;
  next_action: string | null;
  next_action_at: bigint | null;
  steps_told: string[];
  snoozed_until: bigint | null;
  created_at: bigint;
  created_by: string;
  updated_at: bigint;
}

const COLUMNS = `id, version, status, provider, provider_account_id, period_start, period_end, total_recoverable_cents,
  confidence_tier, evidence_sha256, evidence_stale_at, submitted_at, resolved_at, entered_at, external_ticket_id,
  credit_issued_cents, notes, next_action, next_action_at, steps_told, snoozed_until, created_at, created_by, updated_at`;

function fromClaimRow(row: ClaimRow): StoredClaim {
  return {
    id: row.id,
    version: row.version,
    status: row.status,
    provider: row.provider,
    accountId: row.provider_account_id,
    periodStart: row.period_start,
    periodEnd: row.period_end,
    recoverableCents: row.total_recoverable_cents,
    tier: row.confidence_tier,
    evidenceSha256: row.evidence_sha256.toString('hex'),
    evidenceStaleAtMicros: row.evidence_stale_at,
    submittedAtMicros: row.submitted_at,
    resolvedAtMicros: row.resolved_at,
    enteredAtMicros: row.entered_at,
    externalTicketId: row.external_ticket_id,
    creditIssuedCents: row.credit_issued_cents,
    notes: row.notes,
    nextAction: row.next_action,
    nextActionAtMicros: row.next_action_at,
    stepsTold: row.steps_told,
    snoozedUntilMicros: row.snoozed_until,
    createdAtMicros: row.created_at,
    createdBy: row.created_by,
    updatedAtMicros: row.updated_at,
  };
}

export async function findClaim(orgDb: OrgDb, id: string): Promise<StoredClaim | undefined> {
  const [row] = await orgDb.rows<ClaimRow>(
    `select ${COLUMNS} from claims where org_id = $1 and id = $2::uuid`,
    [orgDb.orgId, id],
    'claim-find',
  );
  return row && fromClaimRow(row);
}

/** The claim as it is, held for the rest of the transaction: nobody else changes it meanwhile. */
export async function lockClaim(inside: OrgDb, id: string): Promise<StoredClaim | undefined> {
  const [row] = await inside.rows<ClaimRow>(
    `select ${COLUMNS} from claims where org_id = $1 and id = $2::uuid for update`,
    [inside.orgId, id],
    'claim-lock',
  );
  return row && fromClaimRow(row);
}

/** Every claim that is not over, held for the rest of the transaction; by id, as whoever holds several takes them. */
export async function lockOpenClaims(inside: OrgDb): Promise<StoredClaim[]> {
  const rows = await inside.rows<ClaimRow>(
    `select ${COLUMNS} from claims where org_id = $1 and resolved_at is null order by id for update`,
    [inside.orgId],
  );
  return rows.map(fromClaimRow);
}

/** The evidence as it was frozen; undefined where there is no such claim. */
export async function findClaimEvidence(
  orgDb: OrgDb,
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await orgDb.rows<{ evidence: Record<string, unknown> }>(
    'select evidence from claims where org_id = $1 and id = $2::uuid',
    [orgDb.orgId, id],
  );
  return row?.evidence;
}

export interface ClaimFilter {
  status?: ClaimStatus | undefined;
  provider?: string | undefined;
}

/** A page of claims, newest first (making, then id). */
export async function listClaims(
  orgDb: OrgDb,
  filter: ClaimFilter,
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<StoredClaim[]> {
  const values: SqlValue[] = [orgDb.orgId];
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = ['org_id = $1'];
  if (filter.status !== undefined) conditions.push(`status = ${bind(filter.status)}`);
  if (filter.provider !== undefined) conditions.push(`provider = ${bind(filter.provider)}`);
  if (page.after) {
    const at = `${bind(isoFromMicros(page.after.micros))}::timestamptz`;
    conditions.push(`(created_at, id) < (${at}, ${bind(page.after.id)}::uuid)`);
  }
  const rows = await orgDb.rows<ClaimRow>(
    `select ${COLUMNS} from claims where ${conditions.join(' and ')}
     order by created_at desc, id desc limit ${bind(page.limit)} offset ${bind(page.offset)}`,
    values,
  );
  return rows.map(fromClaimRow);
}

/** The ids of a claim's disputes, in the order in which they were opened. */
export async function listDisputeIdsOfClaim(orgDb: OrgDb, id: string): Promise<string[]> {
  const rows = await orgDb.rows<{ id: string }>(
    'select id from disputes where org_id = $1 and claim_id = $2::uuid order by opened_at, id',
    [orgDb.orgId, id],
  );
  return rows.map((row) => row.id);
}

/** A claim whose workflow may be lost. */
export interface WatchedClaim {
  orgId: string;
  claimId: string;
}

/**
 * Claims whose notice was due longer ago than `seconds`, where no word to their workflow is on its way or was given for less
 * than five times as long: one that nobody works on gathers no more words than it needs.
 */
export async function listOverdueClaims(database: Database, seconds: number): Promise<WatchedClaim[]> {
  const rows = await unscoped(
    database,
    'the sweeper looks for overdue claims of every organization',
    (system) =>
      system.rows<{ org_id: string; id: string }>(
        `select c.org_id, c.id from claims c
         where c.next_action_at < now() - make_interval(secs => $1)
           and not exists (select from outbox o where o.org_id = c.org_id and o.subject_id = c.id and o.kind = 'claim.wake'
             and o.dead_at is null and (o.dispatched_at is null or o.dispatched_at > now() - make_interval(secs => 5 * $1)))
         order by c.next_action_at limit 1000`,
        [seconds],
      ),
  );
  return rows.map((row) => ({ orgId: row.org_id, claimId: row.id }));
}

/** A page of the claims that are not over, by organization and id, where no word to their workflow is on its way. */
export async function listOpenClaims(
  database: Database,
  after: WatchedClaim | undefined,
  limit: number,
): Promise<WatchedClaim[]> {
  const first = '00000000-0000-0000-0000-000000000000';
  const rows = await unscoped(
    database,
    'the sweeper compares the open claims of every organization with the workflows that run',
    (system) =>
      system.rows<{ org_id: string; id: string }>(
        `select c.org_id, c.id from claims c
         where c.resolved_at is null and (c.org_id, c.id) > ($1::uuid, $2::uuid)
           and not exists (select from outbox o where o.org_id = c.org_id and o.subject_id = c.id and o.kind = 'claim.wake'
             and o.dispatched_at is null and o.dead_at is null)
         order by c.org_id, c.id limit $3`,
        [after?.orgId ?? first, after?.claimId ?? first, limit],
      ),
  );
  return rows.map((row) => ({ orgId: row.org_id, claimId: row.id }));
}
