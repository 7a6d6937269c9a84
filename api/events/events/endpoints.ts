import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { type EventFilter, getEvent, listEvents } from '../../../db/events/events.js';
import { listFormerPrices } from '../../../db/pricing/repriceRuns.js';
import type { AuditDetails } from '../../../domain/access/auditLog.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid } from '../../../domain/ids.js';
import { exclusiveEnd, isoFromMicros, MICROS_PER_DAY, spanMicros } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { openEventExport } from '../../../usecases/events/eventExport.js';
import { CopiedJsonWriter } from '../../copiedJson.js';
import { readAhead } from '../../csv.js';
import { type EndpointResponse, endpointGroup } from '../../endpoint.js';
import { decodeEventCursor } from '../../paging.js';
import { assertPayloads } from '../../pipeline/auth.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  EXPORTED_COLUMNS,
  eventParams,
  eventSchema,
  exportEventsQuery,
  getEventQuery,
  listEventsQuery,
  listEventsResponse,
  oneEventSchema,
  presentEventPage,
  presentOneEvent,
} from './wire.js';

/** The newest events are searched first in the last 35 days, which touch two or three monthly partitions. */
const RECENT_DAYS = 35n;
/** Longest window of one export: a leap year. */
export const EXPORT_DAYS_MAX = 366n;

/** The audit log's details of a payload read: the filters, without the values of the labels. */
function readDetails(query: z.output<typeof listEventsQuery>, count: number): AuditDetails {
  const { since, until, limit: _limit, offset: _offset, include_payload: _asked, ...rest } = query;
  const filters = Object.entries(rest).filter(
    ([name, value]) => name !== 'format' && value !== undefined && value !== false,
  );
  return {
    count,
    filters: filters.map(([name]) => name),
    since: since && isoFromMicros(since.micros),
    until: until && isoFromMicros(exclusiveEnd(until)),
  };
}

function filterOf(query: z.output<typeof listEventsQuery>): EventFilter {
  return {
    sessionId: query.session_id,
    provider: providerFilter(query.provider),
    model: query.model,
    teamId: query.team_id,
    feature: query.feature,
    projectId: query.project_id,
    kind: query.kind,
    ...windowOf(query.since, query.until, ['since', 'until']),
    includeSuperseded: query.include_superseded,
  };
}

type ExportQuery = z.output<typeof exportEventsQuery>;

/** The half-open export window. Errors: invalid_range, export_window_too_large. */
function exportWindowOf({ start, end }: ExportQuery): { fromMicros: bigint; toMicros: bigint } {
  // A date as the end means the end of that day, so an export of one day has equal dates.
  if (exclusiveEnd(end) - 1n <= start.micros)
    throw new DomainError('invalid_range', 'end must lie after start', {
      issues: [{ in: 'query', field: 'end', message: 'must lie after start' }],
    });
  if (spanMicros(start, end) > EXPORT_DAYS_MAX * MICROS_PER_DAY) {
    const message = `must lie at most ${EXPORT_DAYS_MAX} days after start; a date counts as its whole day`;
    throw new DomainError(
      'export_window_too_large',
      `a window spans at most ${EXPORT_DAYS_MAX} days; export in several calls`,
      { issues: [{ in: 'query', field: 'end', message }] },
    );
  }
  return { fromMicros: start.micros, toMicros: exclusiveEnd(end) };
}

function exportDetails({ start, end, format, include_payload }: ExportQuery): AuditDetails {
  return {
    start: isoFromMicros(start.micros),
    end: isoFromMicros(exclusiveEnd(end)),
    format,
    include_payload,
  };
}

function uuidOfEvent(id: string): string {
  const uuid = findUuid('evt', id);
  if (uuid === undefined) throw new DomainError('not_found', 'there is no event with this id');
  return uuid;
}

const routes = endpointGroup({ tag: 'Events', access: { scope: 'events:read', workspace: 'own' } });

