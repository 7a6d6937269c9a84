import { z } from 'zod';
import { filterParameter, instantParameter } from '../../query.js';
import { asOfFields, asOfParameter } from '../asOf.js';
import { usageItemSchema } from '../usage/wire.js';

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
