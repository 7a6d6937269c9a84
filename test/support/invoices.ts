import { randomBytes } from 'node:crypto';
import { replaceInvoiceLines } from '../../db/invoices/invoiceLines.js';
import {
  type InvoiceContents,
  insertInvoice,
  recordContents,
  recordInvoiceEnd,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { newUuid } from '../../domain/ids.js';
import { effectiveLine } from '../../domain/invoices/correctLine.js';
import type { InvoiceLineReading, InvoiceReading } from '../../domain/invoices/invoiceReading.js';
import { toStored } from '../../domain/invoices/storedReading.js';
import { PICO_PER_USD } from '../../domain/money.js';
import { invoiceFolder } from '../../usecases/invoices/invoiceDeps.js';
import { chunksOf } from '../../usecases/invoices/invoiceFiles.js';
import type { TestAnswer, TestApi } from './api.js';
import { testBlobs } from './blobs.js';
import { invoicePdf } from './invoicePdf.js';

export const UPLOAD = '/api/v1/reconciliation/invoice';
export const INVOICES = '/api/v1/reconciliation/invoices';

export interface Upload {
  provider?: string;
  filename?: string;
  fields?: Record<string, string>;
  key?: string;
  headers?: Record<string, string>;
}

/** Uploads bytes as an invoice. */
export async function uploadInvoice(
  api: Pick<TestApi, 'baseUrl' | 'adminKey'>,
  bytes: Uint8Array,
  { provider = 'anthropic', filename = 'invoice.pdf', fields = {}, key, headers = {} }: Upload = {},
): Promise<TestAnswer> {
  const form = new FormData();
  form.set('provider', provider);
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new Blob([new Uint8Array(bytes)], { type: 'application/pdf' }), filename);
  const response = await fetch(api.baseUrl + UPLOAD, {
    method: 'POST',
    headers: { authorization: `Bearer ${key ?? api.adminKey}`, ...headers },
    body: form,
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const POLL_MS = 50;
const POLLS_MAX = 2_400;
const ENDED = ['reconciled', 'needs_review', 'failed'];

/** The invoice once no run of it is open. */
export async function processedInvoice(
  api: Pick<TestApi, 'get'>,
  id: string,
  key?: string,
): Promise<TestAnswer['body']> {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const { body } = await api.get(`${INVOICES}/${id}`, key);
    if (ENDED.includes(body.status)) return body;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`the invoice ${id} did not end`);
}

const field = <T>(value: T) => ({
  value,
  text: String(value),
  box: null,
  confidence: 1,
  engine: 'text' as const,
});

/** A reading of an invoice of $30.00 whose texts hold the marker. */
export function aReading(marker: string): InvoiceReading {
  const line = (number: number, amount: bigint): InvoiceLineReading => ({
    line: number,
    description: field(`${marker} ${number}`),
    quantity: field(1_000n * PICO_PER_USD),
    unitPrice: field(amount / 1_000n),
    amount: field(amount),
    taxRate: null,
    periodStart: null,
    periodEnd: null,
    kind: 'usage',
    model: null,
    tokenClass: null,
  });
  const total = field(30n * PICO_PER_USD);
  return {
    kind: 'invoice',
    layout: 'table',
    number: field(marker),
    issuer: field(marker),
    account: null,
    issueDate: field('2026-03-01'),
    dueDate: null,
    periodStart: field('2026-02-01'),
    periodEnd: field('2026-02-28'),
    currency: field('USD'),
    lines: [line(1, 10n * PICO_PER_USD), line(2, 20n * PICO_PER_USD)],
    subtotal: total,
    discounts: [],
    taxes: [],
    credits: [],
    total,
    amountPaid: null,
    amountDue: total,
    replaces: null,
  };
}

/** An invoice that was read and waits for a person, without a run; its uuid. */
export async function storeReadInvoice(orgDb: OrgDb, marker: string): Promise<string> {
  const id = newUuid(BigInt(Date.now()) * 1_000n);
  const blobKey = `${invoiceFolder(orgDb.orgId, id)}document.pdf`;
  const bytes = await invoicePdf({ number: marker });
  await testBlobs().put(blobKey, chunksOf(bytes), { bytesMax: bytes.length });
  await insertInvoice(orgDb, {
    id,
    provider: 'openai',
    sha256: randomBytes(32).toString('hex'),
    blobKey,
    filename: marker,
    sizeBytes: bytes.length,
    declaredAccount: marker,
    declaredFxRate: null,
    uploadedBy: marker,
  });
  const { lines, ...fields } = aReading(marker);
  const contents: InvoiceContents = {
    pages: 1,
    engine: 'text',
    documentKind: 'invoice',
    layout: 'table',
    number: marker,
    numberNormalised: marker.toUpperCase(),
    issuer: marker,
    account: null,
    providerAccountId: marker,
    issueDate: '2026-03-01',
    dueDate: null,
    periodStart: '2026-02-01',
    periodEnd: '2026-02-28',
    currency: 'USD',
    subtotal: fields.subtotal?.value ?? null,
    discounts: 0n,
    tax: 0n,
    credits: 0n,
    total: fields.total?.value ?? null,
    amountPaid: null,
    amountDue: fields.amountDue?.value ?? null,
    arithmeticOk: true,
    extractionConfidence: 1,
  };
  await recordContents(orgDb, id, { contents, fields: toStored(fields), checks: [] });
  await replaceInvoiceLines(
    orgDb,
    id,
    lines.map((line) => ({ ...effectiveLine(line, null), extracted: toStored(line) })),
  );
  await recordInvoiceEnd(orgDb, id, { status: 'needs_review' });
  return id;
}
