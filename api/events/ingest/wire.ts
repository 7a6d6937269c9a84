import { z } from 'zod';
import type { DoubleReport, SourceHealth } from '../../../db/events/ingestHealth.js';
import type { MeteredSource } from '../../../db/events/meteredUsage.js';
import type { PairedScopes } from '../../../db/events/pairedReports.js';
import type { Rejection } from '../../../domain/events/event.js';
import { publicId } from '../../../domain/ids.js';
import type { OrganizationSettings } from '../../../domain/installation/settings.js';
import { decimalFromPico, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';

/** Most reasons that a partial success lists. */
const REASONS_MAX = 5;
/** Most rejected items that the events endpoint lists. */
export const REJECTED_ITEMS_MAX = 20;

const keyValue = z.looseObject({
  key: z.string(),
  value: z.looseObject({
    stringValue: z.string().optional(),
    intValue: z.union([z.string(), z.number()]).optional(),
    doubleValue: z.number().optional(),
    boolValue: z.boolean().optional(),
  }),
});

/** OTLP/JSON as documented. Ingest accepts more: it ignores unknown fields and rejects malformed spans one by one. */
export const traceRequestDoc = z
  .looseObject({
    resourceSpans: z.array(
      z.looseObject({
        resource: z.looseObject({ attributes: z.array(keyValue).optional() }).optional(),
        scopeSpans: z.array(
          z.looseObject({
            scope: z.looseObject({ name: z.string().optional(), version: z.string().optional() }).optional(),
            spans: z.array(
              z.looseObject({
                traceId: z.string().optional(),
                spanId: z.string().optional(),
                parentSpanId: z.string().optional(),
                name: z.string(),
                startTimeUnixNano: z.string(),
                endTimeUnixNano: z.string(),
                attributes: z.array(keyValue).optional(),
              }),
            ),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'ExportTraceServiceRequest' });

/** OTLP/JSON as documented. */
export const logsRequestDoc = z
  .looseObject({
    resourceLogs: z.array(
      z.looseObject({
        resource: z.looseObject({ attributes: z.array(keyValue).optional() }).optional(),
        scopeLogs: z.array(
          z.looseObject({
            scope: z.looseObject({ name: z.string().optional(), version: z.string().optional() }).optional(),
            logRecords: z.array(
              z.looseObject({
                timeUnixNano: z.string().optional(),
                observedTimeUnixNano: z.string().optional(),
                eventName: z.string().optional(),
                body: z.looseObject({ stringValue: z.string().optional() }).optional(),
                attributes: z.array(keyValue).optional(),
              }),
            ),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'ExportLogsServiceRequest' });

/** OTLP/JSON as documented. */
export const metricsRequestDoc = z
  .looseObject({
    resourceMetrics: z.array(
      z.looseObject({
        resource: z.looseObject({ attributes: z.array(keyValue).optional() }).optional(),
        scopeMetrics: z.array(
          z.looseObject({
            scope: z.looseObject({ name: z.string().optional(), version: z.string().optional() }).optional(),
            metrics: z.array(
              z.looseObject({
                name: z.string(),
                sum: z.looseObject({}).optional(),
                histogram: z.looseObject({}).optional(),
              }),
            ),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'ExportMetricsServiceRequest' });

export const observationRequestDoc = z
  .looseObject({
    type: z.literal('observation-create'),
    body: z.looseObject({
      id: z.string().optional(),
      type: z.string(),
      model: z.string().optional(),
      startTime: z.string().optional(),
      latency: z.number().optional(),
      usage: z.looseObject({ input: z.int().optional(), output: z.int().optional() }).optional(),
      metadata: z.looseObject({}).optional(),
    }),
  })
  .meta({ id: 'ObservationCreate' });

/** Batches as documented. Ingest accepts more: it ignores unknown fields and rejects malformed items one by one. */
export const langfuseRequestDoc = z
  .looseObject({
    batch: z.array(
      z.looseObject({
        id: z.string(),
        type: z.string(),
        timestamp: z.string(),
        body: z.looseObject({
          id: z.string().optional(),
          traceId: z.string().optional(),
          model: z.string().optional(),
          startTime: z.string().optional(),
          endTime: z.string().optional(),
          usage: z.looseObject({}).optional(),
          usageDetails: z.looseObject({}).optional(),
          costDetails: z.looseObject({}).optional(),
          metadata: z.looseObject({}).optional(),
        }),
      }),
    ),
    metadata: z.looseObject({}).optional(),
  })
  .meta({ id: 'LangfuseBatch' });

/** Each item is in exactly one of the two lists. */
export const langfuseResponse = z
  .strictObject({
    successes: z.array(z.strictObject({ id: z.string(), status: z.int() })),
    errors: z.array(
      z.strictObject({ id: z.string(), status: z.int(), message: z.string(), error: z.string() }),
    ),
  })
  .meta({ id: 'LangfuseBatchResult' });

/**
 * Results by item, in the words of Langfuse: 201 for taken and ignored items, 400 for rejected ones. A call of a
 * provider that is not covered is no fault of its item: the clients would log an error and send it again.
 */
export function presentLangfuse(
  itemIds: readonly string[],
  rejections: readonly Rejection[],
): z.output<typeof langfuseResponse> {
  const faults = rejections.filter(({ reason }) => reason !== 'unknown_provider');
  const rejected = new Map(faults.map((rejection) => [rejection.index, rejection]));
  const taken = itemIds.filter((_, index) => !rejected.has(index));
  return {
    successes: taken.map((id) => ({ id, status: 201 })),
    errors: [...rejected].map(([index, { reason, message }]) => ({
      id: itemIds[index] ?? String(index),
      status: 400,
      message,
      error: reason,
    })),
  };
}

export const eventsRequestDoc = z
  .looseObject({
    events: z.array(z.looseObject({ provider: z.string(), model: z.string(), timestamp: z.string() })),
  })
  .meta({ id: 'IngestEvents' });

/** Payloads as LiteLLM sends them; fields that are not listed are ignored. */
export const litellmRequestDoc = z
  .array(
    z.looseObject({
      id: z.string(),
      model: z.string(),
      custom_llm_provider: z.string().optional(),
      status: z.enum(['success', 'failure']).optional(),
      startTime: z.number(),
      endTime: z.number().optional(),
      response_cost: z.number().optional(),
      api_base: z.string().nullable().optional(),
      metadata: z.looseObject({}).optional(),
    }),
  )
  .meta({ id: 'LiteLlmPayloads' });

const partialSuccess = z.strictObject({ rejectedSpans: z.string(), errorMessage: z.string() });

export const ingestResponse = z
  .strictObject({
    accepted: z.int(),
    organization_id: z.string(),
    duplicates: z.int(),
    ignored: z.int(),
    partialSuccess: partialSuccess.optional(),
  })
  .meta({ id: 'IngestAccepted' });

export const ingestEventsResponse = z
  .strictObject({
    accepted: z.int(),
    duplicates: z.int(),
    organization_id: z.string(),
    rejected: z.array(z.strictObject({ index: z.int(), code: z.string(), message: z.string() })),
  })
  .meta({ id: 'IngestEventsAccepted' });

export const ingestLitellmResponse = z
  .strictObject({ ...ingestEventsResponse.shape, ignored: z.int() })
  .meta({ id: 'IngestLiteLlmAccepted' });

/** ExportLogsServiceResponse. */
export const logsResponse = z
  .strictObject({
    partialSuccess: z.strictObject({ rejectedLogRecords: z.string(), errorMessage: z.string() }).optional(),
  })
  .meta({ id: 'ExportLogsServiceResponse' });

/** OTLP's `partialSuccess` of a request with refused items. */
export interface PartialSuccess {
  /** An int64 as JSON writes it. */
  rejectedSpans: string;
  errorMessage: string;
}

export function presentLogs(partial: PartialSuccess | undefined): z.output<typeof logsResponse> {
  if (partial === undefined) return {};
  const { rejectedSpans: rejectedLogRecords, errorMessage } = partial;
  return { partialSuccess: { rejectedLogRecords, errorMessage } };
}

/** ExportMetricsServiceResponse. */
export const metricsResponse = z
  .strictObject({
    partialSuccess: z.strictObject({ rejectedDataPoints: z.string(), errorMessage: z.string() }).optional(),
  })
  .meta({ id: 'ExportMetricsServiceResponse' });

export function presentMetrics(partial: PartialSuccess | undefined): z.output<typeof metricsResponse> {
  if (partial === undefined) return {};
  const { rejectedSpans: rejectedDataPoints, errorMessage } = partial;
  return { partialSuccess: { rejectedDataPoints, errorMessage } };
}

interface Outcome {
  accepted: number;
  duplicates: number;
}

/** The OTLP partial success: the number of rejected spans and the first reasons; undefined when none was rejected. */
export function partialSuccessOf(rejections: readonly Rejection[]): PartialSuccess | undefined {
  if (rejections.length === 0) return undefined;
  const reasons = rejections.slice(0, REASONS_MAX).map(({ index, label, reason, message }) => {
    const item = label === '' ? `item ${index}` : `item ${index} (${label})`;
    return `${item}: ${reason}: ${message}`;
  });
  const more = rejections.length > REASONS_MAX ? `; and ${rejections.length - REASONS_MAX} more` : '';
  return { rejectedSpans: String(rejections.length), errorMessage: reasons.join('; ') + more };
}

export function presentIngest(
  orgId: string,
  outcome: Outcome,
  ignored: number,
  rejections: readonly Rejection[],
): z.output<typeof ingestResponse> {
  const partial = partialSuccessOf(rejections);
  return {
    accepted: outcome.accepted,
    organization_id: publicId('org', orgId),
    duplicates: outcome.duplicates,
    ignored,
    ...(partial ? { partialSuccess: partial } : {}),
  };
}

export function presentIngestEvents(
  orgId: string,
  outcome: Outcome,
  rejections: readonly Rejection[],
): z.output<typeof ingestEventsResponse> {
  return {
    accepted: outcome.accepted,
    duplicates: outcome.duplicates,
    organization_id: publicId('org', orgId),
    rejected: rejections
      .slice(0, REJECTED_ITEMS_MAX)
      .map((rejection) => ({ index: rejection.index, code: rejection.reason, message: rejection.message })),
  };
}

export function presentIngestLitellm(
  orgId: string,
  outcome: Outcome,
  ignored: number,
  rejections: readonly Rejection[],
): z.output<typeof ingestLitellmResponse> {
  return { ...presentIngestEvents(orgId, outcome, rejections), ignored };
}

const sourceSchema = z.strictObject({
  service: z.string(),
  scope: z.string(),
  last_seen: z.string().nullable(),
  calls: z.int(),
  unmetered: z.int().meta({ description: 'Calls that sent no usage' }),
  unpriced: z.int().meta({
    description:
      'Calls whose cost is not known (cost_source unpriced): no price, or no usage and no cost of their own',
  }),
  price_gaps: z.int(),
  unknown_biller: z.int(),
  not_counted: z
    .int()
    .meta({ description: 'Calls left out since then: another scope of the service counts (counted_scopes)' }),
  rejected: z.record(z.string(), z.int()),
});

const meteredSchema = z.strictObject({
  service: z.string(),
  metric: z.string(),
  since: z.string().meta({ description: 'The first hour of the metric; calls are summed from here on' }),
  last_seen: z.string(),
  input_tokens: z.int().meta({ description: 'All input, cached tokens included' }),
  output_tokens: z.int(),
  cost_usd: z.number().nullable().meta({ description: 'Null: the metric reports tokens' }),
  call_input_tokens: z.int().meta({ description: 'All input of the calls of the service' }),
  call_output_tokens: z.int(),
  uncovered_input_tokens: z.int().meta({ description: 'Reported by the metric and part of no call' }),
  uncovered_output_tokens: z.int(),
  message: z.string().nullable(),
});

export const ingestHealthResponse = z.strictObject({
  since: z.string(),
  sources: z.array(sourceSchema),
  metered: z.array(meteredSchema).meta({ description: 'Tokens that metrics report, beside those of calls' }),
  instrumented_twice: z.array(
    z.strictObject({
      service: z.string(),
      scopes: z.array(z.string()),
      calls: z.int(),
      cost_usd: z.number(),
      counted_scopes: z
        .array(z.string())
        .meta({ description: 'The scopes of the service that count, where a setting names them' }),
      message: z.string(),
    }),
  ),
  paired_reports: z.array(
    z.strictObject({
      service: z.string(),
      scopes: z.array(z.string()).meta({ description: 'The scope whose reports count, then the other one' }),
      pairs: z.int().meta({ description: 'Calls that both reported without a common id; each counts once' }),
      leftovers: z
        .int()
        .meta({ description: 'Reports of the two scopes without a partner in the other one; each counts' }),
      not_counted_usd: z.number().meta({ description: 'Cost of the reports that do not count' }),
      message: z.string(),
    }),
  ),
});

/** A service that seems to be instrumented twice, with the remedy or the action that was taken. */
function presentDouble(
  double: DoubleReport,
  settings: OrganizationSettings,
): z.output<typeof ingestHealthResponse>['instrumented_twice'][number] {
  const { serviceName, scopes, calls, costPico } = double;
  const counted = settings.countedScopes
    .filter(({ service }) => (service ?? '') === serviceName)
    .map(({ scope }) => scope);
  const found = `service ${serviceName} is instrumented twice: ${scopes.join(' and ')}; ${calls} calls, $${decimalFromPico(costPico)}`;
  return {
    service: serviceName,
    scopes,
    calls,
    cost_usd: usdNumberFromPico(costPico),
    counted_scopes: counted,
    message:
      counted.length === 0
        ? `${found} look counted twice: name the scope that counts in the setting counted_scopes`
        : `${found} look counted twice; of what came since the setting counted_scopes, only ${counted.join(' and ')} counts now`,
  };
}

function presentPaired(
  paired: PairedScopes,
): z.output<typeof ingestHealthResponse>['paired_reports'][number] {
  const { serviceName, scopes, pairs, leftovers, costPico } = paired;
  const [counted, other] = scopes;
  return {
    service: serviceName,
    scopes,
    pairs,
    leftovers,
    not_counted_usd: usdNumberFromPico(costPico),
    message: `service ${serviceName}: ${counted} and ${other} reported ${pairs} calls without a common id; each counts once, $${decimalFromPico(costPico)} of ${other} do not count`,
  };
}

function presentSource(source: SourceHealth): z.output<typeof sourceSchema> {
  return {
    service: source.serviceName,
    scope: source.scopeName,
    last_seen: source.lastSeenMicros === null ? null : isoFromMicros(source.lastSeenMicros),
    calls: source.calls,
    unmetered: source.unmetered,
    unpriced: source.unpriced,
    price_gaps: source.priceGaps,
    unknown_biller: source.unknownBiller,
    not_counted: source.notCounted,
    rejected: source.rejected,
  };
}

/** Smaller uncovered shares are the calls of the last minutes, which metrics may report first. */
const UNCOVERED_SHARE_MIN = 0.01;

function presentMetered(metered: MeteredSource): z.output<typeof meteredSchema> {
  const { serviceName, metric, inputTokens, outputTokens, costPico } = metered;
  const input = Math.max(0, inputTokens - metered.callInputTokens);
  const output = Math.max(0, outputTokens - metered.callOutputTokens);
  const uncovered = input + output;
  const isWorthMessage = uncovered > UNCOVERED_SHARE_MIN * (inputTokens + outputTokens);
  return {
    service: serviceName,
    metric,
    since: isoFromMicros(metered.firstHourMicros),
    last_seen: isoFromMicros(metered.lastAtMicros),
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost_usd: costPico === null ? null : usdNumberFromPico(costPico),
    call_input_tokens: metered.callInputTokens,
    call_output_tokens: metered.callOutputTokens,
    uncovered_input_tokens: input,
    uncovered_output_tokens: output,
    message: isWorthMessage
      ? `${metric} of service ${serviceName} reports ${uncovered} tokens that no call covers: send its calls too, as logs or traces`
      : null,
  };
}

export function presentIngestHealth(
  sinceMicros: bigint,
  sources: readonly SourceHealth[],
  metered: readonly MeteredSource[],
  doubles: readonly DoubleReport[],
  paired: readonly PairedScopes[],
  { settings }: { settings: OrganizationSettings },
): z.output<typeof ingestHealthResponse> {
  return {
    since: isoFromMicros(sinceMicros),
    sources: sources.map(presentSource),
    metered: metered.map(presentMetered),
    instrumented_twice: doubles.map((double) => presentDouble(double, settings)),
    paired_reports: paired.map(presentPaired),
  };
}
