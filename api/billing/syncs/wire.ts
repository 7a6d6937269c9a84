import { z } from 'zod';
import type { SyncRun, SyncRunResult } from '../../../db/billing/syncRuns.js';
import { FEEDS } from '../../../domain/billing/billedRow.js';
import { SYNC_TRIGGERS } from '../../../domain/billing/connections.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromDecimal } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import { offsetParameters, pageFields } from '../../paging.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const CONNECTIONS_PATH = '/api/v1/billing-connections';

export const connectionParams = z.object({ id: z.string() });
export const listSyncRunsQuery = z.object(offsetParameters());

const restatedSchema = z.strictObject({
  day: z.string(),
  feed: z.enum(FEEDS),
  report: z.string(),
  old_usd: z.number().nullable(),
  new_usd: z.number().nullable(),
});

const missingSchema = z.strictObject({
  report: z.string(),
  period_start: z.string(),
  period_end: z.string().meta({ description: 'Inclusive' }),
  code: z.string(),
  message: z.string(),
});

export const syncRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('billing_sync'),
    connection_id: z.string(),
    trigger: z.enum(SYNC_TRIGGERS),
    status: runStatusSchema,
    progress: progressSchema.meta({
      description: 'In chunks, each a report over at most one page’s span; stage says what is being done',
    }),
    waiting: z
      .strictObject({ code: z.string(), message: z.string(), until: z.string() })
      .nullable()
      .meta({ description: 'What the provider is waited for, and until when; null while it answers' }),
    result: z
      .strictObject({
        pages: z.int(),
        rows: z.int().meta({ description: 'Rows of days that are new or changed' }),
        changed_days: z.int(),
        period_start: z.string().nullable(),
        period_end: z.string().nullable().meta({ description: 'Inclusive' }),
        restated: z
          .array(restatedSchema)
          .meta({ description: 'Days that the provider had closed and tells otherwise now' }),
        restated_count: z.int(),
        missing: z.array(missingSchema).meta({ description: 'What the next sync takes up' }),
        gap_run_id: z.string().nullable().meta({ description: 'The gap run over what changed' }),
      })
      .nullable(),
    ...runEndFields('A sync was open already: this is that one'),
  })
  .meta({ id: 'BillingSyncRun' });

export const listSyncRunsResponse = z.strictObject({ runs: z.array(syncRunSchema), ...pageFields });

export function presentSyncRun(run: SyncRun): z.output<typeof syncRunSchema> {
  const id = publicId('run', run.id);
  const connectionId = publicId('con', run.connectionId);
  return {
    id,
    run_id: id,
    kind: 'billing_sync',
    connection_id: connectionId,
    trigger: run.trigger,
    status: run.status,
    progress: presentProgress({ ...run, done: run.doneChunks, total: run.totalChunks }),
    waiting:
      run.waitingCode === null || run.waitingUntilMicros === null
        ? null
        : {
            code: run.waitingCode,
            message: run.waitingMessage ?? run.waitingCode,
            until: isoFromMicros(run.waitingUntilMicros),
          },
    result: run.result && presentResult(run.result),
    ...presentRunEnd(run, `${CONNECTIONS_PATH}/${connectionId}/runs/${id}`),
  };
}

const usdOrNull = (text: string | null) => (text === null ? null : usdNumberFromDecimal(text));

function presentResult(result: SyncRunResult): z.output<typeof syncRunSchema>['result'] {
  return {
    pages: result.pages,
    rows: result.rows,
    changed_days: result.changed_days,
    period_start: result.period_start,
    period_end: result.period_end,
    restated: result.restated.map(({ day, feed, report, old_usd, new_usd }) => ({
      day,
      feed,
      report,
      old_usd: usdOrNull(old_usd),
      new_usd: usdOrNull(new_usd),
    })),
    restated_count: result.restated_count,
    missing: result.missing.map(({ report, period_start, period_end, code, message }) => ({
      report,
      period_start,
      period_end,
      code,
      message,
    })),
    gap_run_id: result.gap_run_id === null ? null : publicId('run', result.gap_run_id),
  };
}
