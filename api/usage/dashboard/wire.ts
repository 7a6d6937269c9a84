import { z } from 'zod';
import type { UsageView } from '../../../domain/billing/periods/asOf.js';
import { compare } from '../../../domain/compare.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import type { UsageBooks } from '../../../usecases/usage/usage.js';
import { filterParameter, instantParameter } from '../../query.js';
import { asOfFields, asOfParameter, presentAsOf } from '../asOf.js';
import { presentUsageItems, USAGE_GROUPS_MAX, usageItemSchema } from '../usage/wire.js';

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

/** Items by cost; those of `day` by day. */
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
