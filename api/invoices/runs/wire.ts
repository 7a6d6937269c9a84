import { z } from 'zod';
import type { InvoiceRun } from '../../../db/invoices/invoiceRuns.js';
import { publicId } from '../../../domain/ids.js';
import { INVOICE_RUN_CAUSES } from '../../../domain/invoices/invoice.js';
import { INVOICE_ENGINES } from '../../../domain/invoices/pageWords.js';
import { RUN_TERMINAL_STATUSES } from '../../../domain/runs/runKinds.js';
import { offsetParameters, pageFields } from '../../paging.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const INVOICE_RUNS_PATH = '/api/v1/reconciliation/invoices/{id}/runs';

/** Reading the file, comparing it, ending. */
const STEPS = { queued: 0, extracting: 0, reading: 1, matching: 2 } as const;
const STEPS_TOTAL = 3;

export const invoiceRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('invoice_run'),
    invoice_id: z.string(),
    status: runStatusSchema,
    cause: z.enum(INVOICE_RUN_CAUSES),
    engines: z
      .array(z.enum(INVOICE_ENGINES))
      .nullable()
      .meta({ description: 'What reads pages, in this order; null: as the settings say' }),
    progress: progressSchema.meta({ description: 'In steps: extract, read, match' }),
    result: z
      .strictObject({
        status: z.enum(['reconciled', 'needs_review']),
        pages: z.int().nullable(),
        engine: z.enum(INVOICE_ENGINES).nullable(),
        lines: z.int(),
      })
      .nullable(),
    ...runEndFields('A run of the invoice is under way: this is that run'),
  })
  .meta({ id: 'InvoiceRun' });

export const listInvoiceRunsQuery = z.object(offsetParameters(100, 20));
export const listInvoiceRunsResponse = z.strictObject({ runs: z.array(invoiceRunSchema), ...pageFields });

export const retryBody = z
  .strictObject({
    engines: z
      .array(z.enum(INVOICE_ENGINES))
      .min(1)
      .max(INVOICE_ENGINES.length)
      .refine((engines) => new Set(engines).size === engines.length, { error: 'must name each engine once' })
      .optional()
      .meta({ description: 'What reads pages, in this order; as the settings say when absent' }),
  })
  .meta({ id: 'InvoiceRetry' });

export function presentInvoiceRun(run: InvoiceRun): z.output<typeof invoiceRunSchema> {
  const id = publicId('run', run.id);
  const invoiceId = publicId('inv', run.invoiceId);
  const done = RUN_TERMINAL_STATUSES.has(run.status)
    ? STEPS_TOTAL
    : (STEPS[run.stage as keyof typeof STEPS] ?? 0);
  return {
    id,
    run_id: id,
    kind: 'invoice_run',
    invoice_id: invoiceId,
    status: run.status,
    cause: run.cause,
    engines: run.engines,
    progress: presentProgress({ ...run, done, total: STEPS_TOTAL }),
    result: run.result && {
      status: run.result.status,
      pages: run.result.pages,
      engine: run.result.engine,
      lines: run.result.lines,
    },
    ...presentRunEnd(run, `${INVOICE_RUNS_PATH.replace('{id}', invoiceId)}/${id}`),
  };
}
