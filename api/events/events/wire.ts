import { z } from 'zod';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import type { FormerPrice } from '../../../db/pricing/repriceRuns.js';
import { EVENT_COLUMNS, type Json } from '../../../domain/events/event.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { CopiedColumns, CopiedForm } from '../../copiedJson.js';
import { cursoredPageFields, eventPosition, nextCursor, pageParameters } from '../../paging.js';
import { booleanParameter, filterParameter, instantParameter } from '../../query.js';

const json = z.unknown();
const label = z.string().nullable();
const tokens = z.int().min(0);

/** An event in the API; docs/ingest.md explains its fields. */
export const eventSchema = z
  .strictObject({
    id: z.string().meta({ example: 'evt_0199f3a2c4d57e3a8f00112233445566' }),
    provider: z.string(),
    model: z.string(),
    session_id: z.string(),
    team_id: label,
    feature: label,
    is_batch: z.boolean(),
    batch_id: label,
    input_tokens: tokens.meta({ description: 'Uncached input; cache reads and writes are not inside' }),
    output_tokens: tokens.meta({ description: 'All output, reasoning included' }),
    cache_read: tokens,
    cache_creation: tokens,
    reasoning_tok: tokens.meta({ description: 'Subset of output_tokens' }),
    cached_tok: tokens.meta({ description: 'Cached count as an inclusive provider reported it' }),
    cost_usd: z.number(),
    duration_ms: z.int().min(0),
    stop_reason: z.string(),
    payload: json.meta({ description: 'Raw body; null unless include_payload=true' }),
    timestamp: z.string(),
    request_id: label,
    response_model: label,
    api_key_hash: z.string(),
    api_key_id: z.string(),
    provider_key_id: label,
    kind: z.string(),
    status: z.string(),
    http_status: z.int().nullable(),
    project_id: label,
    user_id: label,
    environment: label,
    service_tier: label,
    billed_by: z.string(),
    provider_account_id: label,
    end_at: z.string(),
    cache_creation_5m: tokens.nullable(),
    cache_creation_1h: tokens.nullable(),
    cost_source: z.enum(['reported', 'computed', 'unpriced']),
    computed_cost_usd: z.number().nullable(),
    price_gaps: z.array(z.string()),
    usage_source: z.string(),
    input_semantics: z.enum(['inclusive', 'exclusive', 'disjoint']),
    usage_missing: z.array(z.string()),
    usage_flags: z.array(z.string()).meta({ description: 'What is wrong with the counts as they came' }),
    superseded_by: label,
    blocked_rule_id: label,
    prevented_usd: z.number().nullable(),
    ingested_at: z.string(),
    tool_input: json.optional(),
    tool_output: json.optional(),
  })
  .meta({ id: 'Event' });

export type EventWire = z.output<typeof eventSchema>;

/** Joins payload and `_service` block in one object; the block has a separate column so that it can be read alone. */
function presentPayload(payload: Json | null, service: Json | null): Json | null {
  if (service === null) return payload;
  if (payload !== null && typeof payload === 'object' && !Array.isArray(payload))
    return { ...payload, _service: service };
  return payload === null ? { _service: service } : { body: payload, _service: service };
}

/** A single event; it also shows the cost before re-pricing. */
export const oneEventSchema = eventSchema
  .extend({
    former_prices: z
      .array(
        z.strictObject({
          cost_usd: z.number(),
          computed_cost_usd: z.number().nullable(),
          cost_source: z.enum(['reported', 'computed', 'unpriced']),
          price_gaps: z.array(z.string()),
          until: z.string(),
          run_id: z.string().meta({ description: 'The re-pricing that changed it' }),
        }),
      )
      .optional()
      .meta({ description: 'Oldest first; only where the event was priced again' }),
  })
  .meta({ id: 'EventDetail' });

function presentFormerPrice(
  former: FormerPrice,
): NonNullable<z.output<typeof oneEventSchema>['former_prices']>[number] {
  return {
    cost_usd: usdNumberFromPico(former.costPico),
    computed_cost_usd: usdNumberOrNull(former.computedCostPico),
    cost_source: former.costSource,
    price_gaps: former.priceGaps,
    until: isoFromMicros(former.untilMicros),
    run_id: publicId('run', former.runId),
  };
}

