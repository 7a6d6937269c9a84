import { listInvoiceLines, listLineMatches, type StoredLine } from '../../db/invoices/invoiceLines.js';
import { findInvoice, type StoredInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { DraftClaim } from '../../domain/claims/draft.js';
import type { EvidenceFile, EvidenceInvoiceRef } from '../../domain/claims/evidence/claimEvidence.js';
import { csvText } from '../../domain/csv.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { readBlob } from '../invoices/invoiceDeps.js';
import { getInvoicePage, type InvoicePageDeps } from '../invoices/invoiceFiles.js';

/** Pages of one invoice that a pack shows as images. */
const PAGES_MAX = 5;
/** Largest invoice, bytes, that a pack contains as it was uploaded. */
const FILE_BYTES_MAX = 10_485_760;

/** The part of a claim's evidence about the invoices of its disputes. */
export interface EvidenceInvoices {
  ids: string[];
  refs: EvidenceInvoiceRef[];
  files: EvidenceFile[];
  /** Complete sentences. */
  notes: string[];
}

/**
 * The invoices of a claim's disputes: each as uploaded, its first pages as images, and its lines beside the rows of the
 * bill that they were compared with. The notes name a missing file.
 */
export async function readEvidenceInvoices(
  inside: OrgDb,
  draft: DraftClaim,
  deps: InvoicePageDeps,
): Promise<EvidenceInvoices> {
  const ids = [...new Set(draft.disputes.flatMap(({ evidence }) => evidence.invoiceId ?? []))].sort();
  const found: EvidenceInvoices = { ids: [], refs: [], files: [], notes: [] };
  for (const id of ids) {
    const invoice = await findInvoice(inside, id);
    if (!invoice) continue;
    found.ids.push(id);
    found.refs.push(refOf(invoice));
    const folder = `invoices/${publicId('inv', id)}`;
    found.files.push(await comparisonOf(inside, invoice, folder));
    const files = await filesOf(inside, invoice, folder, deps).catch(() => undefined);
    if (files) found.files.push(...files);
    else
      found.notes.push(`The file of invoice ${nameOf(invoice)} could not be read when the claim was made.`);
  }
  return found;
}

const nameOf = ({ number, filename }: StoredInvoice): string => number ?? filename;

function refOf(invoice: StoredInvoice): EvidenceInvoiceRef {
  return {
    source_id: publicId('inv', invoice.id),
    filename: invoice.filename,
    invoice_id: invoice.number,
    fetched_at: isoFromMicros(invoice.createdAtMicros),
    period_start: invoice.periodStart,
    period_end: invoice.periodEnd,
  };
}

async function filesOf(
  inside: OrgDb,
  invoice: StoredInvoice,
  folder: string,
  deps: InvoicePageDeps,
): Promise<EvidenceFile[]> {
  const files: EvidenceFile[] = [];
  if (invoice.sizeBytes <= FILE_BYTES_MAX) {
    const bytes = await readBlob(deps.blobs, invoice.blobKey);
    files.push({ name: `${folder}/invoice.pdf`, mediaType: 'application/pdf', bytes });
  }
  for (let page = 1; page <= Math.min(invoice.pages ?? 1, PAGES_MAX); page += 1) {
    const bytes = await getInvoicePage(deps, inside, { id: publicId('inv', invoice.id), page });
    files.push({ name: `${folder}/page-${page}.png`, mediaType: 'image/png', bytes });
  }
  return files;
}

const HEADER =
  'row,line,description,kind,model,token_class,first_day,last_day,amount,currency,match_status,billed,difference,account';

/** Each line as the invoice states it, followed by the rows of the bill that it was compared with. */
async function comparisonOf(inside: OrgDb, invoice: StoredInvoice, folder: string): Promise<EvidenceFile> {
  const lines = await listInvoiceLines(inside, invoice.id);
  const rows = await listLineMatches(inside, invoice.id);
  const table = lines.flatMap((line) => [
    cellsOf(lineCells(line, invoice)),
    ...rows
      .filter((row) => row.line === line.line)
      .map((row) =>
        cellsOf([
          ...['bill', String(row.line), '', row.category, row.model, row.tokenClass, row.day, row.day],
          ...[decimalFromPico(row.amount), invoice.tieCurrency, null, null, null, row.accountId],
        ]),
      ),
  ]);
  return {
    name: `${folder}/comparison.csv`,
    mediaType: 'text/csv; charset=utf-8',
    bytes: Buffer.from(`${[HEADER, ...table].join('\r\n')}\r\n`),
  };
}

function lineCells(line: StoredLine, invoice: StoredInvoice): (string | null)[] {
  const { matchedAmount, difference } = line;
  return [
    ...['invoice', String(line.line), line.description, line.kind, line.model, line.tokenClass],
    ...[line.periodStart ?? invoice.periodStart, line.periodEnd ?? invoice.periodEnd],
    ...[decimalFromPico(line.amount), invoice.currency, line.matchStatus],
    ...[matchedAmount === null ? null : decimalFromPico(matchedAmount)],
    ...[difference === null ? null : decimalFromPico(difference), invoice.providerAccountId],
  ];
}

const cellsOf = (cells: readonly (string | null)[]): string =>
  cells.map((cell) => (cell === null ? '' : /^-?\d+(\.\d+)?$/.test(cell) ? cell : csvText(cell))).join(',');
