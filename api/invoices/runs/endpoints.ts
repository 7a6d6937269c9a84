import type { InvoiceRun, NewInvoiceRun } from '../../../db/invoices/invoiceRuns.js';
import { publicId } from '../../../domain/ids.js';
import { noteRetry } from '../../../usecases/invoices/reviewInvoice.js';
import { getInvoice } from '../../../usecases/invoices/storedInvoice.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import type { Endpoint } from '../../endpoint.js';
import {
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import { INVOICE_READ, INVOICE_TAG, INVOICE_WRITE, INVOICES_PATH, invoiceParams } from '../lines/wire.js';
import {
  INVOICE_RUNS_PATH,
  invoiceRunSchema,
  listInvoiceRunsQuery,
  listInvoiceRunsResponse,
  presentInvoiceRun,
  retryBody,
} from './wire.js';

const RESOURCE: RunResource<InvoiceRun, NewInvoiceRun> = {
  runs: runTableOf('invoice_run'),
  tag: INVOICE_TAG,
  read: INVOICE_READ,
  write: INVOICE_WRITE,
  path: INVOICE_RUNS_PATH,
  schema: invoiceRunSchema,
  present: (runs) => runs.map(presentInvoiceRun),
  async findParent(orgDb, id) {
    return { invoiceId: (await getInvoice(orgDb, id)).id };
  },
};

export const invoiceRunEndpoints: readonly Endpoint[] = [
  startRunEndpoint(RESOURCE, {
    operationId: 'retryInvoice',
    path: `${INVOICES_PATH}/{id}/retry`,
    summary: 'Read an invoice again, possibly by other engines',
    description:
      'What is read replaces what was read before, with its corrections and its confirmation. Where it cannot be read, the invoice stays as it was. While a run of the invoice is open, it is the answer (existing: true).',
    params: invoiceParams,
    body: retryBody,
    isBodyOptional: true,
    problems: ['not_found'],
    async prepare({ params, body, caller, orgDb }) {
      const { id: invoiceId, status } = await getInvoice(orgDb, params.id);
      const wanted = {
        invoiceId,
        cause: 'retry' as const,
        engines: body.engines ?? null,
        requestedBy: caller.keyId,
        statusBefore: status,
      };
      return {
        wanted,
        open: { invoiceId },
        opened: (inside) => noteRetry(inside, invoiceId),
        audit: ({ id, engines }) => ({
          action: 'invoice.retried',
          subject: { type: 'invoice', id: publicId('inv', invoiceId) },
          details: { run: publicId('run', id), engines: engines ?? undefined },
        }),
      };
    },
  }),
  listRunsEndpoint(RESOURCE, {
    operationId: 'listInvoiceRuns',
    summary: 'Runs of an invoice, newest first',
    described: 'A page of runs',
    query: listInvoiceRunsQuery,
    response: listInvoiceRunsResponse,
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getInvoiceRun',
    summary: 'One run of an invoice, and how far it is',
    described: 'The run',
  }),
];
