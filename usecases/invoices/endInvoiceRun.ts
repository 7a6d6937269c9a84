import { INVOICE_RUNS } from '../../db/invoices/invoiceRuns.js';
import { findInvoice, lockInvoice, recordInvoiceEnd } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findRun } from '../../db/runs/runTable.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { invoiceFailureOf } from '../../domain/invoices/invoice.js';
import { invoiceMessage } from '../../domain/webhooks/messages.js';

/** Locks the invoice, then the run: two transactions that lock them in different orders would wait for each other. */
export async function lockInvoiceOfRun(inside: OrgDb, runId: string): Promise<void> {
  const run = await findRun(inside, INVOICE_RUNS, runId);
  if (run) await lockInvoice(inside, run.invoiceId);
}

/**
 * Sets the state of an invoice whose run the caller's transaction has just ended. After a run without a result, an
 * invoice that was read before keeps its state, and any other has failed. Receivers of webhooks get a message.
 */
export async function settleInvoiceRunEnd(inside: OrgDb, runId: string): Promise<void> {
  const run = await findRun(inside, INVOICE_RUNS, runId);
  if (!run) return;
  const { invoiceId, status, statusBefore } = run;
  if (status === 'failed' || status === 'cancelled') {
    const code = invoiceFailureOf(run.errorCode);
    const message = run.errorMessage ?? 'the run was cancelled';
    await recordInvoiceEnd(
      inside,
      invoiceId,
      statusBefore === 'reconciled' || statusBefore === 'needs_review'
        ? { status: statusBefore }
        : { status: 'failed', failure: { code, message } },
    );
  }
  const invoice = await findInvoice(inside, invoiceId);
  if (!invoice || run.finishedAtMicros === null) return;
  const { finishedAtMicros } = run;
  await publishMessages(inside, [invoiceMessage({ ...invoice, runId, finishedAtMicros })]);
}
