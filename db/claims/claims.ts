import { BusinessDays } from '../../domain/claims/deadlines.js';
import type { DisputeTier } from '../../domain/claims/financialSummary.js';
import type { ClaimStatus, CreditSource, CreditStatus, MoveFields } from '../../domain/claims/lifecycle.js';
import { parseSettings } from '../../domain/installation/settings.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind, TaxonomyKind } from '../../domain/reconciliation/taxonomy.js';
import type { LevelVector } from '../../domain/reconciliation/weights/levels.js';
import type { Database } from '../client.js';
import {
  column,
  defineEntity,
  findEntity,
  insertRow,
  listNewest,
  selectEntities,
  type TimePage,
} from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

export interface StoredClaim {
  id: string;
  /** Increases with every requested change. */
  version: number;
  status: ClaimStatus;
  provider: string;
  accountId: string;
  /** Both inclusive, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  recoverableCents: number;
  tier: DisputeTier;
  /** Hash of the evidence's canonical text, hexadecimal. */
  evidenceSha256: string;
  /** When one of its days was restated after the evidence was frozen. */
  evidenceStaleAtMicros: bigint | null;
  submittedAtMicros: bigint | null;
  resolvedAtMicros: bigint | null;
  /** When it entered its status. */
  enteredAtMicros: bigint;
  externalTicketId: string | null;
  creditIssuedCents: number | null;
  notes: string | null;
  nextAction: string | null;
  nextActionAtMicros: bigint | null;
  /** The steps of its status that were notified. */
  notifiedSteps: readonly string[];
  snoozedUntilMicros: bigint | null;
  createdAtMicros: bigint;
  createdBy: string;
  updatedAtMicros: bigint;
}

export const CLAIM = defineEntity<StoredClaim>('claims', {
  id: column(),
  version: column(),
  status: column(),
  provider: column(),
  accountId: column('provider_account_id'),
  periodStart: column(),
  periodEnd: column(),
  recoverableCents: column('total_recoverable_cents'),
  tier: column('confidence_tier'),
  evidenceSha256: column("encode(evidence_sha256, 'hex')"),
  evidenceStaleAtMicros: column(),
  submittedAtMicros: column(),
  resolvedAtMicros: column(),
  enteredAtMicros: column(),
  externalTicketId: column(),
  creditIssuedCents: column(),
  notes: column(),
  nextAction: column(),
  nextActionAtMicros: column(),
  notifiedSteps: column('steps_told'),
  snoozedUntilMicros: column(),
  createdAtMicros: column(),
  createdBy: column(),
  updatedAtMicros: column(),
});

export function findClaim(orgDb: OrgDb, id: string): Promise<StoredClaim | undefined> {
  return findEntity(orgDb, CLAIM, { id }, '', 'claim-find');
}

/** The claim, locked until the transaction ends. */
export function lockClaim(inside: OrgDb, id: string): Promise<StoredClaim | undefined> {
  return findEntity(inside, CLAIM, { id }, 'for update', 'claim-lock');
}

/** Every open claim, locked until the transaction ends, in the order of ids, so that two lockers cannot deadlock. */
export function lockOpenClaims(inside: OrgDb): Promise<StoredClaim[]> {
  return selectEntities(inside, CLAIM, { resolvedAtMicros: null }, 'order by id for update');
}

export async function findClaimEvidence(
  orgDb: OrgDb,
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await orgDb.rows<{ evidence: Record<string, unknown> }>(
    'select evidence from claims where org_id = $1 and id = $2::uuid',
    [orgDb.orgId, id],
    'claim-evidence',
  );
  return row?.evidence;
}

export async function listClaims(
  orgDb: OrgDb,
  { status, provider }: { status?: ClaimStatus | undefined; provider?: string | undefined },
  page: TimePage,
): Promise<StoredClaim[]> {
  return listNewest(orgDb, CLAIM, { where: { status, provider }, page });
}

