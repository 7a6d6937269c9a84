import type { ClaimStatus, MoveFields } from '../../domain/claims/lifecycle.js';
import { isoFromMicros } from '../../domain/period.js';
import type { TaxonomyKind } from '../../domain/reconciliation/taxonomy.js';
import type { OrgDb } from '../orgDb.js';

/** One move of a claim's history; its making is the first. */
export interface ClaimEvent {
  claimId: string;
  /** Of the claim from then on. */
  version: number;
  commandId: string;
  /** Null: its making. */
  from: ClaimStatus | null;
  to: ClaimStatus;
  atMicros: bigint;
  /** The id of the key that asked for it, or who else made it. */
  actor: string;
  fields: MoveFields;
  /** The notice that was next from then on. */
  nextAction: string | null;
  nextActionAtMicros: bigint | null;
}

/** As a move says them; what it did not say is left out. */
interface StoredFields {
  denial_reason?: string;
  violation_type?: TaxonomyKind;
  credit_issued_cents?: number;
  external_ticket_id?: string;
}

interface EventRow {
  claim_id: string;
  version: number;
  command_id: string;
  from_status: ClaimStatus | null;
  to_status: ClaimStatus;
  at: bigint;
  actor: string;
  fields: StoredFields;
  next_action: string | null;
  next_action_at: bigint | null;
}

const COLUMNS =
  'claim_id, version, command_id, from_status, to_status, at, actor, fields, next_action, next_action_at';

function fromEventRow(row: EventRow): ClaimEvent {
  return {
    claimId: row.claim_id,
    version: row.version,
    commandId: row.command_id,
    from: row.from_status,
    to: row.to_status,
    atMicros: row.at,
    actor: row.actor,
    fields: {
      denialReason: row.fields.denial_reason ?? null,
      violationType: row.fields.violation_type ?? null,
      creditIssuedCents: row.fields.credit_issued_cents ?? null,
      externalTicketId: row.fields.external_ticket_id ?? null,
    },
    nextAction: row.next_action,
    nextActionAtMicros: row.next_action_at,
  };
}

function storedFields(fields: MoveFields): StoredFields {
  return {
    ...(fields.denialReason === null ? {} : { denial_reason: fields.denialReason }),
    ...(fields.violationType === null ? {} : { violation_type: fields.violationType }),
    ...(fields.creditIssuedCents === null ? {} : { credit_issued_cents: fields.creditIssuedCents }),
    ...(fields.externalTicketId === null ? {} : { external_ticket_id: fields.externalTicketId }),
  };
}

/** A claim's history in the order in which it happened. */
export async function listClaimEvents(orgDb: OrgDb, claimId: string): Promise<ClaimEvent[]> {
  const rows = await orgDb.rows<EventRow>(
    `select ${COLUMNS} from claim_events where org_id = $1 and claim_id = $2::uuid order by version`,
    [orgDb.orgId, claimId],
  );
  return rows.map(fromEventRow);
}

/** What a command has done; undefined where it is not recorded. */
export async function findClaimEventOf(orgDb: OrgDb, commandId: string): Promise<ClaimEvent | undefined> {
  const [row] = await orgDb.rows<EventRow>(
    `select ${COLUMNS} from claim_events where org_id = $1 and command_id = $2`,
    [orgDb.orgId, commandId],
    'claim-event-of-command',
  );
  return row && fromEventRow(row);
}

/** Adds to a claim's history, in the transaction that changes the claim. */
export async function insertClaimEvent(inside: OrgDb, event: ClaimEvent): Promise<void> {
  await inside.run(
    `insert into claim_events (org_id, claim_id, version, command_id, from_status, to_status, at, actor, fields, next_action, next_action_at)
     values ($1, $2::uuid, $3, $4, $5, $6, $7::timestamptz, $8, $9::jsonb, $10, $11::timestamptz)`,
    [
      ...[inside.orgId, event.claimId, event.version, event.commandId, event.from, event.to],
      ...[isoFromMicros(event.atMicros), event.actor, JSON.stringify(storedFields(event.fields))],
      event.nextAction,
      event.nextActionAtMicros === null ? null : isoFromMicros(event.nextActionAtMicros),
    ],
  );
}
