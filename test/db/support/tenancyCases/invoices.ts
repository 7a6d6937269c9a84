import { randomUUID } from 'node:crypto';
import * as comparedInvoices from '../../../../db/invoices/comparedInvoices.js';
import * as lines from '../../../../db/invoices/invoiceLines.js';
import * as runs from '../../../../db/invoices/invoiceRuns.js';
import * as invoices from '../../../../db/invoices/invoices.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import {
  findOpenRun,
  findRun,
  insertRun,
  listRuns,
  lockRun,
  markRunStarted,
} from '../../../../db/runs/runTable.js';
import type { DraftClaim } from '../../../../domain/claims/draft.js';
import { publicId } from '../../../../domain/ids.js';
import type { InvoiceFields, Stored } from '../../../../domain/invoices/storedReading.js';
import type { TiedLine } from '../../../../domain/invoices/tieOut.js';
import { readEvidenceInvoices } from '../../../../usecases/claims/evidenceInvoices.js';
import { removeInvoice } from '../../../../usecases/invoices/deleteInvoice.js';
import { readPrepaidLedgers } from '../../../../usecases/invoices/prepaid.js';
import { isComparable, publishInvoiceFindings } from '../../../../usecases/invoices/publishFindings.js';
import { rematchInvoicesOf } from '../../../../usecases/invoices/rematchInvoices.js';
import {
  confirmInvoice,
  correctInvoiceLine,
  lockInvoiceById,
  rematchInvoice,
} from '../../../../usecases/invoices/reviewInvoice.js';
import * as stored from '../../../../usecases/invoices/storedInvoice.js';
import { tieOutInvoice } from '../../../../usecases/invoices/tieOut.js';
import { testInvoicePages } from '../../../support/blobs.js';
import { storeReadInvoice } from '../../../support/invoices.js';
import { invoiceFinding } from './explanations.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const PAGE = { limit: 10, offset: 0 };
const numberOf = (marker: string) =>
  ({ provider: 'openai', providerAccountId: marker, numberNormalised: 'A1' }) as const;

const aFile = (marker: string, id: string = randomUUID()): invoices.NewInvoice => ({
  id,
  provider: 'openai',
  sha256: id.replaceAll('-', '').repeat(2),
  blobKey: `invoices/${id}/document.pdf`,
  filename: marker,
  sizeBytes: 1,
  declaredAccount: null,
  declaredFxRate: null,
  uploadedBy: marker,
});

const aRun = (invoiceId: string): runs.NewInvoiceRun => ({
  id: randomUUID(),
  invoiceId,
  cause: 'upload',
  engines: null,
  requestedBy: 'test',
  statusBefore: 'received',
});

const contentsOf = (marker: string): invoices.InvoiceContents => ({
  pages: 1,
  engine: 'text',
  documentKind: 'invoice',
  layout: 'table',
  number: marker,
  numberNormalised: numberOf(marker).numberNormalised,
  issuer: marker,
  account: marker,
  providerAccountId: marker,
  issueDate: '2026-03-01',
  dueDate: null,
  periodStart: '2026-02-01',
  periodEnd: '2026-02-28',
  currency: 'USD',
  subtotal: 1n,
  discounts: 0n,
  tax: 0n,
  credits: 0n,
  total: 1n,
  amountPaid: null,
  amountDue: 1n,
  arithmeticOk: true,
  extractionConfidence: 1,
});
const FIELDS = { kind: 'invoice', discounts: [], taxes: [], credits: [] } as unknown as Stored<InvoiceFields>;

const aLine = (marker: string) => ({
  line: 1,
  description: marker,
  quantity: null,
  unitPrice: null,
  amount: 1n,
  tax: null,
  periodStart: null,
  periodEnd: null,
  kind: 'usage' as const,
  model: marker,
  tokenClass: null,
  extracted: { line: 1 } as never,
});

const aTie = (marker: string): TiedLine => ({
  line: 1,
  status: 'matched',
  billed: 1n,
  difference: 0n,
  observedTokens: null,
  rows: [
    {
      accountId: marker,
      day: '2026-02-03',
      category: 'usage',
      model: marker,
      tokenClass: 'input',
      amount: 1n,
      quantity: null,
    },
  ],
});

