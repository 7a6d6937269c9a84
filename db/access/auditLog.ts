import {
  type AuditActor,
  type AuditCheckpoint,
  type AuditEntry,
  auditFields,
  type ChainedRecord,
  type ChainPoint,
  FIRST_PREV_HASH,
  restOfAuditText,
  type Signature,
} from '../../domain/access/auditLog.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { column, defineEntity } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';

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
 * Adds a row to the organization's audit log in the transaction of the change, so that both happen or neither. Until
 * the commit no other transaction of the organization can add a row, so call it as the last statement where possible.
 * Not for `repeatable read` transactions: a row added meanwhile makes them fail. The time is the database's.
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

type FlatRecord = Omit<ChainedRecord, 'orgId' | 'actor' | 'subject'> & {
  actorKind: AuditActor['kind'];
  actorId: string;
  subjectType: string | null;
  subjectId: string | null;
};

const RECORD = defineEntity<FlatRecord>('audit_log', {
  seq: column(),
  atMicros: column(),
  action: column(),
  actorKind: column(),
  actorId: column(),
  subjectType: column(),
  subjectId: column(),
  details: column(),
  requestId: column(),
  prevHash: column("encode(prev_hash, 'hex')"),
  hash: column("encode(hash, 'hex')"),
});

function recordOf<Row extends FlatRecord>(orgId: string, row: Row) {
  const { actorKind, actorId, subjectType, subjectId, ...record } = row;
  return {
    ...record,
    orgId,
    actor: { kind: actorKind, id: actorId },
    subject: subjectType === null ? null : { type: subjectType, id: subjectId ?? '' },
  };
}

export interface AuditFilter {
  action?: string | undefined;
  actorId?: string | undefined;
  subjectType?: string | undefined;
  subjectId?: string | undefined;
  /** Half-open. */
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
}

export interface ListedAuditRecord extends ChainedRecord {
  /** The present name of the actor's key; null: the actor is not a key. */
  actorName: string | null;
}

/** Rows of the log, newest first; `beforeSeq` continues after a page. */
export async function listAuditRecords(
  orgDb: OrgDb,
  filter: AuditFilter,
  page: { limit: number; offset: number; beforeSeq?: number | undefined },
): Promise<ListedAuditRecord[]> {
  const time = (micros: bigint | undefined) => (micros === undefined ? null : isoFromMicros(micros));
  const rows = await orgDb.rows<FlatRecord & { actorName: string | null }>(
    `select ${RECORD.columns}, (
       select k.name from api_keys k where k.org_id = $1 and k.id = actor_id and actor_kind = 'key') as "actorName"
     from audit_log
     where org_id = $1 and ($2::text is null or action = $2) and ($3::text is null or actor_id = $3)
       and ($4::text is null or subject_type = $4) and ($5::text is null or subject_id = $5)
       and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7)
       and ($8::bigint is null or seq < $8)
     order by seq desc limit $9 offset $10`,
    [
      orgDb.orgId,
      filter.action ?? null,
      filter.actorId ?? null,
      filter.subjectType ?? null,
      filter.subjectId ?? null,
      time(filter.fromMicros),
      time(filter.toMicros),
      page.beforeSeq ?? null,
      page.limit,
      page.offset,
    ],
  );
  return rows.map((row) => recordOf(orgDb.orgId, row));
}

const STREAM_ROWS = 2_000;

/** All rows after `afterSeq` in order, page by page. Meant for a transaction with one snapshot. */
export async function* streamAuditRecords(
  orgDb: OrgDb,
  afterSeq: number,
): AsyncGenerator<readonly ChainedRecord[]> {
  for (let after = afterSeq; ; ) {
    const rows = await orgDb.rows<FlatRecord>(
      `select ${RECORD.columns} from audit_log where org_id = $1 and seq > $2 order by seq limit ${STREAM_ROWS}`,
      [orgDb.orgId, after],
      'audit-stream',
    );
    if (rows.length > 0) yield rows.map((row) => recordOf(orgDb.orgId, row));
    const last = rows.at(-1);
    if (!last || rows.length < STREAM_ROWS) return;
    after = last.seq;
  }
}

