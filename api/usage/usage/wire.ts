import { z } from 'zod';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import type { UsageGroup, UsageMeasures } from '../../../db/usage/usage.js';
import type { UsageView } from '../../../domain/billing/periods.js';
import { compare } from '../../../domain/compare.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import { OTHER_KEY, UNSET_KEY } from '../../../domain/usage/chargeback.js';
import type { UsageBooks } from '../../../usecases/usage/usage.js';
import { csvList } from '../../csv.js';
import { eventFiltersQuery } from '../../events/events/wire.js';
import { pageParameters } from '../../paging.js';
import { booleanParameter, filterParameter, instantParameter } from '../../query.js';
import { asOfFields, asOfParameter, presentAsOf } from '../asOf.js';

/** Most groups of a breakdown; one more group sums the rest. */
export const USAGE_GROUPS_MAX = 1_000;

export const GROUP_BY = ['model', 'session', 'project', 'user', 'provider', 'team', 'feature'] as const;
const groupBy = z.enum(GROUP_BY, {
  error: 'must be model, session, project or user (or provider, team, feature)',
});

export const usageItemSchema = z
  .strictObject({
    key: z.string(),
    cost_usd: z.number(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    call_count: z.int(),
    cache_read: z.int(),
    cache_creation: z.int(),
    unpriced_calls: z.int().meta({
      description:
        'Calls whose cost is not known (cost_source unpriced): no price, or no usage; they are in call_count and add nothing to cost_usd',
    }),
  })
  .meta({ id: 'UsageBreakdownItem' });

export type UsageItemWire = z.output<typeof usageItemSchema>;

export function presentUsageItem(key: string, sums: UsageMeasures): UsageItemWire {
  return {
    key,
    cost_usd: usdNumberFromPico(sums.costPico),
    input_tokens: sums.inputTokens,
    output_tokens: sums.outputTokens,
    call_count: sums.calls,
    cache_read: sums.cacheRead,
    cache_creation: sums.cacheCreation,
    unpriced_calls: sums.unpriced,
  };
}

function subtract(from: UsageMeasures, groups: readonly UsageMeasures[]): UsageMeasures {
  const rest = { ...from };
  for (const group of groups) {
    rest.calls -= group.calls;
    rest.inputTokens -= group.inputTokens;
    rest.outputTokens -= group.outputTokens;
    rest.cacheRead -= group.cacheRead;
    rest.cacheCreation -= group.cacheCreation;
    rest.reasoningTok -= group.reasoningTok;
    rest.costPico -= group.costPico;
    rest.computedCostPico -= group.computedCostPico;
    rest.reportedCostPico -= group.reportedCostPico;
    rest.unpriced -= group.unpriced;
  }
  return rest;
}

/** At most `max` groups and, where more exist, one group of the rest, so that the items sum to the totals. */
export function presentUsageItems(
  totals: UsageMeasures,
  groups: readonly UsageGroup[],
  max: number,
): UsageItemWire[] {
  const shown = groups.slice(0, max);
  const items = shown.map((group) => presentUsageItem(group.key === '' ? UNSET_KEY : group.key, group));
  if (groups.length > max) items.push(presentUsageItem(OTHER_KEY, subtract(totals, shown)));
  return items;
}

export const usageSummaryQuery = z.object({
  from: instantParameter.optional(),
  to: instantParameter.optional(),
  group_by: groupBy.default('model'),
  project_id: filterParameter.optional(),
  as_of: asOfParameter,
});

export const usageSummaryResponse = z.strictObject({
  from: z.string(),
  to: z.string(),
  group_by: z.enum(GROUP_BY),
  total_cost_usd: z.number(),
  total_input_tokens: z.int(),
  total_output_tokens: z.int(),
  total_cache_read_tokens: z.int(),
  total_cache_creation_tokens: z.int(),
  reported_cost_usd: z.number(),
  computed_cost_usd: z.number(),
  call_count: z.int(),
  unpriced_calls: z.int(),
  breakdown: z.array(usageItemSchema),
  ...asOfFields,
});

export function presentUsageSummary(
  sums: UsageBooks & { view: UsageView },
  window: { fromMicros: bigint; toMicros: bigint },
  group: (typeof GROUP_BY)[number],
  nowMicros: bigint,
): z.output<typeof usageSummaryResponse> {
  const { totals, groups } = sums;
  return {
    from: isoFromMicros(window.fromMicros),
    to: isoFromMicros(window.toMicros - 1n),
    group_by: group,
    total_cost_usd: usdNumberFromPico(totals.costPico),
    total_input_tokens: totals.inputTokens,
    total_output_tokens: totals.outputTokens,
    total_cache_read_tokens: totals.cacheRead,
    total_cache_creation_tokens: totals.cacheCreation,
    reported_cost_usd: usdNumberFromPico(totals.reportedCostPico),
    computed_cost_usd: usdNumberFromPico(totals.computedCostPico),
    call_count: totals.calls,
    unpriced_calls: totals.unpriced,
    breakdown: presentUsageItems(totals, groups, USAGE_GROUPS_MAX),
    ...presentAsOf(sums, nowMicros),
  };
}

export const usageRecordsQuery = z.object({
  ...eventFiltersQuery,
  ...pageParameters,
  include_payload: booleanParameter.optional(),
  group_by: groupBy.optional(),
});

const usageRecordSchema = z.strictObject({
  id: z.string(),
  timestamp: z.string(),
  provider: z.string(),
  model: z.string(),
  session_id: z.string(),
  team_id: z.string().nullable(),
  feature: z.string().nullable(),
  project_id: z.string().nullable(),
  user_id: z.string().nullable(),
  is_batch: z.boolean(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cache_read: z.int(),
  cache_creation: z.int(),
  reasoning_tok: z.int(),
  cached_tok: z.int(),
  cost_usd: z.number(),
  duration_ms: z.int(),
});

const usageGroupRecordSchema = usageItemSchema.extend({
  first_seen: z.string().nullable(),
  last_seen: z.string().nullable(),
});

export const usageRecordsResponse = z.strictObject({
  records: z.union([z.array(usageRecordSchema), z.array(usageGroupRecordSchema)]),
  count: z.int(),
  offset: z.int(),
  group_by: z.enum(GROUP_BY).nullable(),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
});

export function presentUsageRecord(event: StoredEvent): z.output<typeof usageRecordSchema> {
  return {
    id: publicId('evt', event.id),
    timestamp: isoFromMicros(event.timestampMicros),
    provider: event.provider,
    model: event.model,
    session_id: event.sessionId,
    team_id: event.teamId,
    feature: event.feature,
    project_id: event.projectId,
    user_id: event.userId,
    is_batch: event.isBatch,
    input_tokens: event.inputTokens,
    output_tokens: event.outputTokens,
    cache_read: event.cacheRead,
    cache_creation: event.cacheCreation,
    reasoning_tok: event.reasoningTok,
    cached_tok: event.cachedTok,
    cost_usd: usdNumberFromPico(event.costPico),
    duration_ms: event.durationMs,
  };
}

export function presentUsageGroupRecord(group: UsageGroup): z.output<typeof usageGroupRecordSchema> {
  return {
    ...presentUsageItem(group.key === '' ? UNSET_KEY : group.key, group),
    first_seen: group.firstSeenMicros === null ? null : isoFromMicros(group.firstSeenMicros),
    last_seen: group.lastSeenMicros === null ? null : isoFromMicros(group.lastSeenMicros),
  };
}

export const BREAKDOWN_DIMENSIONS = ['model', 'provider', 'team', 'feature', 'session', 'day'] as const;

export const breakdownParams = z.object({
  dimension: z.enum(BREAKDOWN_DIMENSIONS, {
    error: 'must be model, provider, team, feature, session or day',
  }),
});

export const breakdownQuery = z.object({
  team_id: filterParameter.optional(),
  feature: filterParameter.optional(),
  provider: filterParameter.optional(),
  project_id: filterParameter.optional(),
  since: instantParameter.optional(),
  until: instantParameter.optional(),
  as_of: asOfParameter,
});

export const breakdownResponse = z.strictObject({
  dimension: z.enum(BREAKDOWN_DIMENSIONS),
  items: z.array(usageItemSchema),
  total_cost_usd: z.number(),
  ...asOfFields,
});

/** Items by cost; the dimension `day` by day. */
export function presentBreakdown(
  dimension: (typeof BREAKDOWN_DIMENSIONS)[number],
  sums: UsageBooks & { view: UsageView },
  nowMicros: bigint,
): z.output<typeof breakdownResponse> {
  const items = presentUsageItems(sums.totals, sums.groups, USAGE_GROUPS_MAX);
  if (dimension === 'day') items.sort((a, b) => compare(a.key, b.key));
  return {
    dimension,
    items,
    total_cost_usd: usdNumberFromPico(sums.totals.costPico),
    ...presentAsOf(sums, nowMicros),
  };
}

/** The list as CSV. */
export const usageCsv = csvList('usage', 'breakdown', usageItemSchema);
export const breakdownCsv = csvList('breakdown', 'items', usageItemSchema);
