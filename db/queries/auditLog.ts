import type { AuditEntry } from '../../domain/auditLog/actions.js';
import { auditFields, FIRST_PREV_HASH, restOfAuditText } from '../../domain/auditLog/record.js';
import type { OrgDb } from '../orgDb.js';

const APPEND = `
with told as materialized (select clock_timestamp() as at),
  head as (
    insert into audit_heads as h (org_id, seq, at, prev_hash, hash)
    select $1::uuid, 1, told.at, '\\x${FIRST_PREV_HASH}'::bytea, audit_hash('\\x${FIRST_PREV_HASH}'::bytea, 1, told.at, $2) from told
    on conflict (org_id) do update set seq = h.seq + 1, at = greatest(h.at, excluded.at), prev_hash = h.hash,
      hash = audit_hash(h.hash, h.seq + 1, greatest(h.at, excluded.at), $2)
    returning h.seq, h.at, h.prev_hash, h.hash)
insert into audit_log (org_id, seq, at, action, actor_kind, actor_id, subject_type, subject_id, details, request_id, prev_hash, hash)
select $1::uuid, seq, at, $3, $4, $5, $6, $7, $8, $9, prev_hash, hash from head`;

/**
 * Adds a row to the organization's audit log, in the transaction that makes the change: both happen or neither does.
 * From here to the commit no other transaction of the organization can add one, so make it the last statement where
 * that is possible. Not for transactions of `repeatable read`, where a row added meanwhile makes it fail.
 * The time is the database's.
 */
export async function recordAudit(orgDb: OrgDb, entry: AuditEntry): Promise<void> {
  const fields = auditFields(entry);
  await orgDb.rows(
    APPEND,
    [
      orgDb.orgId,
      restOfAuditText({ orgId: orgDb.orgId, ...fields }),
      fields.action,
      fields.actor.kind,
      fields.actor.id,
      fields.subject?.type ?? null,
      fields.subject?.id ?? null,
      fields.details,
      fields.requestId,
    ],
    'audit-append',
  );
}