/** Claims that cover a day of a period, newest first. */
export function listClaimsOver(
  orgDb: OrgDb,
  { fromDay, toDay }: { fromDay: string; toDay: string },
  limit: number,
): Promise<StoredClaim[]> {
  return listNewest(orgDb, CLAIM, {
    and: (query) => query.where('period_end', '>=', fromDay).where('period_start', '<=', toDay),
    page: { limit, offset: 0 },
  });
}

export async function listDisputeIdsOfClaim(orgDb: OrgDb, id: string): Promise<string[]> {
  const rows = await orgDb.rows<{ id: string }>(
    'select id from disputes where org_id = $1 and claim_id = $2::uuid order by opened_at, id',
    [orgDb.orgId, id],
    'claim-disputes',
  );
  return rows.map((row) => row.id);
}

/** A claim whose workflow may be lost. */
export interface WatchedClaim {
  orgId: string;
  claimId: string;
}

/** Claims whose notice is overdue by `seconds` and whose workflow has no recent wake message. */
export async function listOverdueClaims(database: Database, seconds: number): Promise<WatchedClaim[]> {
  return unscoped(database, 'the sweeper looks for overdue claims of every organization', (system) =>
    system.rows<WatchedClaim>(
      `select c.org_id as "orgId", c.id as "claimId" from claims c
         where c.next_action_at < now() - make_interval(secs => $1)
           and not exists (select from outbox o where o.org_id = c.org_id and o.subject_id = c.id and o.kind = 'claim.wake'
             and o.dead_at is null and (o.dispatched_at is null or o.dispatched_at > now() - make_interval(secs => 5 * $1)))
         order by c.next_action_at limit 1000`,
      [seconds],
    ),
  );
}

/** A page of the open claims without a pending message to their workflow, by organization and id. */
export async function listOpenClaims(
  database: Database,
  after: WatchedClaim | undefined,
  limit: number,
): Promise<WatchedClaim[]> {
  const first = '00000000-0000-0000-0000-000000000000';
  return unscoped(
    database,
    'the sweeper compares the open claims of every organization with the workflows that run',
    (system) =>
      system.rows<WatchedClaim>(
        `select c.org_id as "orgId", c.id as "claimId" from claims c
         where c.resolved_at is null and (c.org_id, c.id) > ($1::uuid, $2::uuid)
           and not exists (select from outbox o where o.org_id = c.org_id and o.subject_id = c.id and o.kind = 'claim.wake'
             and o.dispatched_at is null and o.dead_at is null)
         order by c.org_id, c.id limit $3`,
        [after?.orgId ?? first, after?.claimId ?? first, limit],
      ),
  );
}

/** One move of a claim's history; its creation is the first. */
export interface ClaimEvent {
  claimId: string;
  /** The claim's version after the move. */
  version: number;
  commandId: string;
  from: ClaimStatus | null;
  to: ClaimStatus;
  atMicros: bigint;
  /** The id of the requesting key, or the name of another actor. */
  actor: string;
  fields: MoveFields;
  nextAction: string | null;
  nextActionAtMicros: bigint | null;
}

const EVENT = defineEntity<ClaimEvent>('claim_events', {
  claimId: column(),
  version: column(),
  commandId: column(),
  from: column('from_status'),
  to: column('to_status'),
  atMicros: column(),
  actor: column(),
  fields:
    column(`jsonb_build_object('denialReason', fields -> 'denial_reason', 'violationType', fields -> 'violation_type',
    'creditIssuedCents', fields -> 'credit_issued_cents', 'externalTicketId', fields -> 'external_ticket_id')`),
  nextAction: column(),
  nextActionAtMicros: column(),
});

export function listClaimEvents(orgDb: OrgDb, claimId: string): Promise<ClaimEvent[]> {
  return selectEntities(orgDb, EVENT, { claimId }, 'order by version', 'claim-events');
}

export function findClaimEventOf(orgDb: OrgDb, commandId: string): Promise<ClaimEvent | undefined> {
  return findEntity(orgDb, EVENT, { commandId }, '', 'claim-event-of-command');
}

