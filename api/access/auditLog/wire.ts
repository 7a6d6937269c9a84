import { z } from 'zod';
import type { ListedAuditRecord } from '../../../db/access/auditLog.js';
import { ACTOR_KINDS, type ChainPoint } from '../../../domain/access/auditLog.js';
import { isoFromMicros } from '../../../domain/period.js';
import { formatParameter } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, instantParameter } from '../../query.js';

export const AUDIT_LOG_PATH = '/api/v1/audit-log';

export const auditLogQuery = z.object({
  action: filterParameter.optional().meta({ description: 'One action, for example key.created' }),
  actor: filterParameter
    .optional()
    .meta({ description: 'The id of who did it: a key’s id, a command’s name' }),
  subject_type: filterParameter.optional().meta({ description: 'What it was done to, for example key' }),
  subject_id: filterParameter.optional().meta({ description: 'Its id' }),
  since: instantParameter.optional(),
  until: instantParameter.optional(),
  ...pageParameters,
  format: formatParameter.meta({ description: 'csv: the page as an attachment, a row for each record' }),
});

const hashSchema = z.string().meta({ description: 'sha256, hex' });

export const auditRecordSchema = z
  .strictObject({
    seq: z.int().meta({ description: '1, 2, 3 … without a gap' }),
    at: z.string(),
    action: z.string().meta({ example: 'key.created' }),
    actor: z.strictObject({
      kind: z.enum(ACTOR_KINDS),
      id: z.string(),
      name: z.string().nullable().meta({ description: 'The name of the key, as it is now' }),
    }),
    subject: z.strictObject({ type: z.string(), id: z.string() }).nullable(),
    details: z.record(z.string(), z.unknown()),
    request_id: z.string().nullable(),
    prev_hash: hashSchema,
    hash: hashSchema,
  })
  .meta({ id: 'AuditRecord' });

export const auditLogResponse = z.strictObject({
  records: z.array(auditRecordSchema),
  head: z
    .strictObject({ seq: z.int(), at: z.string(), hash: hashSchema })
    .nullable()
    .meta({ description: 'The newest record: its hash covers the whole log. Null while there is none' }),
  ...cursoredPageFields,
});

export function presentAuditRecord(record: ListedAuditRecord): z.output<typeof auditRecordSchema> {
  return {
    seq: record.seq,
    at: isoFromMicros(record.atMicros),
    action: record.action,
    actor: { kind: record.actor.kind, id: record.actor.id, name: record.actorName },
    subject: record.subject && { type: record.subject.type, id: record.subject.id },
    details: JSON.parse(record.details) as Record<string, unknown>,
    request_id: record.requestId,
    prev_hash: record.prevHash,
    hash: record.hash,
  };
}

export function presentHead(
  head: (ChainPoint & { atMicros: bigint }) | undefined,
): z.output<typeof auditLogResponse>['head'] {
  return head ? { seq: head.seq, at: isoFromMicros(head.atMicros), hash: head.hash } : null;
}