const listEventsEndpoint = routes.get('/api/v1/events', {
  operationId: 'listEvents',
  csv: 'calls',
  summary: 'Calls, newest first',
  query: listEventsQuery,
  responses: {
    200: { description: 'A page of events; count is the number in this page', schema: listEventsResponse },
  },
  problems: ['invalid_range', 'forbidden'],
  async handle({ query, caller, requestId, orgDb }, deps) {
    assertPayloads(caller, query.include_payload);
    const after = decodeEventCursor(query.cursor);
    const page = { limit: query.limit, offset: after ? 0 : query.offset, after };
    const recent = deps.nowMicros() - RECENT_DAYS * MICROS_PER_DAY;
    const found = await listEvents(orgDb, filterOf(query), page, query.include_payload, recent);
    const read = readDetails(query, found.events.length);
    if (query.include_payload) await recordAction(orgDb, { caller, requestId }, 'payload.read', null, read);
    return { status: 200, body: presentEventPage(found, query.offset) };
  },
});

const exportEventsEndpoint = routes.get('/api/v1/events/export', {
  operationId: 'exportEvents',
  summary: 'Every call of a window, oldest first',
  description:
    'Streamed in partitions of 500 rows. A transfer that ends without its last chunk is broken: fetch it again. X-Export-Snapshot is the time up to which ingested events are in it.',
  limit: 'export',
  query: exportEventsQuery,
  responses: {
    200: {
      description: 'One event a line, or one array with format=json',
      contentType: 'application/x-ndjson',
      otherTypes: { 'application/json': z.array(eventSchema) },
      headers: { 'X-Export-Snapshot': 'Events ingested up to this time are in the export' },
    },
  },
  problems: ['missing_parameter', 'invalid_range', 'export_window_too_large', 'forbidden'],
  async handle({ query, caller, requestId, orgDb, signal }) {
    assertPayloads(caller, query.include_payload);
    const window = exportWindowOf(query);
    const { snapshotMicros, blocks } = await openEventExport(orgDb, window, query.include_payload);
    const ahead = await readAhead(blocks);
    await recordAction(orgDb, { caller, requestId }, 'export.started', null, exportDetails(query));
    return exportAnswer(query, snapshotMicros, ahead, signal);
  },
});

function exportAnswer(
  { format }: ExportQuery,
  snapshotMicros: bigint,
  blocks: AsyncGenerator<Buffer>,
  signal: AbortSignal,
): EndpointResponse {
  const isArray = format === 'json';
  const writer = new CopiedJsonWriter(EXPORTED_COLUMNS, isArray);
  return {
    status: 200,
    headers: { 'X-Export-Snapshot': isoFromMicros(snapshotMicros) },
    content: {
      type: isArray ? 'application/json' : 'application/x-ndjson',
      data: Readable.from(writeBlocks(blocks, writer, isArray, signal), {
        objectMode: true,
        highWaterMark: 2,
      }),
    },
  };
}

async function* writeBlocks(
  blocks: AsyncGenerator<Buffer>,
  writer: CopiedJsonWriter,
  isArray: boolean,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  if (isArray) yield Buffer.from('[');
  for await (const block of blocks)
    for (const chunk of writer.chunks(block)) {
      if (signal.aborted) return;
      yield chunk;
      // Meanwhile the next block arrives, and other requests are served.
      await nextTurn();
    }
  if (isArray) yield Buffer.from(']');
}

const getEventEndpoint = routes.get('/api/v1/events/{id}', {
  operationId: 'getEvent',
  summary: 'One call',
  params: eventParams,
  query: getEventQuery,
  responses: { 200: { description: 'The event', schema: oneEventSchema } },
  problems: ['not_found', 'forbidden'],
  async handle({ params, query, caller, requestId, orgDb }) {
    assertPayloads(caller, query.include_payload);
    const event = await getEvent(orgDb, uuidOfEvent(params.id), query.include_payload);
    const former = await listFormerPrices(orgDb, event.id);
    if (query.include_payload)
      await recordAction(orgDb, { caller, requestId }, 'payload.read', { type: 'event', id: params.id });
    return { status: 200, body: presentOneEvent(event, former) };
  },
});

export const eventEndpoints = [listEventsEndpoint, exportEventsEndpoint, getEventEndpoint];
