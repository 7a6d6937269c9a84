import { z } from 'zod';
import type { SavingsRun } from '../../../db/policies/savingsRuns.js';
import { footCents } from '../../../domain/footing.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull, MICROS_PER_DAY } from '../../../domain/period.js';
import { SAVINGS_CAUSES } from '../../../domain/policies/savingsCauses.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { instantParameter } from '../../query.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const SAVINGS_RUNS_PATH = '/api/v1/enforcement/savings/runs';

export const FROM_MEANING = 'First time of the calls; a date means its beginning. With to, or neither';
export const TO_MEANING = 'Last time, included; a date means its end';

const usd = z.number().meta({ description: 'To the cent' });
const exact = z.string().meta({ description: 'The same amount to the pico-dollar' });

export const savingsRunBody = z
  .strictObject({
    from: instantParameter.optional().meta({ type: 'string', description: FROM_MEANING }),
    to: instantParameter.optional().meta({ type: 'string', description: TO_MEANING }),
  })
  .meta({ id: 'SavingsRunRequest' });

export const listSavingsRunsQuery = z.object({
  status: runStatusSchema.optional(),
  ...offsetParameters(100, 20),
});

export const savingsRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('savings_run'),
    status: runStatusSchema,
    from: z.string(),
    to: z.string(),
    standard: z
      .boolean()
      .meta({ description: 'Of the 30 days before it was opened; else of a named period' }),
    cause: z.enum(SAVINGS_CAUSES),
    progress: progressSchema.meta({ description: 'In days of 24 hours' }),
    result: z
      .strictObject({
        as_of: z.string(),
        price_version: z.string(),
        calls: z.int(),
        blocked_calls: z.int(),
        downgraded_calls: z.int(),
        preventable_modeled_usd: usd,
        preventable_modeled_usd_exact: exact,
      })
      .nullable()
      .meta({ description: 'Null until the run has succeeded' }),
    ...runEndFields('A run of the same period is under way: this is that run'),
  })
  .meta({ id: 'SavingsRun' });

export const listSavingsRunsResponse = z.strictObject({ runs: z.array(savingsRunSchema), ...pageFields });

/** Where to ask for a run’s state. */
export function savingsRunUrl({ id }: SavingsRun): string {
  return `${SAVINGS_RUNS_PATH}/${publicId('run', id)}`;
}

/** Days of the period, and how many of them a run has behind it. */
function daysOf(run: SavingsRun): { done: number; total: number } {
  const between = (micros: bigint) => Number((micros - run.windowStartMicros) / MICROS_PER_DAY);
  const total = between(run.windowEndMicros - 1n) + 1;
  if (run.status === 'succeeded') return { done: total, total };
  return { done: run.cursorMicros === null ? 0 : between(run.cursorMicros), total };
}

export function presentSavingsRun(run: SavingsRun): z.output<typeof savingsRunSchema> {
  const id = publicId('run', run.id);
  return {
    id,
    run_id: id,
    kind: 'savings_run',
    status: run.status,
    from: isoFromMicros(run.windowStartMicros),
    to: isoFromMicros(run.windowEndMicros - 1n),
    standard: run.isStandard,
    cause: run.cause,
    progress: presentProgress({ ...run, ...daysOf(run) }),
    result:
      run.savedPico === null
        ? null
        : {
            as_of: isoOrNull(run.asOfMicros) ?? '',
            price_version: run.priceVersion ?? '',
            calls: run.calls,
            blocked_calls: run.blocked,
            downgraded_calls: run.downgraded,
            preventable_modeled_usd: usdNumberFromPico(footCents([run.savedPico]).totalPico),
            preventable_modeled_usd_exact: decimalFromPico(run.savedPico),
          },
    ...presentRunEnd(run, savingsRunUrl(run)),
  };
}