export async function insertClaimEvent(inside: OrgDb, event: ClaimEvent): Promise<void> {
  const { denialReason, violationType, creditIssuedCents, externalTicketId } = event.fields;
  const fields = {
    ...{ denial_reason: denialReason, violation_type: violationType },
    ...{ credit_issued_cents: creditIssuedCents, external_ticket_id: externalTicketId },
  };
  await inside.run(
    `insert into claim_events (org_id, claim_id, version, command_id, from_status, to_status, at, actor, fields, next_action, next_action_at)
     values ($1, $2::uuid, $3, $4, $5, $6, $7::timestamptz, $8, jsonb_strip_nulls($9::jsonb), $10, $11::timestamptz)`,
    [
      ...[inside.orgId, event.claimId, event.version, event.commandId, event.from, event.to],
      ...[isoFromMicros(event.atMicros), event.actor, JSON.stringify(fields)],
      event.nextAction,
      event.nextActionAtMicros === null ? null : isoFromMicros(event.nextActionAtMicros),
    ],
    'claim-event-insert',
  );
}

/** The provider's final answer to a claim. */
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

/** The outcome for one kind of the claimed disputes, with their confidence. */
export interface ClaimOutcomeKind {
  claimedType: FindingKind;
  claimedCents: bigint;
  levels: LevelVector;
  probability: number;
  rawProbability: number;
  weightSet: string;
}

/** A dispute of the claim as it was opened; the input of an outcome's kinds. */
export interface ClaimedDispute {
  id: string;
  kind: FindingKind;
  amountCents: number;
  probability: number;
  waterfall: readonly WaterfallStep[];
  weightSet: string;
}

const OUTCOME = defineEntity<ClaimOutcome>('claim_outcomes', {
  claimId: column(),
  status: column(),
  denialReason: column(),
  violationType: column(),
  creditIssuedCents: column(),
  actor: column(),
  atMicros: column(),
});

export function listClaimOutcomes(orgDb: OrgDb, claimId: string): Promise<ClaimOutcome[]> {
  return selectEntities(orgDb, OUTCOME, { claimId }, '', 'claim-outcomes');
}

export async function listClaimedDisputes(orgDb: OrgDb, claimId: string): Promise<ClaimedDispute[]> {
  return orgDb.rows<ClaimedDispute>(
    `select id, kind, amount_cents as "amountCents", coalesce((evidence ->> 'probability')::double precision, 0) as probability,
       coalesce(evidence -> 'waterfall', '[]'::jsonb) as waterfall, coalesce(evidence ->> 'weight_set', '') as "weightSet"
     from disputes where org_id = $1 and claim_id = $2::uuid order by amount_cents desc, id`,
    [orgDb.orgId, claimId],
  );
}

/** Stores the outcome of a claim with its kinds, in the transaction that ends the claim. */
export async function insertClaimOutcome(
  inside: OrgDb,
  outcome: ClaimOutcome,
  { provider, fraction, kinds }: { provider: string; fraction: string; kinds: readonly ClaimOutcomeKind[] },
): Promise<void> {
  await insertRow(inside, 'claim_outcomes', { orgId: inside.orgId, ...outcome });
  for (const { levels, ...kind } of kinds)
    await insertRow(inside, 'claim_outcome_kinds', {
      orgId: inside.orgId,
      claimId: outcome.claimId,
      ...kind,
      ...{ provider, fraction, levels: JSON.stringify(levels), atMicros: outcome.atMicros },
    });
}

/** Cached by settings, because computing the business days for each move is slow. */
const known = new Map<string, BusinessDays>();
const KNOWN_MAX = 50;

/**
 * The organization's business days. Lock the claim's row first, so that a change of settings is wholly before or after.
 */
export async function readBusinessDays(orgDb: OrgDb): Promise<BusinessDays> {
  const [row] = await orgDb.rows<{ settings: string }>(
    `select (settings - 'counted_scopes')::text as settings from organizations where id = $1`,
    [orgDb.orgId],
    'business-days',
  );
  if (!row) throw new Error('a claim belongs to an organization that is there');
  const found = known.get(row.settings) ?? new BusinessDays(parseSettings(JSON.parse(row.settings)).settings);
  known.delete(row.settings);
  known.set(row.settings, found);
  const [oldest] = known.keys();
  if (known.size > KNOWN_MAX && oldest !== undefined) known.delete(oldest);
  return found;
}