export async function findAuditHead(orgDb: OrgDb): Promise<(ChainPoint & { atMicros: bigint }) | undefined> {
  const [head] = await orgDb.rows<ChainPoint & { atMicros: bigint }>(
    `select seq, at as "atMicros", encode(hash, 'hex') as hash from audit_heads where org_id = $1`,
    [orgDb.orgId],
  );
  return head;
}

/** The checkpoint that replaces the rows that retention dropped; undefined: no row was dropped. */
export async function findAuditCheckpoint(
  orgDb: OrgDb,
): Promise<{ checkpoint: AuditCheckpoint; signed: Signature } | undefined> {
  const [row] = await orgDb.rows<Omit<AuditCheckpoint, 'orgId'> & Signature>(
    `select seq, at as "atMicros", encode(hash, 'hex') as hash, made_at as "madeAtMicros", key_id as "keyId",
       encode(signature, 'hex') as signature from audit_checkpoints where org_id = $1`,
    [orgDb.orgId],
  );
  if (!row) return undefined;
  const { keyId, signature, ...checkpoint } = row;
  return { checkpoint: { orgId: orgDb.orgId, ...checkpoint }, signed: { keyId, signature } };
}

/** Stores the organization's checkpoint and replaces a former one. */
export async function upsertAuditCheckpoint(
  inside: OrgDb,
  checkpoint: AuditCheckpoint,
  signed: Signature,
): Promise<void> {
  await inside.unscoped('checkpoints are made by maintenance alone', (system) =>
    system.run(
      `insert into audit_checkpoints (org_id, seq, at, hash, made_at, key_id, signature)
       values ($1, $2, $3::timestamptz, $4, $5::timestamptz, $6, $7)
       on conflict (org_id) do update set seq = excluded.seq, at = excluded.at, hash = excluded.hash,
         made_at = excluded.made_at, key_id = excluded.key_id, signature = excluded.signature`,
      [
        ...[inside.orgId, checkpoint.seq, isoFromMicros(checkpoint.atMicros)],
        ...[Buffer.from(checkpoint.hash, 'hex'), isoFromMicros(checkpoint.madeAtMicros)],
        ...[signed.keyId, Buffer.from(signed.signature, 'hex')],
      ],
    ),
  );
}

/** Deletes the rows up to a checkpoint. */
export async function deleteAuditRecords(inside: OrgDb, throughSeq: number): Promise<void> {
  await inside.unscoped('rows of the audit log go only by retention', (system) =>
    system.run('delete from audit_log where org_id = $1 and seq <= $2', [inside.orgId, throughSeq]),
  );
}

/** Organizations whose checkpoint was signed by another key. */
export async function listCheckpointsSignedOtherwise(database: Database, keyId: string): Promise<string[]> {
  const rows = await unscoped(database, 'the secret key belongs to the instance', (system) =>
    system.rows<{ org_id: string }>(
      'select org_id from audit_checkpoints where key_id <> $1 order by org_id',
      [keyId],
    ),
  );
  return rows.map((row) => row.org_id);
}

/** Organizations whose log has rows before a time. */
export async function listAuditedBefore(database: Database, beforeMicros: bigint): Promise<string[]> {
  const rows = await unscoped(database, 'retention of every organization’s audit log', (system) =>
    system.rows<{ id: string }>(
      `select o.id from organizations o
       where exists (select from audit_log a where a.org_id = o.id and a.at < $1::timestamptz) order by o.id`,
      [isoFromMicros(beforeMicros)],
    ),
  );
  return rows.map(({ id }) => id);
}

/** The first row after a checkpoint, for finding rows that should have been deleted with it. */
export async function findFirstAuditSeq(orgDb: OrgDb): Promise<number | undefined> {
  const [row] = await orgDb.rows<{ seq: number }>(
    'select seq from audit_log where org_id = $1 order by seq limit 1',
    [orgDb.orgId],
  );
  return row?.seq;
}

interface AuditHead extends ChainPoint {
  orgId: string;
}

/** The end of every organization's chain except demos', which prove nothing. */
export async function listAuditHeads(database: Database): Promise<AuditHead[]> {
  return unscoped(database, 'anchor the audit log of every organization', (system) =>
    system.rows<AuditHead>(
      `select h.org_id as "orgId", h.seq, encode(h.hash, 'hex') as hash from audit_heads h
       join organizations o on o.id = h.org_id where o.demo_end_day is null order by h.org_id`,
    ),
  );
}
