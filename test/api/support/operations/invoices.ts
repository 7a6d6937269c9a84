import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { storeReadInvoice, uploadInvoice } from '../../../support/invoices.js';
import { markerOf, type Operation, type OperationsPlace, randomName, unknownId } from './operation.js';

const READ = { scope: 'billing:read', workspace: 'refused' } as const;
const WRITE = { scope: 'billing:write', workspace: 'refused' } as const;
const INVOICES = '/api/v1/reconciliation/invoices';

const fileOf = (owner: TestOrganization) => `%PDF-1.7\n% ${markerOf(owner)} ${randomName()}\n`;

function multipart(owner: TestOrganization) {
  const boundary = `----${randomName()}`;
  const part = (head: string, value: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const parts = [
    part('name="provider"', 'openai'),
    part('name="account"', markerOf(owner)),
    part(`name="file"; filename="${markerOf(owner)}.pdf"`, fileOf(owner)),
  ];
  return { type: `multipart/form-data; boundary=${boundary}`, data: `${parts.join('')}--${boundary}--\r\n` };
}

/** An uploaded invoice with its first run. */
async function upload(
  { api }: OperationsPlace,
  owner: TestOrganization,
): Promise<{ id: string; runId: string }> {
  const fields = { account: markerOf(owner) };
  const options = { provider: 'openai', filename: `${markerOf(owner)}.pdf`, fields, key: owner.adminKey };
  const { status, body } = await uploadInvoice(api, Buffer.from(fileOf(owner)), options);
  if (status !== 202) throw new Error(`the upload answered ${status}: ${JSON.stringify(body)}`);
  const invoice = await api.get(`${INVOICES}/${body.invoice_id}`, owner.adminKey);
  return { id: body.invoice_id, runId: invoice.body.run.id };
}

/** An invoice that was read. */
const makeInvoice = async (owner: TestOrganization): Promise<string> =>
  publicId('inv', await storeReadInvoice(owner.orgDb, markerOf(owner)));

/** A request about an invoice that was read. */
const ofInvoice = (
  method: Operation['method'],
  path: string,
  access: Operation['access'],
  status: number,
  more: { params?: Record<string, string>; json?: object } = {},
): Operation => ({
  method,
  path: `${INVOICES}/{id}${path}`,
  access,
  status,
  ids: { id: unknownId('inv') },
  request: async (_place, owner) => ({ ...more, params: { ...more.params, id: await makeInvoice(owner) } }),
});

/** Invoices, their files and their runs. */
export const INVOICE_OPERATIONS: Record<string, Operation> = {
  getPrepaidLedger: {
    method: 'GET',
    path: '/api/v1/reconciliation/prepaid',
    access: READ,
    status: 200,
    request: async (_place, owner) => {
      await makeInvoice(owner);
      return {};
    },
  },
  uploadInvoice: {
    method: 'POST',
    path: '/api/v1/reconciliation/invoice',
    access: WRITE,
    status: 202,
    request: async (_place, owner) => ({ body: multipart(owner) }),
  },
  listInvoices: {
    method: 'GET',
    path: INVOICES,
    access: READ,
    status: 200,
    request: async (_place, owner) => {
      await makeInvoice(owner);
      return {};
    },
  },
  getInvoice: ofInvoice('GET', '', READ, 200),
  getInvoiceFile: ofInvoice('GET', '/file', READ, 200),
  getInvoicePage: ofInvoice('GET', '/pages/{page}.png', READ, 200, { params: { page: '1' } }),
  correctInvoiceLine: ofInvoice('PATCH', '/lines/{line}', WRITE, 200, {
    params: { line: '1' },
    json: { amount: 11 },
  }),
  confirmInvoice: ofInvoice('POST', '/confirm', WRITE, 202, { json: { note: 'as the provider sent it' } }),
  deleteInvoice: ofInvoice('DELETE', '', WRITE, 204),
  retryInvoice: ofInvoice('POST', '/retry', WRITE, 202, { json: { engines: ['text'] } }),
  listInvoiceRuns: {
    method: 'GET',
    path: `${INVOICES}/{id}/runs`,
    access: READ,
    status: 200,
    ids: { id: unknownId('inv') },
    request: async (place, owner) => ({ params: { id: (await upload(place, owner)).id } }),
  },
  getInvoiceRun: {
    method: 'GET',
    path: `${INVOICES}/{id}/runs/{run_id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('inv'), run_id: unknownId('run') },
    request: async (place, owner) => {
      const { id, runId } = await upload(place, owner);
      return { params: { id, run_id: runId } };
    },
  },
};
