import { listInvoiceLines, type StoredLine } from '../../db/invoices/invoiceLines.js';
import { type InvoiceRun, listNewestInvoiceRuns } from '../../db/invoices/invoiceRuns.js';
import { findInvoice, type StoredInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid } from '../../domain/ids.js';

/** An invoice with its newest run. */
export interface InvoiceWithRun {
  invoice: StoredInvoice;
  run: InvoiceRun | undefined;
}

export interface WholeInvoice extends InvoiceWithRun {
  lines: StoredLine[];
}

/** The invoice with a public id. Error: not_found. */
export async function getInvoice(orgDb: OrgDb, publicInvoiceId: string): Promise<StoredInvoice> {
  const id = findUuid('inv', publicInvoiceId);
  const invoice = id === undefined ? undefined : await findInvoice(orgDb, id);
  if (invoice) return invoice;
  throw new DomainError('not_found', 'there is no invoice with this id');
}

/** The same with its lines and newest run, of one moment. Error: not_found. */
export async function getWholeInvoice(orgDb: OrgDb, publicInvoiceId: string): Promise<WholeInvoice> {
  return orgDb.transaction(async (inside) => {
    const invoice = await getInvoice(inside, publicInvoiceId);
    const lines = await listInvoiceLines(inside, invoice.id);
    const [run] = await listNewestInvoiceRuns(inside, [invoice.id]);
    return { invoice, lines, run };
  }, 'repeatable read');
}

/** Each invoice with its newest run. */
export async function withRuns(orgDb: OrgDb, invoices: readonly StoredInvoice[]): Promise<InvoiceWithRun[]> {
  const runs = await listNewestInvoiceRuns(
    orgDb,
    invoices.map(({ id }) => id),
  );
  const byInvoice = new Map(runs.map((run) => [run.invoiceId, run]));
  return invoices.map((invoice) => ({ invoice, run: byInvoice.get(invoice.id) }));
}
