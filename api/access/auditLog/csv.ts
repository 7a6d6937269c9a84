import type { ListedAuditRecord } from '../../../db/access/auditLog.js';
import { isoFromMicros } from '../../../domain/period.js';
import { csvInteger, writeCsv } from '../../csv.js';

const CSV_HEADER = [
  'seq',
  'at',
  'action',
  'actor_kind',
  'actor_id',
  'actor_name',
  'subject_type',
  'subject_id',
  'details',
  'request_id',
  'prev_hash',
  'hash',
];

/** Writes one row for each record; the details are the JSON text that the record's hash covers. */
export function writeAuditLogCsv(records: readonly ListedAuditRecord[]): string {
  return writeCsv(
    CSV_HEADER,
    records.map((record) => [
      csvInteger(record.seq),
      isoFromMicros(record.atMicros),
      record.action,
      record.actor.kind,
      record.actor.id,
      record.actorName,
      record.subject?.type ?? null,
      record.subject?.id ?? null,
      record.details,
      record.requestId,
      record.prevHash,
      record.hash,
    ]),
  );
}