/** Invoices, their lines and runs. */
export const INVOICE_CASES: Record<string, TenancyCase> = {
  findInvoice: (db, { invoiceId }) => invoices.findInvoice(db, invoiceId),
  lockInvoice: (db, { invoiceId }) => invoices.lockInvoice(db, invoiceId),
  findInvoiceOfFile: (db, { firstInvoiceId }) =>
    invoices.findInvoiceOfFile(db, 'openai', aFile('', firstInvoiceId).sha256),
  insertInvoice: (db) => invoices.insertInvoice(db, { ...aFile('another'), sha256: 'f'.repeat(64) }),
  listInvoices: (db) => invoices.listInvoices(db, {}, PAGE),
  recordInvoiceAtWork: (db, { invoiceId }) => invoices.recordInvoiceAtWork(db, invoiceId, 'matching'),
  recordInvoiceEnd: (db, { invoiceId }) => invoices.recordInvoiceEnd(db, invoiceId, { status: 'reconciled' }),
  recordContents: (db, { invoiceId }) =>
    invoices.recordContents(db, invoiceId, { contents: contentsOf('another'), fields: FIELDS, checks: [] }),
  recordChecks: (db, { invoiceId }) => invoices.recordChecks(db, invoiceId, [], false),
  recordConfirmation: (db, { invoiceId }) =>
    invoices.recordConfirmation(db, invoiceId, { by: 'test', note: null }),
  recordTie: (db, { invoiceId }) =>
    invoices.recordTie(db, invoiceId, { tie: null, reviewReasons: ['no_bill'] }),
  listComparedInvoices: (db) =>
    comparedInvoices.listComparedInvoices(db, { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' }),
  readPrepaidLedgers: (db) => readPrepaidLedgers(db, null, '2100-01-01'),
  tieOutInvoice: async (db, of) => {
    const invoice = await invoices.findInvoice(db, of.invoiceId);
    if (!invoice || !isComparable(invoice)) return undefined;
    const read = await lines.listInvoiceLines(db, invoice.id);
    return tieOutInvoice(db, invoice, read, { book: of.prices, nowMicros: 0n });
  },
  publishInvoiceFindings: async (db, of) => {
    await invoiceFinding(db, of);
    const invoice = await invoices.findInvoice(db, of.invoiceId);
    if (invoice) await publishInvoiceFindings(db, of.invoiceRunId, invoice, null);
  },
  listPurchaseLines: (db) => comparedInvoices.listPurchaseLines(db, null),
  listMatchInvoices: (db, of) =>
    comparedInvoices.listMatchInvoices(db, [
      { provider: 'openai', accountId: of.marker, model: of.marker, day: '2026-02-03' },
    ]),
  listRematchable: (db) =>
    comparedInvoices.listRematchable(db, {
      ...{ provider: 'openai', fromDay: '2020-01-01', toDay: '2100-01-01', limit: 10 },
    }),
  rematchInvoicesOf: (db) =>
    rematchInvoicesOf(db, { provider: 'openai', fromDay: '2020-01-01', toDay: '2100-01-01' }),
  recordCitedInvoices: async (db, of) => {
    const [claim] = await db.rows<{ id: string }>('select id from claims where org_id = $1 limit 1', [
      db.orgId,
    ]);
    if (claim) await comparedInvoices.recordCitedInvoices(db, claim.id, [of.invoiceId]);
  },
  readEvidenceInvoices: async (db, of) => {
    const dispute = { evidence: { invoiceId: of.invoiceId } };
    return readEvidenceInvoices(db, { disputes: [dispute] } as unknown as DraftClaim, testInvoicePages());
  },
  listPeerInvoices: (db, of) =>
    comparedInvoices.listPeerInvoices(db, {
      ...{ id: randomUUID(), provider: 'openai', providerAccountId: of.marker, currency: 'USD' },
      ...{ fromDay: '2020-01-01', toDay: '2100-01-01' },
    }),
  listSameNumber: (db, { marker }) => invoices.listSameNumber(db, randomUUID(), numberOf(marker)),
  recordSameNumber: (db, { invoiceId }) =>
    invoices.recordSameNumber(db, invoiceId, { duplicateOf: null, replaces: null }),
  listReferring: (db, { firstInvoiceId }) => invoices.listReferring(db, firstInvoiceId),
  isInvoiceCited: (db, { firstInvoiceId }) => invoices.isInvoiceCited(db, firstInvoiceId),
  deleteInvoice: (db, { invoiceId }) => invoices.deleteInvoice(db, invoiceId),
  listInvoiceLines: (db, { invoiceId }) => lines.listInvoiceLines(db, invoiceId),
  replaceInvoiceLines: (db, { invoiceId }) => lines.replaceInvoiceLines(db, invoiceId, [aLine('another')]),
  recordCorrection: (db, { invoiceId }) =>
    lines.recordCorrection(db, invoiceId, { line: aLine('another'), corrected: {}, by: 'test' }),
  recordLineTies: (db, { invoiceId }) => lines.recordLineTies(db, invoiceId, []),
  listLineMatches: (db, { invoiceId }) => lines.listLineMatches(db, invoiceId),
  takeExtractionPlace: (db, { invoiceRunId }) =>
    db.transaction((inside) => runs.takeExtractionPlace(inside, invoiceRunId)),
  leaveExtractionPlace: (db, { invoiceRunId }) => runs.leaveExtractionPlace(db, invoiceRunId),
  findPageTurns: (db, { invoiceId }) => runs.findPageTurns(db, invoiceId),
  getInvoice: (db, { invoiceId }) => stored.getInvoice(db, publicId('inv', invoiceId)),
  getWholeInvoice: (db, { invoiceId }) => stored.getWholeInvoice(db, publicId('inv', invoiceId)),
  withRuns: async (db, { invoiceId }) => {
    const invoice = await invoices.findInvoice(db, invoiceId);
    return invoice && stored.withRuns(db, [invoice]);
  },
  lockInvoiceById: (db, { invoiceId }) => lockInvoiceById(db, publicId('inv', invoiceId)),
  rematchInvoice: (db, { firstInvoiceId }) =>
    rematchInvoice(
      db,
      { id: firstInvoiceId, status: 'needs_review' },
      { requestedBy: 'test', nowMicros: 1n },
    ),
  correctInvoiceLine: (db, { invoiceId }) =>
    correctInvoiceLine(
      db,
      { id: publicId('inv', invoiceId), line: 1, correction: { amount: 7n } },
      anAuthor('corrected'),
      1n,
    ),
  confirmInvoice: (db, { invoiceId }) =>
    confirmInvoice(db, { id: publicId('inv', invoiceId), note: null }, anAuthor('confirmed'), 1n),
  removeInvoice: (db, { invoiceId }) =>
    removeInvoice(db, publicId('inv', invoiceId), anAuthor('removed'), 1n),
  listNewestInvoiceRuns: (db, { invoiceId }) => runs.listNewestInvoiceRuns(db, [invoiceId]),
  recordRunStage: (db, { invoiceRunId }) => runs.recordRunStage(db, invoiceRunId, 'another'),
  recordExtraction: (db, { invoiceRunId }) =>
    runs.recordExtraction(db, invoiceRunId, { key: 'another', turns: {} }),
  'insertRun of invoice_run': (db, { firstInvoiceId }) =>
    insertRun(db, runs.INVOICE_RUNS, aRun(firstInvoiceId)),
  'findRun of invoice_run': (db, { invoiceRunId }) => findRun(db, runs.INVOICE_RUNS, invoiceRunId),
  'lockRun of invoice_run': (db, { invoiceRunId }) => lockRun(db, runs.INVOICE_RUNS, invoiceRunId),
  'findOpenRun of invoice_run': (db, { invoiceId }) => findOpenRun(db, runs.INVOICE_RUNS, { invoiceId }),
  'listRuns of invoice_run': (db) => listRuns(db, runs.INVOICE_RUNS, {}, PAGE),
};

export interface OwnedInvoices {
  /** An invoice that was read, with a line that is compared and a run at work; it replaces the first one. */
  invoiceId: string;
  firstInvoiceId: string;
  invoiceRunId: string;
}

export async function makeInvoices(db: OrgDb, marker: string): Promise<OwnedInvoices> {
  const firstInvoiceId = randomUUID();
  await invoices.insertInvoice(db, aFile(marker, firstInvoiceId));
  await invoices.recordContents(db, firstInvoiceId, {
    contents: contentsOf(marker),
    fields: FIELDS,
    checks: [],
  });
  const invoiceId = await storeReadInvoice(db, marker);
  await invoices.recordSameNumber(db, invoiceId, { duplicateOf: null, replaces: firstInvoiceId });
  await db.run(
    "update invoice_lines set kind = 'prepaid_purchase' where org_id = $1 and invoice_id = $2 and line_no = 2",
    [db.orgId, invoiceId],
  );
  const tie = { tie: 'exact', reason: null, currency: 'USD', compared: 1n, billed: 1n } as const;
  await invoices.recordTie(db, invoiceId, { tie, reviewReasons: [] });
  await invoices.recordInvoiceEnd(db, invoiceId, { status: 'reconciled' });
  await lines.recordLineTies(db, invoiceId, [aTie(marker)]);
  const run = { ...aRun(invoiceId), cause: 'rematch' as const };
  await insertRun(db, runs.INVOICE_RUNS, run);
  await markRunStarted(db, 'invoice_run', run.id, 'matching');
  await runs.recordExtraction(db, run.id, { key: marker, turns: { [marker]: 90 } });
  await db.transaction((inside) => runs.takeExtractionPlace(inside, run.id));
  const [claim] = await db.rows<{ id: string }>('select id from claims where org_id = $1 limit 1', [
    db.orgId,
  ]);
  if (claim)
    await db.run('insert into claim_invoices (org_id, claim_id, invoice_id) values ($1, $2, $3)', [
      db.orgId,
      claim.id,
      firstInvoiceId,
    ]);
  return { invoiceId, firstInvoiceId, invoiceRunId: run.id };
}
