import { listInvoices } from '../../../db/invoices/invoices.js';
import { shiftDay } from '../../../domain/period.js';
import { findProvider } from '../../../domain/providers.js';
import { removeInvoice } from '../../../usecases/invoices/deleteInvoice.js';
import { deleteInvoiceFiles, INVOICE_BYTES_MAX } from '../../../usecases/invoices/invoiceDeps.js';
import { getInvoicePage, openInvoiceFile } from '../../../usecases/invoices/invoiceFiles.js';
import { confirmInvoice } from '../../../usecases/invoices/reviewInvoice.js';
import { getWholeInvoice, withRuns } from '../../../usecases/invoices/storedInvoice.js';
import { type ReceiveInvoice, uploadInvoice } from '../../../usecases/invoices/uploadInvoice.js';
import { csvListOf } from '../../csv.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { type FileForm, type ReceivedFile, receiveFile } from '../../pipeline/multipart.js';
import { readUploadForm } from '../../pipeline/uploadForm.js';
import {
  INVOICE_READ,
  INVOICE_TAG,
  INVOICE_WRITE,
  INVOICES_PATH,
  invoiceParams,
  UPLOAD_PATH,
} from '../lines/wire.js';
import {
  confirmBody,
  invoiceForm,
  invoiceSchema,
  invoicesCsv,
  listInvoicesQuery,
  listInvoicesResponse,
  pageParams,
  presentInvoice,
  presentListedInvoice,
  presentUpload,
  uploadedSchema,
} from './wire.js';

/** Bytes that are handed to the blob store at once. */
const CHUNK_BYTES = 65_536;
const FILE: FileForm = {
  maxBytes: INVOICE_BYTES_MAX,
  chunkBytes: CHUNK_BYTES,
  what: 'the invoice',
  emptyCode: 'invoice_empty',
  tooLargeRemedy: 'print it to a smaller PDF',
};
const FORM_FIELDS = Object.keys(invoiceForm.shape).filter((name) => name !== 'file');
/** A document from outside: it is saved and never shown, and nothing in it runs. */
const DOWNLOAD_POLICY = "default-src 'none'; sandbox";

const routes = endpointGroup({ tag: INVOICE_TAG, access: { read: INVOICE_READ, write: INVOICE_WRITE } });

function describeUpload(received: ReceivedFile) {
  const { provider, account, fxRate } = readUploadForm(received, {
    known: FORM_FIELDS,
    issued: 'the invoice',
  });
  const { filename, sha256, sizeBytes } = received;
  return { provider, filename, sha256, sizeBytes, declaredAccount: account, declaredFxRate: fxRate };
}

routes.post(UPLOAD_PATH, {
  operationId: 'uploadInvoice',
  summary: 'Upload a provider’s invoice as a PDF',
  description:
    'The file is read behind the scenes: its lines, its sums, and how they compare with the provider’s bill. Poll status_url. The same file again gives the same invoice (200, duplicate: true).',
  streams: { 'multipart/form-data': invoiceForm },
  limit: 'invoice_run',
  idempotency: 'afterwards',
  drain: (incoming) => receiveFile(incoming, { ...FILE, store: async () => undefined }),
  responses: {
    200: { description: 'The invoice of the same file', schema: uploadedSchema },
    202: { description: 'Taken', schema: uploadedSchema, headers: { Location: 'The invoice' } },
  },
  problems: [
    'invalid_multipart',
    'invalid_body',
    'missing_parameter',
    'invoice_empty',
    'not_a_pdf',
    'payload_too_large',
    'unsupported_media_type',
  ],
  async handle({ incoming, orgDb, runLimit: limit, afterCommit, caller, requestId }, deps) {
    const receive: ReceiveInvoice = async (store) =>
      describeUpload(await receiveFile(incoming, { ...FILE, store }));
    const options = { author: { caller, requestId }, limit, nowMicros: deps.nowMicros() };
    const { invoice, existing } = await uploadInvoice(deps, orgDb, receive, options);
    const body = presentUpload(invoice, existing);
    if (existing) return { status: 200, body };
    afterCommit(() => deps.kickDispatcher());
    return { status: 202, headers: { Location: body.status_url }, body };
  },
});

