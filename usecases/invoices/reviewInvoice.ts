import { listInvoiceLines, recordCorrection, type StoredLine } from '../../db/invoices/invoiceLines.js';
import { INVOICE_RUNS, type InvoiceRun } from '../../db/invoices/invoiceRuns.js';
import {
  lockInvoice,
  recordChecks,
  recordConfirmation,
  recordInvoiceAtWork,
  recordInvoiceEnd,
  recordTie,
  type StoredInvoice,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findOpenRun } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import { checkInvoice, isAccepted } from '../../domain/invoices/checkInvoice.js';
import { correctLine, effectiveLine, type LineCorrection } from '../../domain/invoices/correctLine.js';
import {
  restoreCorrection,
  restoreLine,
  restoreReading,
  toStored,
} from '../../domain/invoices/storedReading.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { queueRun } from '../runs/openRun.js';

const SUBJECT = (id: string) => ({ type: 'invoice', id: publicId('inv', id) });

/** The invoice, locked. Error: not_found. */
export async function lockInvoiceById(inside: OrgDb, publicInvoiceId: string): Promise<StoredInvoice> {
  const id = findUuid('inv', publicInvoiceId);
  const invoice = id === undefined ? undefined : await lockInvoice(inside, id);
  if (invoice) return invoice;
  throw new DomainError('not_found', 'there is no invoice with this id');
}

/** Refuses a change while the file is being read, because the reading would undo it. Error: invoice_busy. */
async function openRunOf(inside: OrgDb, { id }: StoredInvoice): Promise<InvoiceRun | undefined> {
  const run = await findOpenRun(inside, INVOICE_RUNS, { invoiceId: id });
  if (run && run.cause !== 'rematch')
    throw new DomainError('invoice_busy', 'the invoice is being read: wait until its run has ended');
  return run;
}

/**
 * Queues another comparison of an invoice. An open run makes it, because it finds a new revision; otherwise a new run
 * does. Call it in the transaction of the change.
 */
export async function rematchInvoice(
  inside: OrgDb,
  invoice: Pick<StoredInvoice, 'id' | 'status'>,
  { requestedBy, nowMicros }: { requestedBy: string; nowMicros: bigint },
): Promise<void> {
  const run = {
    id: newUuid(nowMicros),
    invoiceId: invoice.id,
    cause: 'rematch' as const,
    engines: null,
    requestedBy,
    statusBefore: invoice.status === 'matching' ? ('needs_review' as const) : invoice.status,
  };
  await queueRun(inside, INVOICE_RUNS, run);
  await recordInvoiceAtWork(inside, invoice.id, 'matching');
}

/** Notes on an invoice that a new run will read its file again. */
export function noteRetry(inside: OrgDb, invoiceId: string): Promise<void> {
  return recordInvoiceAtWork(inside, invoiceId, 'received');
}

/** The reading with every stored correction and this further one. */
function correctedReading(invoice: StoredInvoice, lines: readonly StoredLine[]) {
  if (!invoice.fields) throw new DomainError('not_found', 'the invoice has no such line');
  const reading = restoreReading(
    invoice.fields,
    lines.map(({ extracted }) => extracted),
  );
  return {
    ...reading,
    lines: lines.map((line) =>
      correctLine(restoreLine(line.extracted), restoreCorrection(line.corrected), invoice.provider),
    ),
  };
}

/**
 * Stores a person's correction of a line beside the reading, checks the arithmetic again, and queues a comparison if the
 * sums now agree. Errors: not_found, invoice_busy.
 */
export async function correctInvoiceLine(
  orgDb: OrgDb,
  { id, line: number, correction }: { id: string; line: number; correction: LineCorrection },
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const invoice = await lockInvoiceById(inside, id);
    const open = await openRunOf(inside, invoice);
    const lines = await listInvoiceLines(inside, invoice.id);
    const line = lines.find((one) => one.line === number);
    if (!line) throw new DomainError('not_found', 'the invoice has no such line');
    const corrected = toStored({ ...restoreCorrection(line.corrected), ...correction });
    const all = lines.map((one) => (one === line ? { ...line, corrected } : one));
    const reading = correctedReading(invoice, all);
    const effective = reading.lines[lines.indexOf(line)];
    if (effective)
      await recordCorrection(inside, invoice.id, {
        line: effectiveLine(effective, restoreCorrection(corrected).tax ?? null),
        corrected,
        by: author.caller.keyId,
      });
    const checks = checkInvoice(reading);
    const isFine = isAccepted(checks);
    await recordChecks(inside, invoice.id, toStored(checks), isFine);
    if (isFine || invoice.confirmedAtMicros !== null)
      await rematchInvoice(inside, invoice, { requestedBy: author.caller.keyId, nowMicros });
    else if (!open) {
      await recordTie(inside, invoice.id, { tie: null, reviewReasons: ['arithmetic'] });
      await recordInvoiceEnd(inside, invoice.id, { status: 'needs_review' });
    }
    await recordAction(inside, author, 'invoice.line_corrected', SUBJECT(invoice.id), {
      line: number,
      fields: Object.keys(correction),
    });
  });
}

/**
 * Records that the reading is right and the document wrong: the comparison continues, and its contradictions become
 * findings. Errors: not_found, invoice_busy, not_for_review.
 */
export async function confirmInvoice(
  orgDb: OrgDb,
  { id, note }: { id: string; note: string | null },
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const invoice = await lockInvoiceById(inside, id);
    await openRunOf(inside, invoice);
    if (invoice.status !== 'needs_review')
      throw new DomainError(
        'not_for_review',
        `the invoice is ${invoice.status}: only one that needs review is confirmed`,
      );
    const by = author.caller.keyId;
    await recordConfirmation(inside, invoice.id, { by, note });
    await rematchInvoice(inside, invoice, { requestedBy: by, nowMicros });
    await recordAction(inside, author, 'invoice.confirmed', SUBJECT(invoice.id));
  });
}
