import { proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import { extractionTaskQueue, type RunInput } from './contract.js';
import { withRunEnding } from './runEnding.js';

const { beginInvoiceRun, finishInvoiceRun, endInvoiceRunCancelled, endInvoiceRunFailed } =
  proxyActivities<Activities>(PROFILES.database);
const { readInvoice, matchInvoice } = proxyActivities<Activities>(PROFILES.invoicing);

/** Waits for a slot among the organization's invoices that are being read; the last wait repeats. */
const PLACE_WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000] as const;

/**
 * One run of an invoice: extract, read, match, end. A fault of the document is the run's outcome, not the workflow's
 * failure. An invoice that a person corrects meanwhile is compared again.
 */
export async function invoicePipeline(input: RunInput): Promise<void> {
  const ending = {
    cancelled: () => endInvoiceRunCancelled(input),
    failed: (reason: { code: string; message: string }) => endInvoiceRunFailed({ ...input, ...reason }),
  };
  await withRunEnding(ending, () => process(input));
}

async function process(input: RunInput): Promise<void> {
  const begun = await beginInvoiceRun(input);
  if (!begun) return;
  if (begun.mustExtract) {
    await extract(input);
    await readInvoice(input);
  }
  for (;;) {
    const { revision } = await matchInvoice(input);
    const { hasEnded } = await finishInvoiceRun({ ...input, revision });
    if (hasEnded) return;
  }
}

async function extract(input: RunInput): Promise<void> {
  const { extractInvoice } = proxyActivities<Activities>({
    ...PROFILES.extracting,
    taskQueue: extractionTaskQueue(workflowInfo().taskQueue),
  });
  for (let waits = 0; ; waits += 1) {
    const { isExtracted } = await extractInvoice(input);
    if (isExtracted) return;
    await sleep(PLACE_WAITS_MS[Math.min(waits, PLACE_WAITS_MS.length - 1)] as number);
  }
}
