import { z } from 'zod';
import type { RepriceFindings, RepriceRun, RepriceSums } from '../../../db/pricing/repriceRuns.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, startOfDay } from '../../../domain/period.js';
import { RUN_TERMINAL_STATUSES } from '../../../domain/runs/runKinds.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter, instantParameter } from '../../query.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const REPRICE_PATH = '/api/v1/pricing/reprice';
export const REPRICE_RUNS_PATH = '/api/v1/pricing/reprice-runs';

/** Models that one run's answer lists, largest changes first; the sums include all models. */
export const MODELS_MAX = 1_000;
/** Models of each run in a list of runs. */
export const LISTED_MODELS_MAX = 20;

export const repriceBody = z
  .strictObject({
    from: instantParameter.meta({
      type: 'string',
      description: 'First time of the calls; a date means its beginning',
    }),
    to: instantParameter.meta({ type: 'string', description: 'Last time, included; a date means its end' }),
    provider: filterParameter.optional().meta({ description: 'Calls of it, or billed by it' }),
    model: filterParameter
      .optional()
      .meta({ description: 'Calls that asked for it, or were answered by it' }),
  })
  .meta({ id: 'RepriceRequest' });

export const listRepriceRunsQuery = z.object({
  status: runStatusSchema.optional(),
  ...offsetParameters(100, 20),
});

const sumsSchema = z.strictObject({
  events: z.int().meta({ description: 'Calls that were looked at; blocked ones are not counted' }),
  changed: z.int(),
  old_cost_usd: z.number(),
  old_cost_usd_exact: z.string(),
  new_cost_usd: z.number(),
  new_cost_usd_exact: z.string(),
  old_computed_cost_usd: z.number(),
  old_computed_cost_usd_exact: z.string(),
  new_computed_cost_usd: z.number(),
  new_computed_cost_usd_exact: z.string(),
  old_unpriced_calls: z.int(),
  new_unpriced_calls: z.int(),
});

export const repriceRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('reprice'),
    status: runStatusSchema,
    from: z.string(),
    to: z.string(),
    provider: z.string().nullable(),
    model: z.string().nullable(),
    progress: progressSchema.meta({ description: 'In UTC days of the window' }),
    result: sumsSchema
      .extend({
        price_version: z.string().nullable(),
        models: z.array(sumsSchema.extend({ provider: z.string(), model: z.string() })).meta({
          description: `By provider and model, the largest change first; at most ${MODELS_MAX}, in a list ${LISTED_MODELS_MAX}`,
        }),
        model_count: z.int(),
      })
      .nullable()
      .meta({ description: 'Null until the run has ended; of a cancelled or failed one, what it had done' }),
    ...runEndFields('The same was asked for before and is under way: this is that run'),
  })
  .meta({ id: 'RepriceRun' });

export const listRepriceRunsResponse = z.strictObject({ runs: z.array(repriceRunSchema), ...pageFields });

/** UTC days that the window touches, and how many of them the run has completed. */
function daysOf(run: RepriceRun): { done: number; total: number } {
  const first = startOfDay(run.windowStartMicros);
  const between = (micros: bigint) => Number((micros - first) / MICROS_PER_DAY);
  const total = between(run.windowEndMicros - 1n) + 1;
  const { cursorMicros } = run;
  const isThrough = cursorMicros !== null && cursorMicros >= run.windowEndMicros;
  return { done: isThrough ? total : cursorMicros === null ? 0 : between(cursorMicros), total };
}

const NOTHING: RepriceSums = {
  events: 0,
  changed: 0,
  oldCostPico: 0n,
  newCostPico: 0n,
  oldComputedPico: 0n,
  newComputedPico: 0n,
  oldUnpriced: 0,
  newUnpriced: 0,
};

function presentSums(sums: RepriceSums): z.output<typeof sumsSchema> {
  return {
    events: sums.events,
    changed: sums.changed,
    old_cost_usd: usdNumberFromPico(sums.oldCostPico),
    old_cost_usd_exact: decimalFromPico(sums.oldCostPico),
    new_cost_usd: usdNumberFromPico(sums.newCostPico),
    new_cost_usd_exact: decimalFromPico(sums.newCostPico),
    old_computed_cost_usd: usdNumberFromPico(sums.oldComputedPico),
    old_computed_cost_usd_exact: decimalFromPico(sums.oldComputedPico),
    new_computed_cost_usd: usdNumberFromPico(sums.newComputedPico),
    new_computed_cost_usd_exact: decimalFromPico(sums.newComputedPico),
    old_unpriced_calls: sums.oldUnpriced,
    new_unpriced_calls: sums.newUnpriced,
  };
}

export function presentRepriceRun(
  run: RepriceRun,
  found: RepriceFindings | undefined,
): z.output<typeof repriceRunSchema> {
  const id = publicId('run', run.id);
  return {
    id,
    run_id: id,
    kind: 'reprice',
    status: run.status,
    from: isoFromMicros(run.windowStartMicros),
    to: isoFromMicros(run.windowEndMicros - 1n),
    provider: run.provider,
    model: run.model,
    progress: presentProgress({ ...run, ...daysOf(run) }),
    result: RUN_TERMINAL_STATUSES.has(run.status)
      ? {
          ...presentSums(found?.sums ?? NOTHING),
          price_version: run.priceVersion,
          models: (found?.models ?? []).map(({ provider, model, ...sums }) => ({
            provider,
            model,
            ...presentSums(sums),
          })),
          model_count: found?.modelCount ?? 0,
        }
      : null,
    ...presentRunEnd(run, `${REPRICE_RUNS_PATH}/${id}`),
  };
}
