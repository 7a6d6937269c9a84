import { aLiteLlmPayload, aLog, aMetric, anEvent, aSpan, aTime, aTrace } from '../requests.js';
import { makeEvent, markerOf, type Operation, randomName, unknownId } from './operation.js';

const INGEST = { scope: 'ingest', workspace: 'own' } as const;
const EVENTS = { scope: 'events:read', workspace: 'own' } as const;
const REPORTS = { scope: 'reports:read', workspace: 'own' } as const;
const USAGE = { scope: 'usage:read', workspace: 'own' } as const;

const trace = (path: string, access: Operation['access'] = INGEST): Operation => ({
  method: 'POST',
  path,
  access,
  status: 202,
  request: async (_place, owner) => ({
    json: aTrace(aSpan({ 'gen_ai.conversation.id': markerOf(owner) })),
  }),
});

const payloadsAskedBy = (query: Record<string, string>) =>
  query.include_payload === 'true' ? { alsoNeeds: 'payloads:read' } : {};

/** A read that any call of the owner answers. */
const readOfCalls = (
  path: string,
  access: Operation['access'],
  query: Record<string, string> = {},
  params: Record<string, string> = {},
): Operation => ({
  method: 'GET',
  path,
  access,
  status: 200,
  ...payloadsAskedBy(query),
  request: async (place, owner, projectId) => {
    await makeEvent(place, owner, projectId);
    return { query, params };
  },
});

const readOfEvent = (path: string, query: Record<string, string> = {}): Operation => ({
  method: 'GET',
  path,
  access: EVENTS,
  status: 200,
  ids: { id: unknownId('evt') },
  ...payloadsAskedBy(query),
  request: async (place, owner, projectId) => ({
    params: { id: await makeEvent(place, owner, projectId) },
    query,
  }),
});

/** Operations that ingest calls and read them. */
export const CALL_OPERATIONS: Record<string, Operation> = {
  ingestTrace: trace('/api/v1/ingest/trace'),
  ingestTraceStandardPath: trace('/v1/traces'),
  ingestTraceLangfusePath: trace('/api/public/otel/v1/traces', { ...INGEST, alsoBasic: true }),
  ingestLangfuse: {
    method: 'POST',
    path: '/api/public/ingestion',
    access: { ...INGEST, alsoBasic: true },
    status: 207,
    request: async (_place, owner) => ({
      json: {
        batch: [
          {
            id: randomName(),
            type: 'generation-create',
            timestamp: aTime(),
            body: {
              id: `${markerOf(owner)}-${randomName()}`,
              traceId: randomName(),
              model: 'gpt-4o',
              startTime: aTime(),
              usage: { input: 10, output: 5 },
            },
          },
        ],
      },
    }),
  },
  ingestLogs: {
    method: 'POST',
    path: '/v1/logs',
    access: INGEST,
    status: 200,
    request: async (_place, owner) => ({ json: aLog({ 'session.id': markerOf(owner) }) }),
  },
  ingestMetrics: {
    method: 'POST',
    path: '/v1/metrics',
    access: INGEST,
    status: 200,
    request: async (_place, owner) => ({
      json: aMetric({
        name: 'claude_code.token.usage',
        service: markerOf(owner),
        points: [{ attributes: { type: 'input', 'session.id': randomName() }, value: 5 }],
      }),
    }),
  },
  ingestObservability: {
    method: 'POST',
    path: '/api/v1/ingest/observability',
    access: INGEST,
    status: 202,
    request: async (_place, owner) => ({
      json: {
        type: 'observation-create',
        body: {
          id: `${markerOf(owner)}-${randomName()}`,
          type: 'GENERATION',
          model: 'gpt-4o',
          startTime: aTime(),
          usage: { input: 10, output: 5 },
          metadata: { provider: 'openai' },
        },
      },
    }),
  },
  ingestLitellm: {
    method: 'POST',
    path: '/api/v1/ingest/litellm',
    access: INGEST,
    status: 202,
    request: async (_place, owner) => ({
      json: [aLiteLlmPayload({ end_user: markerOf(owner), id: `${markerOf(owner)}-${randomName()}` })],
    }),
  },
  ingestEvents: {
    method: 'POST',
    path: '/api/v1/ingest/events',
    access: INGEST,
    status: 202,
    request: async (_place, owner) => ({ json: { events: [anEvent({ team_id: markerOf(owner) })] } }),
  },
  getIngestHealth: readOfCalls('/api/v1/ingest/health', EVENTS),
  listEvents: readOfCalls('/api/v1/events', EVENTS, { include_payload: 'true' }),
  exportEvents: readOfCalls('/api/v1/events/export', EVENTS, {
    start: aTime(86_400),
    end: aTime(-86_400),
    include_payload: 'true',
  }),
  getEvent: readOfEvent('/api/v1/events/{id}', { include_payload: 'true' }),
  getEventCost: readOfEvent('/api/v1/events/{id}/cost'),
  getUsageSummary: readOfCalls('/api/v1/usage/summary', USAGE, { group_by: 'team' }),
  listUsageRecords: readOfCalls('/api/v1/usage/records', USAGE),
  getChargeback: readOfCalls('/api/v1/reports/chargeback', REPORTS, { dimension: 'team_id' }),
  getDashboardBreakdown: readOfCalls(
    '/api/v1/dashboard/breakdown/{dimension}',
    USAGE,
    {},
    { dimension: 'team' },
  ),
};
