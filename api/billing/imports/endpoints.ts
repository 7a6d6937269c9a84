import type { BillingSource, NewBillingSource } from '../../../db/billing/billingSources.js';
import { parseFxRate } from '../../../domain/billing/pageRow.js';
import { BILLING_FORMATS, isBillingFormat } from '../../../domain/billing/sources.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { newUuid } from '../../../domain/ids.js';
import { findProvider, PROVIDERS } from '../../../domain/providers.js';
import {
  BILLING_PAGE_BYTES,
  recordImport,
  storeBillingUpload,
  type UploadedBill,
} from '../../../usecases/billing/billingUpload.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { type ReceivedFile, receiveFile } from '../../pipeline/multipart.js';
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

/** Largest bill. */
export const IMPORT_BYTES_MAX = 1_610_612_736;
/** Uploads of this process at once: each holds a connection for as long as it takes. */
export const UPLOADS_MAX = 2;
const FILE_LIMITS = { maxBytes: IMPORT_BYTES_MAX, chunkBytes: BILLING_PAGE_BYTES };
const BUSY_RETRY_SECONDS = 5;
const ACCOUNT_CHARS_MAX = 256;
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
  drain: (incoming) => receiveFile(incoming, { ...FILE_LIMITS, store: async () => undefined }),
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
      describeUpload(await receiveFile(incoming, { ...FILE_LIMITS, store }));
    const record = recordImport({ caller, requestId });
    const id = newUuid(deps.nowMicros());
    const { source, existing } = await inUploadPlace(() =>
      storeBillingUpload(orgDb, id, receive, runLimit, record),
    );
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentImport(source), existing);
  },
});

/** Error service_unavailable while as many bills are being uploaded as this process takes. */
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

/** Checks the form's fields, which may have come after the file. */
function describeUpload(received: ReceivedFile): UploadedBill {
  const unknown = Object.keys(received.fields).find((name) => !FORM_FIELDS.includes(name));
  if (unknown !== undefined)
    throw invalidField('body', unknown, 'is not known here; leave it out', 'invalid_body');
  const { provider, format, account, fx_rate: fxRate } = received.fields;
  const known = provider === undefined ? undefined : findProvider(provider);
  if (provider === undefined)
    throw invalidField('body', 'provider', 'is required: who issued the bill', 'missing_parameter');
  if (!known)
    throw invalidField('body', 'provider', `must be one of ${PROVIDERS.join(', ')}`, 'invalid_body');
  if (format !== undefined && format !== '' && !isBillingFormat(format)) {
    throw invalidField('body', 'format', `must be one of ${BILLING_FORMATS.join(', ')}`, 'invalid_body');
  }
  if (account !== undefined && !/^[\x21-\x7e][\x20-\x7e]*$/.test(account) && account !== '') {
    throw invalidField('body', 'account', 'must be printable text', 'invalid_body');
  }
  if ((account ?? '').length > ACCOUNT_CHARS_MAX)
    throw invalidField(
      'body',
      'account',
      `must have at most ${ACCOUNT_CHARS_MAX} characters`,
      'invalid_body',
    );
  if (fxRate !== undefined && fxRate !== '' && !parseFxRate(fxRate)) {
    throw invalidField(
      'body',
      'fx_rate',
      'must be a decimal number above 0: US dollars for one unit of the currency',
      'invalid_body',
    );
  }
  return {
    provider: known,
    filename: received.filename,
    declaredFormat: format !== undefined && isBillingFormat(format) ? format : null,
    declaredAccount: account?.trim() || null,
    declaredFxRate: fxRate || null,
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
