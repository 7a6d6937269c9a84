import type { z } from 'zod';
import { type AuditFilter, findAuditHead, listAuditRecords } from '../../../db/access/auditLog.js';
import { csvAnswer } from '../../csv.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeSeqCursor } from '../../paging.js';
import { windowOf } from '../../query.js';
import { writeAuditLogCsv } from './csv.js';
import { AUDIT_LOG_PATH, auditLogQuery, auditLogResponse, presentAuditRecord, presentHead } from './wire.js';

function filterOf(query: z.output<typeof auditLogQuery>): AuditFilter {
  return {
    action: query.action,
    actorId: query.actor,
    subjectType: query.subject_type,
    subjectId: query.subject_id,
    ...windowOf(query.since, query.until, ['since', 'until']),
  };
}

const routes = endpointGroup({ tag: 'Organization', access: { scope: 'audit:read', workspace: 'refused' } });

routes.get(AUDIT_LOG_PATH, {
  operationId: 'listAuditLog',
  summary: 'Actions with their actor and time, newest first',
  description:
    'Records are never changed. Each carries the hash of the one before it, so that an edit is found out by ./trueup audit-log verify. format=csv has the same page as one row a record.',
  query: auditLogQuery,
  responses: {
    200: { description: 'A page of records', schema: auditLogResponse, otherTypes: { 'text/csv': 'text' } },
  },
  problems: ['invalid_range'],
  async handle({ query, orgDb }) {
    const beforeSeq = decodeSeqCursor(query.cursor);
    const asked = { limit: query.limit + 1, offset: beforeSeq === undefined ? query.offset : 0, beforeSeq };
    const found = await listAuditRecords(orgDb, filterOf(query), asked);
    const { shown, page } = cursoredPage(found, query, (record) => [record.seq]);
    if (query.format === 'csv') return csvAnswer('audit-log.csv', writeAuditLogCsv(shown));
    const head = presentHead(await findAuditHead(orgDb));
    return { status: 200, body: { records: shown.map(presentAuditRecord), head, ...page } };
  },
});

export const auditLogEndpoints = routes.endpoints;
