import type { BillingSource, NewBillingSource } from '../../../db/billing/billingSources.js';
import { BILLING_FORMATS, isBillingFormat } from '../../../domain/billing/sources.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { newUuid } from '../../../domain/ids.js';
import { findProvider } from '../../../domain/providers.js';
import {
  BILLING_PAGE_BYTES,
  recordImport,
  storeBillingUpload,
  type UploadedBill,
} from '../../../usecases/billing/billingUpload.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { type FileForm, type ReceivedFile, receiveFile } from '../../pipeline/multipart.js';
import { readUploadForm } from '../../pipeline/uploadForm.js';
import { getRunEndpoint, listRunsEndpoint, type RunResource } from '../../runs/runEndpoints.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import {
  IMPORTS_PATH,
  importForm,
  importSchema,
  listImportsQuery,
  listImportsResponse,
  presentImport,
} from './wire.js';

/** Largest uploaded bill, bytes. */
export const IMPORT_BYTES_MAX = 1_610_612_736;
/** Uploads that one process accepts at once: each holds a database connection until it ends. */
export const UPLOADS_MAX = 2;
const FILE: FileForm = {
  maxBytes: IMPORT_BYTES_MAX,
  chunkBytes: BILLING_PAGE_BYTES,
  what: 'the bill',
  emptyCode: 'invalid_billing_file',
  tooLargeRemedy: 'send it in parts, for instance by month',
};
const BUSY_RETRY_SECONDS = 5;
const FORM_FIELDS = Object.keys(importForm.shape).filter((name) => name !== 'file');

let uploads = 0;

const routes = endpointGroup({ tag: 'Billing', access: { scope: 'billing:write', workspace: 'refused' } });

const createImport = routes.post(IMPORTS_PATH, {
  operationId: 'createBillingImport',
  summary: 'Import a provider’s bill from a file',
  description:
    'A provider’s bill in the provider’s format: saved cost and usage pages of OpenAI, Anthropic, AWS and Azure, AWS Cost and Usage Reports, Azure cost details, Google’s billing export, xAI invoices, Mistral usage, FOCUS, or the plain CSV; CSV, JSON lines, Parquet or JSON, also packed with gzip. The content shows the format. The file is read in the background, as a whole or not at all. The same file again gives the same import.',
  streams: { 'multipart/form-data': importForm },
  limit: 'billing_import',
  idempotency: 'afterwards',
  drain: (incoming) => receiveFile(incoming, { ...FILE, store: async () => undefined }),
  responses: acceptedResponse(importSchema),
  problems: [
    'invalid_multipart',
    'invalid_body',
    'missing_parameter',
    'invalid_billing_file',
    'account_required',
    'payload_too_large',
    'unsupported_media_type',
  ],
  async handle({ incoming, orgDb, runLimit, afterCommit, caller, requestId }, deps) {
    const receive = async (store: (chunk: Buffer) => Promise<void>) =>
      describeUpload(await receiveFile(incoming, { ...FILE, store }));
    const record = recordImport({ caller, requestId });
    const id = newUuid(deps.nowMicros());
    const { source, existing } = await inUploadPlace(() =>
      storeBillingUpload(orgDb, id, receive, runLimit, record),
    );
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentImport(source), existing);
  },
});

/** Runs `work` in a free upload slot. Error: service_unavailable when all UPLOADS_MAX slots are taken. */
async function inUploadPlace<T>(work: () => Promise<T>): Promise<T> {
  if (uploads >= UPLOADS_MAX)
    throw new DomainError('service_unavailable', 'other bills are being uploaded; try again in a moment', {
      retryAfterSeconds: BUSY_RETRY_SECONDS,
    });
  uploads += 1;
  try {
    return await work();
  } finally {
    uploads -= 1;
  }
}

/** Validates the form's fields. They can follow the file, so this runs once the form is read. */
function describeUpload(received: ReceivedFile): UploadedBill {
  const { provider, account, fxRate } = readUploadForm(received, { known: FORM_FIELDS, issued: 'the bill' });
  const { format } = received.fields;
  if (format !== undefined && format !== '' && !isBillingFormat(format))
    throw invalidField('body', 'format', `must be one of ${BILLING_FORMATS.join(', ')}`, 'invalid_body');
  return {
    provider,
    filename: received.filename,
    declaredFormat: format !== undefined && isBillingFormat(format) ? format : null,
    declaredAccount: account,
    declaredFxRate: fxRate,
    sha256: received.sha256,
    sizeBytes: received.sizeBytes,
  };
}

const RESOURCE: RunResource<BillingSource, NewBillingSource> = {
  runs: runTableOf('billing_import'),
  tag: 'Billing',
  read: { scope: 'billing:read', workspace: 'refused' },
  write: { scope: 'billing:write', workspace: 'refused' },
  path: IMPORTS_PATH,
  schema: importSchema,
  present: (imports) => imports.map(presentImport),
};

export const billingEndpoints: readonly Endpoint[] = [
  createImport,
  listRunsEndpoint(RESOURCE, {
    operationId: 'listBillingImports',
    summary: 'Imports of bills, newest first',
    described: 'A page of imports',
    field: 'imports',
    query: listImportsQuery,
    response: listImportsResponse,
    filter({ provider }) {
      if (provider === undefined) return {};
      const known = findProvider(provider);
      return known ? { provider: known } : null;
    },
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getBillingImport',
    summary: 'One import and how far it is',
    described: 'The import',
  }),
];