function presentEvent(event: StoredEvent): EventWire {
  return {
    id: publicId('evt', event.id),
    provider: event.provider,
    model: event.model,
    session_id: event.sessionId,
    team_id: event.teamId,
    feature: event.feature,
    is_batch: event.isBatch,
    batch_id: event.batchId,
    input_tokens: event.inputTokens,
    output_tokens: event.outputTokens,
    cache_read: event.cacheRead,
    cache_creation: event.cacheCreation,
    reasoning_tok: event.reasoningTok,
    cached_tok: event.cachedTok,
    cost_usd: usdNumberFromPico(event.costPico),
    duration_ms: event.durationMs,
    stop_reason: event.stopReason,
    payload: event.payload ? presentPayload(event.payload.payload, event.payload.service) : null,
    timestamp: isoFromMicros(event.timestampMicros),
    request_id: event.requestId,
    response_model: event.responseModel,
    api_key_hash: event.apiKeyHash,
    api_key_id: event.apiKeyId,
    provider_key_id: event.providerKeyId,
    kind: event.kind,
    status: event.status,
    http_status: event.httpStatus,
    project_id: event.projectId,
    user_id: event.userId,
    environment: event.environment,
    service_tier: event.serviceTier,
    billed_by: event.billedBy,
    provider_account_id: event.providerAccountId,
    end_at: isoFromMicros(event.endMicros),
    cache_creation_5m: event.cacheCreation5m,
    cache_creation_1h: event.cacheCreation1h,
    cost_source: event.costSource,
    computed_cost_usd: usdNumberOrNull(event.computedCostPico),
    price_gaps: event.priceGaps,
    usage_source: event.usageSource,
    input_semantics: event.inputSemantics,
    usage_missing: event.usageMissing,
    usage_flags: event.usageFlags,
    superseded_by: event.supersededBy === null ? null : publicId('evt', event.supersededBy),
    blocked_rule_id: event.blockedRuleId,
    prevented_usd: usdNumberOrNull(event.preventedPico),
    ingested_at: isoFromMicros(event.ingestedMicros),
    ...(event.payload ? { tool_input: event.payload.toolInput, tool_output: event.payload.toolOutput } : {}),
  };
}

const EXPORT_FORMS: Partial<Record<string, CopiedForm>> = {
  id: 'id',
  superseded_by: 'id',
  is_batch: 'boolean',
  cost_usd: 'decimal',
  computed_cost_usd: 'decimal',
  prevented_usd: 'decimal',
  timestamp: 'time',
  end_at: 'time',
  ingested_at: 'time',
  price_gaps: 'list',
  usage_missing: 'list',
  usage_flags: 'list',
  input_tokens: 'json',
  output_tokens: 'json',
  cache_read: 'json',
  cache_creation: 'json',
  reasoning_tok: 'json',
  cached_tok: 'json',
  duration_ms: 'json',
  http_status: 'json',
  cache_creation_5m: 'json',
  cache_creation_1h: 'json',
};

/** The exported rows of `streamEventLines` as the same objects as `presentEvent`. */
export const EXPORTED_COLUMNS: CopiedColumns = {
  columns: EVENT_COLUMNS.map((name) => ({ name, form: EXPORT_FORMS[name] ?? 'text' })),
  json: ['payload', 'tool_input', 'tool_output'],
  inner: '_service',
  join: (payload, service) => presentPayload(payload as Json | null, service as Json),
};

const eventFilters = {
  session_id: filterParameter.optional(),
  provider: filterParameter.optional(),
  model: filterParameter.optional(),
  team_id: filterParameter.optional(),
  feature: filterParameter.optional(),
  project_id: filterParameter.optional(),
  kind: filterParameter.optional(),
  since: instantParameter.optional(),
  until: instantParameter.optional(),
};

export const eventFiltersQuery = eventFilters;

export const listEventsQuery = z.object({
  ...eventFilters,
  ...pageParameters,
  include_payload: booleanParameter.default(false),
  include_superseded: booleanParameter.default(false),
});

export const listEventsResponse = z.strictObject({
  events: z.array(eventSchema),
  ...cursoredPageFields,
});

export const eventParams = z.object({ id: z.string().max(64, { error: 'is not an event id' }) });
export const getEventQuery = z.object({ include_payload: booleanParameter.default(false) });

const required = (name: string) => ({
  error: (issue: { input: unknown }) =>
    issue.input === undefined ? `is required: ${name}` : 'must be an ISO 8601 time',
});

export const exportEventsQuery = z.object({
  start: z.string(required('the inclusive lower bound as an ISO 8601 time')).pipe(instantParameter),
  end: z.string(required('the inclusive upper bound as an ISO 8601 time')).pipe(instantParameter),
  format: z.enum(['jsonl', 'json'], { error: 'must be jsonl or json' }).default('jsonl'),
  include_payload: booleanParameter.default(false),
});

export function presentEventPage(
  { events, hasMore }: { events: StoredEvent[]; hasMore: boolean },
  offset: number,
): z.output<typeof listEventsResponse> {
  return {
    events: events.map(presentEvent),
    count: events.length,
    offset,
    has_more: hasMore,
    next_cursor: nextCursor(events, hasMore, eventPosition),
  };
}

export function presentOneEvent(
  event: StoredEvent,
  formerPrices: readonly FormerPrice[],
): z.output<typeof oneEventSchema> {
  const former = formerPrices.map(presentFormerPrice);
  return { ...presentEvent(event), ...(former.length > 0 ? { former_prices: former } : {}) };
}
