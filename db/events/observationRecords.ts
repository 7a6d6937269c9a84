import type {
  ObservationRecord,
  RecordFields,
  RecordKind,
} from '../../domain/events/observations/observationRecord.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { jsonLines, jsonLinesSql, textArray } from '../pgArray.js';

/**
 * Observations that clients report in parts (observation_records). A row is locked while a request joins its parts, so
 * that requests at the same time see each other's.
 */

/** A record with the labels that all stored calls of the trace have. */
export interface StoredRecord extends ObservationRecord {
  /** A traceMark; null: of a generation, or no call has labels yet. */
  passedOn: string | null;
}

export type RecordPlace = Pick<ObservationRecord, 'kind' | 'id'>;

/** Days after its last part for which an observation waits for further ones. */
const RECORD_DAYS = 7;
/** Records that one transaction deletes. */
const DROPPED_MAX = 50_000;

interface RecordRow {
  kind: RecordKind;
  record_id: string;
  trace_id: string | null;
  fields: RecordFields;
  passed_on: string | null;
}

const RECORD_COLUMNS = 'r.kind, r.record_id, r.trace_id, r.fields, r.passed_on';

function recordOf(row: RecordRow): StoredRecord {
  const { kind, record_id: id, trace_id: traceId, fields, passed_on: passedOn } = row;
  return { kind, id, traceId, fields, passedOn };
}

/** The records of a key's reports, locked; unknown ones are created empty. In one order, so that no two transactions deadlock. */
export async function lockRecords(
  orgDb: OrgDb,
  keyId: string,
  places: readonly RecordPlace[],
): Promise<StoredRecord[]> {
  if (places.length === 0) return [];
  const values = [
    orgDb.orgId,
    keyId,
    textArray(places.map(({ kind }) => kind)),
    textArray(places.map(({ id }) => id)),
  ];
  await orgDb.run(
    `insert into observation_records (org_id, api_key_id, kind, record_id)
     select $1::uuid, $2, p.kind, p.id from unnest($3::text[], $4::text[]) as p (kind, id) order by p.kind, p.id
     on conflict do nothing`,
    values,
  );
  const rows = await orgDb.rows<RecordRow>(
    `select ${RECORD_COLUMNS} from unnest($3::text[], $4::text[]) as p (kind, id)
     join observation_records r on r.org_id = $1 and r.api_key_id = $2 and r.kind = p.kind and r.record_id = p.id
     order by r.kind, r.record_id for update of r`,
    values,
  );
  return rows.map(recordOf);
}

/** Stores the fields of locked records. */
export async function putRecords(
  orgDb: OrgDb,
  keyId: string,
  records: readonly ObservationRecord[],
): Promise<void> {
  if (records.length === 0) return;
  await orgDb.run(
    `update observation_records r set trace_id = p.trace_id, fields = p.fields, updated_at = now()
     from unnest($3::text[], $4::text[], $5::text[], ${jsonLinesSql('$6')}) as p (kind, id, trace_id, fields)
     where r.org_id = $1 and r.api_key_id = $2 and r.kind = p.kind and r.record_id = p.id`,
    [
      orgDb.orgId,
      keyId,
      textArray(records.map(({ kind }) => kind)),
      textArray(records.map(({ id }) => id)),
      textArray(records.map(({ traceId }) => traceId)),
      jsonLines(records.map(({ fields }) => fields)),
    ],
  );
}

/** The generations of traces, at most `limit` in all, those with the latest parts first. */
export async function listGenerationsOf(
  orgDb: OrgDb,
  keyId: string,
  traceIds: readonly string[],
  limit: number,
): Promise<StoredRecord[]> {
  if (traceIds.length === 0) return [];
  const rows = await orgDb.rows<RecordRow>(
    `select ${RECORD_COLUMNS} from observation_records r
     where r.org_id = $1 and r.api_key_id = $2 and r.trace_id = any($3::text[]) and r.kind = 'generation'
     order by r.updated_at desc, r.record_id limit $4`,
    [orgDb.orgId, keyId, textArray(traceIds), limit],
  );
  return rows.map(recordOf);
}

/** Records that all stored calls of traces have these labels. */
export async function notePassedOn(
  orgDb: OrgDb,
  keyId: string,
  traces: readonly { id: string; mark: string }[],
): Promise<void> {
  if (traces.length === 0) return;
  await orgDb.run(
    `update observation_records r set passed_on = p.mark from unnest($3::text[], $4::text[]) as p (id, mark)
     where r.org_id = $1 and r.api_key_id = $2 and r.kind = 'trace' and r.record_id = p.id`,
    [orgDb.orgId, keyId, textArray(traces.map(({ id }) => id)), textArray(traces.map(({ mark }) => mark))],
  );
}

/** Deletes old records of all organizations, a bounded number at a time; returns the number. */
export async function deleteOldRecords(database: Database): Promise<number> {
  return unscoped(database, 'prune observations of all organizations', (system) =>
    system.run(
      `delete from observation_records where ctid = any(array(
         select ctid from observation_records where updated_at < now() - make_interval(days => ${RECORD_DAYS}) limit ${DROPPED_MAX}))`,
    ),
  );
}
