import { listInvoiceLines, recordLineTies } from '../../db/invoices/invoiceLines.js';
import { INVOICE_RUNS, type InvoiceRunResult } from '../../db/invoices/invoiceRuns.js';
import {
  lockInvoice,
  recordInvoiceAtWork,
  recordInvoiceEnd,
  recordTie,
  type StoredInvoice,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findRun, markRunStarted } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import type { InvoiceTieReason, ReviewReason } from '../../domain/invoices/invoice.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { endRun } from '../runs/endRun.js';
import { getOpenInvoiceRun } from './extractInvoiceFile.js';
import { isComparable, publishInvoiceFindings } from './publishFindings.js';
import { rematchInvoicesOf } from './rematchInvoices.js';
import { type InvoiceComparison, tieOutInvoice } from './tieOut.js';

interface MatchDeps {
  prices: Prices;
  nowMicros(): bigint;
}

/** Starts the work of a run; undefined: it has ended or its invoice was deleted. */
export async function beginInvoiceRun(
  orgDb: OrgDb,
  runId: string,
): Promise<{ mustExtract: boolean } | undefined> {
  return orgDb.transaction(async (inside) => {
    const run = await findRun(inside, INVOICE_RUNS, runId);
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return undefined;
    const mustExtract = run.cause !== 'rematch';
    await lockInvoice(inside, run.invoiceId);
    const stage = mustExtract ? 'extracting' : 'matching';
    if (!(await markRunStarted(inside, 'invoice_run', runId, stage))) return undefined;
    await recordInvoiceAtWork(inside, run.invoiceId, stage);
    return { mustExtract };
  });
}

async function lockInvoiceOf(inside: OrgDb, runId: string): Promise<StoredInvoice> {
  const { invoiceId } = await getOpenInvoiceRun(inside, runId);
  const invoice = await lockInvoice(inside, invoiceId);
  if (invoice) return invoice;
  throw new DomainError('not_found', 'the invoice was deleted');
}

/**
 * Compares an invoice with the bill and stores the result of each line and the findings. Returns the revision that was
 * compared. Error: not_found for a run that has ended.
 */
export async function matchInvoice(
  { prices, nowMicros }: MatchDeps,
  orgDb: OrgDb,
  runId: string,
): Promise<{ revision: number }> {
  // Loaded before, because the transaction holds a connection.
  const at = { book: await prices.of(orgDb.orgId), nowMicros: nowMicros() };
  return orgDb.transaction(async (inside) => {
    const invoice = await lockInvoiceOf(inside, runId);
    const { tie, lines, reviewReasons, comparison } = await compareInvoice(inside, invoice, at);
    await recordLineTies(inside, invoice.id, lines);
    // A confirmed invoice needs no further review; its contradictions are findings.
    const reasons = invoice.confirmedAtMicros === null ? reviewReasons : [];
    await recordTie(inside, invoice.id, { tie, reviewReasons: reasons });
    await publishInvoiceFindings(inside, runId, invoice, comparison);
    return { revision: invoice.revision };
  });
}

/** The stored result of a comparison; null where there was nothing to compare. */
interface Compared extends Pick<InvoiceComparison, 'lines' | 'reviewReasons'> {
  tie: InvoiceComparison['tie'] | null;
  comparison: InvoiceComparison | null;
}

async function compareInvoice(
  inside: OrgDb,
  invoice: StoredInvoice,
  at: { book: PriceBook; nowMicros: bigint },
): Promise<Compared> {
  if (!invoice.arithmeticOk && invoice.confirmedAtMicros === null)
    return { tie: null, lines: [], reviewReasons: ['arithmetic'], comparison: null };
  if (invoice.documentKind === 'receipt') return incomparable('receipt');
  if (invoice.duplicateOf !== null) return incomparable('duplicate');
  if (invoice.replacedBy !== null) return incomparable('replaced');
  if (invoice.providerAccountId === null) return incomparable('account_unknown', 'account_unknown');
  if (!isComparable(invoice)) return incomparable('period_unknown', 'period_unknown');
  const comparison = await tieOutInvoice(inside, invoice, await listInvoiceLines(inside, invoice.id), at);
  return { ...comparison, comparison };
}

function incomparable(reason: InvoiceTieReason, review?: ReviewReason): Compared {
  const tie = { tie: 'not_comparable' as const, reason, currency: null, compared: null, billed: null };
  return { tie, lines: [], reviewReasons: review ? [review] : [], comparison: null };
}

/**
 * Ends a run and its invoice with the result of the comparison. Returns false if the invoice has changed since, so that
 * it must be compared again; true without a change if the run has ended already.
 */
export async function finishInvoiceRun(orgDb: OrgDb, runId: string, revision: number): Promise<boolean> {
  return orgDb.transaction(async (inside) => {
    const run = await findRun(inside, INVOICE_RUNS, runId);
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return true;
    const invoice = await lockInvoice(inside, run.invoiceId);
    if (!invoice) return true;
    if (invoice.revision !== revision) return false;
    const status = invoice.reviewReasons.length > 0 ? 'needs_review' : 'reconciled';
    const lines = await listInvoiceLines(inside, invoice.id);
    const result: InvoiceRunResult = {
      status,
      pages: invoice.pages,
      engine: invoice.engine,
      lines: lines.length,
    };
    await recordInvoiceEnd(inside, invoice.id, { status });
    await endRun(inside, 'invoice_run', runId, { status: 'succeeded', result });
    // A further document of the same days changes the part of the bill that the others explain.
    if (run.cause !== 'rematch' && isComparable(invoice))
      await rematchInvoicesOf(inside, {
        ...{ provider: invoice.provider, fromDay: invoice.periodStart, toDay: invoice.periodEnd },
        exceptId: invoice.id,
      });
    return true;
  });
}