routes.get(INVOICES_PATH, {
  operationId: 'listInvoices',
  summary: 'Invoices, newest first',
  description: 'Without lines, checks and fields: GET /api/v1/reconciliation/invoices/{id} has them.',
  query: listInvoicesQuery,
  csv: invoicesCsv,
  responses: { 200: { description: 'A page of invoices', schema: listInvoicesResponse } },
  async handle({ query, orgDb }) {
    const provider = query.provider === undefined ? undefined : findProvider(query.provider);
    const isNobody = query.provider !== undefined && provider === undefined;
    const filter = { status: query.status, provider, within: monthOf(query.period) };
    const found = isNobody ? [] : await listInvoices(orgDb, filter, { ...query, limit: query.limit + 1 });
    const { shown, page } = pageOf(found, query);
    const invoices = (await withRuns(orgDb, shown)).map(presentListedInvoice);
    return { status: 200, body: { invoices, ...page } };
  },
});

function monthOf(firstDay: string | undefined): { fromDay: string; toDay: string } | undefined {
  if (firstDay === undefined) return undefined;
  const inNextMonth = shiftDay(firstDay, 31);
  return { fromDay: firstDay, toDay: shiftDay(`${inNextMonth.slice(0, 7)}-01`, -1) };
}

routes.get(`${INVOICES_PATH}/{id}`, {
  operationId: 'getInvoice',
  csv: csvListOf('invoice-lines', invoiceSchema, 'lines'),
  summary: 'An invoice: its lines, its sums, and how they compare with the bill',
  params: invoiceParams,
  responses: { 200: { description: 'The invoice', schema: invoiceSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentInvoice(await getWholeInvoice(orgDb, params.id)) };
  },
});

routes.get(`${INVOICES_PATH}/{id}/file`, {
  operationId: 'getInvoiceFile',
  summary: 'The file of an invoice, as it was uploaded',
  params: invoiceParams,
  responses: { 200: { description: 'The file, to be saved', contentType: 'application/pdf' } },
  problems: ['not_found'],
  async handle({ params, orgDb }, deps) {
    const { invoice, sizeBytes, stream } = await openInvoiceFile(deps, orgDb, params.id);
    const headers = {
      'Content-Disposition': `attachment; filename="${invoice.filename.replace(/["\\]/g, '_')}"`,
      'Content-Security-Policy': DOWNLOAD_POLICY,
      'Content-Length': String(sizeBytes),
    };
    return { status: 200, headers, content: { type: 'application/pdf', data: stream } };
  },
});

routes.get(`${INVOICES_PATH}/{id}/pages/{page}.png`, {
  operationId: 'getInvoicePage',
  summary: 'An image of a page of an invoice, in which the boxes of fields lie',
  description: 'Drawn when it is first asked for, upright, at 110 pixels an inch.',
  params: pageParams,
  responses: { 200: { description: 'The page', contentType: 'image/png' } },
  problems: ['not_found', 'service_unavailable'],
  async handle({ params, orgDb }, deps) {
    const png = await getInvoicePage(deps, orgDb, params);
    return { status: 200, content: { type: 'image/png', data: png } };
  },
});

routes.post(`${INVOICES_PATH}/{id}/confirm`, {
  operationId: 'confirmInvoice',
  summary: 'Confirm that an invoice was read right and is itself wrong',
  description:
    'Of one that needs review. It is compared with the bill all the same, and its contradictions become findings.',
  params: invoiceParams,
  body: confirmBody,
  isBodyOptional: true,
  responses: { 202: { description: 'The invoice, which is compared now', schema: invoiceSchema } },
  problems: ['not_found', 'invoice_busy', 'not_for_review'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const confirmation = { id: params.id, note: body.note || null };
    await confirmInvoice(orgDb, confirmation, request, deps.nowMicros());
    afterCommit(() => deps.kickDispatcher());
    return { status: 202, body: presentInvoice(await getWholeInvoice(orgDb, params.id)) };
  },
});

routes.delete(`${INVOICES_PATH}/{id}`, {
  operationId: 'deleteInvoice',
  summary: 'Delete an invoice with its file',
  description: 'Not while a claim cites it. Invoices are kept otherwise, however old they are.',
  params: invoiceParams,
  responses: { 204: { description: 'Deleted' } },
  problems: ['not_found', 'invoice_cited'],
  async handle(request, deps) {
    const { params, orgDb, afterCommit } = request;
    const { id } = await removeInvoice(orgDb, params.id, request, deps.nowMicros());
    afterCommit(() => deps.kickDispatcher());
    afterCommit(() => deleteInvoiceFiles(deps.blobs, orgDb.orgId, id));
    return { status: 204 };
  },
});

export const invoiceEndpoints: readonly Endpoint[] = routes.endpoints;