/** The decider of credits that no person has to decide on. */
export const DECIDED_BY_RUN = 'gap_run';

/** Rows of a bill, or restated days, that together look like the answer to a claim. */
export interface StoredCredit {
  /** Id of the proposal. */
  id: string;
  claimId: string;
  source: CreditSource;
  status: CreditStatus;
  cents: number;
  rows: readonly { day: string; amountPico: Pico; description: string; sourceKey: string }[];
  foundAtMicros: bigint;
  decidedAtMicros: bigint | null;
  decidedBy: string | null;
}

export async function listCreditsOf(orgDb: OrgDb, claimIds: readonly string[]): Promise<StoredCredit[]> {
  const rows = await orgDb.rows<Omit<StoredCredit, 'rows'> & StoredCredit['rows'][number]>(
    `select proposal_id as id, claim_id as "claimId", source, source_key as "sourceKey", day, amount_usd as "amountPico",
       amount_cents as cents, description, status, found_at as "foundAtMicros", decided_at as "decidedAtMicros", decided_by as "decidedBy"
     from claim_credits where org_id = $1 and claim_id = any($2::uuid[]) order by found_at, proposal_id, day, source_key`,
    [orgDb.orgId, plainArray(claimIds)],
    'claim-credits',
  );
  const credits = new Map<string, StoredCredit>();
  for (const { sourceKey, day, amountPico, description, ...credit } of rows) {
    const known = credits.get(credit.id);
    credits.set(credit.id, {
      ...credit,
      cents: (known?.cents ?? 0) + credit.cents,
      rows: [...(known?.rows ?? []), { day, amountPico, description, sourceKey }],
    });
  }
  return [...credits.values()];
}

/** A found credit: proposed, or already accepted where a person has recorded its arrival. */
export interface CreditToStore {
  id: string;
  claimId: string;
  source: CreditSource;
  rows: readonly {
    sourceKey: string;
    day: string;
    amountPico: Pico;
    cents: bigint;
    description: string;
  }[];
  isAccepted: boolean;
}

/** Stores a credit; fails for rows that already answer another claim. */
export async function insertCredit(inside: OrgDb, credit: CreditToStore): Promise<void> {
  const { rows } = credit;
  await inside.run(
    `insert into claim_credits (org_id, id, claim_id, proposal_id, source, source_key, day, amount_usd, amount_cents, description, status, decided_at, decided_by)
     select $1::uuid, gen_random_uuid(), $2::uuid, $3::uuid, $4, t.key, t.day, t.usd, t.cents, t.description,
       case when $5::boolean then 'accepted' else 'proposed' end, case when $5::boolean then now() end, case when $5::boolean then $6 end
     from unnest($7::text[], $8::date[], $9::numeric[], $10::bigint[], $11::text[]) as t(key, day, usd, cents, description)`,
    [
      ...[inside.orgId, credit.claimId, credit.id, credit.source, credit.isAccepted, DECIDED_BY_RUN],
      textArray(rows.map(({ sourceKey }) => sourceKey)),
      plainArray(rows.map(({ day }) => day)),
      plainArray(rows.map(({ amountPico }) => decimalFromPico(amountPico))),
      plainArray(rows.map(({ cents }) => cents)),
      textArray(rows.map(({ description }) => description)),
    ],
  );
}

/** Accepts or rejects proposed credits; earlier decisions stay. */
export async function decideOnCredits(
  inside: OrgDb,
  ids: readonly string[],
  decision: { status: 'accepted' | 'rejected'; by: string; atMicros: bigint },
): Promise<void> {
  if (ids.length === 0) return;
  await inside.run(
    `update claim_credits set status = $3, decided_by = $4, decided_at = $5::timestamptz
     where org_id = $1 and proposal_id = any($2::uuid[]) and status = 'proposed'`,
    [inside.orgId, plainArray(ids), decision.status, decision.by, isoFromMicros(decision.atMicros)],
  );
}
