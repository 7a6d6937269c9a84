import { idFrom, type OperationExample, ValueFrom } from './example.js';

const attribute = (key: string, value: string | number) => ({
  key,
  value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
});

/** An OTLP trace with one call. */
const TRACE = {
  resourceSpans: [
    {
      resource: { attributes: [attribute('service.name', 'answer-bot')] },
      scopeSpans: [
        {
          scope: { name: 'opentelemetry.instrumentation.openai', version: '0.40.0' },
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
              name: 'chat gpt-4o',
              startTimeUnixNano: '1769860800000000000',
              endTimeUnixNano: '1769860801250000000',
              attributes: [
                attribute('gen_ai.operation.name', 'chat'),
                attribute('gen_ai.system', 'openai'),
                attribute('gen_ai.request.model', 'gpt-4o'),
                attribute('gen_ai.response.id', 'chatcmpl-example-1'),
                attribute('gen_ai.usage.input_tokens', 1_200),
                attribute('gen_ai.usage.output_tokens', 350),
              ],
            },
          ],
        },
      ],
    },
  ],
};

const EVENT_ID = idFrom('evt', 'listEvents', '/events/0/id');
const SINCE_THE_EVENT = {
  start: new ValueFrom('2026-01-31T12:00:00Z', {
    operationId: 'listEvents',
    pointer: '/events/0/timestamp',
  }),
  end: new ValueFrom('2026-02-01T12:00:00Z', {
    operationId: 'listEvents',
    pointer: '/events/0/ingested_at',
  }),
};

/** Ingest, events, usage and policies. */
export const CALL_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  ingestTrace: { body: TRACE },
  ingestTraceStandardPath: { body: TRACE },
  ingestTraceLangfusePath: { body: TRACE },
  ingestObservability: {
    body: {
      type: 'observation-create',
      body: {
        id: 'obs-example-1',
        type: 'GENERATION',
        model: 'gpt-4o',
        startTime: '2026-01-31T12:00:00Z',
        usage: { input: 1_200, output: 350 },
        metadata: { provider: 'openai' },
      },
    },
  },
  ingestEvents: {
    body: {
      events: [
        {
          provider: 'openai',
          model: 'gpt-4o',
          timestamp: '2026-01-31T12:00:00Z',
          request_id: 'req-example-1',
          team_id: 'support',
          feature: 'answer-bot',
          input_tokens: 1_200,
          output_tokens: 350,
        },
      ],
    },
  },
  getIngestHealth: {},
  listEvents: { query: { team_id: 'support', feature: 'answer-bot', limit: '1' } },
  exportEvents: { query: { ...SINCE_THE_EVENT, format: 'json' } },
  getEvent: { params: { id: EVENT_ID } },
  getEventCost: { params: { id: EVENT_ID } },
  getUsageSummary: { query: { group_by: 'team' } },
  listUsageRecords: { query: { provider: 'openai', limit: '1' } },
  getDashboardBreakdown: { params: { dimension: 'team' }, query: { provider: 'openai' } },
  listPolicies: {},
  putPolicy: {
    params: { policy_type: 'approval_required_threshold_cents' },
    body: { config: { threshold_cents: 220 }, enabled: true },
  },
  previewPolicy: {
    params: { policy_type: 'approval_required_threshold_cents' },
    body: { config: { threshold_cents: 500 } },
  },
  listAlerts: { query: { kind: 'policy', status: 'open', limit: '1' } },
  getAlert: { params: { id: idFrom('alr', 'listAlerts', '/alerts/0/id') } },
  acknowledgeAlert: { params: { id: idFrom('alr', 'listAlerts', '/alerts/0/id') } },
};
