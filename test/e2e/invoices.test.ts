import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unpack, verifyPack } from '../../bin/evidence/verifyPack.js';
import type { TestApi } from '../support/api.js';
import { importBill } from '../support/bills.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { INVOICES, processedInvoice, uploadInvoice } from '../support/invoices.js';
import { startWorkingApi } from '../support/workingApi.js';

/** One month at Anthropic: its bill, its invoice, and what becomes of an invoice that says something else. */

const ACCOUNT = 'org-acme';
const MODEL = 'claude-sonnet-4-5';
const FEBRUARY = Array.from({ length: 28 }, (_, at) => `2026-02-${String(at + 1).padStart(2, '0')}`);

/** 84 million input tokens at $3 and 14 million output tokens at $15 a million: $252.00 and $210.00. */
const BILL = [
  'date,model,token_class,quantity,amount_usd',
  ...FEBRUARY.flatMap((day) => [`${day},${MODEL},input,3000000,9.00`, `${day},${MODEL},output,500000,7.50`]),
].join('\n');

const INPUT = {
  description: 'Claude Sonnet 4.5 Usage - Input Tokens',
  quantity: '84,000,000',
  unitPrice: '$0.000003',
  amount: '$252.00',
};
const OUTPUT = {
  description: 'Claude Sonnet 4.5 Usage - Output Tokens',
  quantity: '14,000,000',
  unitPrice: '$0.000015',
  amount: '$210.00',
};
const RIGHT = { number: 'ACME-0001', lines: [INPUT, OUTPUT], total: '$462.00' };
const LINE_TWICE = { number: 'ACME-0002', lines: [INPUT, OUTPUT, OUTPUT], total: '$672.00' };

let api: TestApi;
beforeAll(async () => {
  api = await startWorkingApi({ readsInvoices: true });
  const { status } = await importBill(api, BILL, { provider: 'anthropic', account: ACCOUNT });
  if (status !== 'succeeded') throw new Error('the bill was not read');
}, 120_000);
afterAll(() => api?.close());

async function upload(printed: Parameters<typeof invoicePdf>[0], key?: string) {
  const { status, body } = await uploadInvoice(api, await invoicePdf(printed), {
    fields: { account: ACCOUNT },
    ...(key ? { key } : {}),
  });
  expect(status).toBe(202);
  return processedInvoice(api, body.invoice_id, key);
}

const findingsOf = async (invoice: { id: string }) =>
  (await api.get(`/api/v1/financial/findings?invoice_id=${invoice.id}`)).body.findings;

describe('an invoice that says what the bill says', () => {
  it('ties out to the cent, line by line, and aligns the gap explorer', async () => {
    const invoice = await upload(RIGHT);
    expect(invoice).toMatchObject({
      status: 'reconciled',
      period_start: '2026-02-01',
      period_end: '2026-02-28',
      totals: { total: 462 },
      tie_out: { tie: 'exact', invoiced: 462, billed: 462, difference: 0 },
    });
    expect(
      invoice.lines.map((line: { match_status: string; amount: number }) => [line.match_status, line.amount]),
    ).toEqual([
      ['matched', 252],
      ['matched', 210],
    ]);
    expect(await findingsOf(invoice)).toEqual([]);
    const { body } = await api.get('/api/v1/reconciliation/statement?period=2026-02');
    expect(body.invoices).toMatchObject([
      { invoice_id: invoice.id, tie: 'exact', invoiced_usage: 462, difference: 0 },
    ]);
  });
});

describe('a second download and a receipt', () => {
  it('never count twice', async () => {
    const copy = await upload({ ...RIGHT, footer: 'Downloaded again.' });
    const receipt = await upload({ ...RIGHT, title: 'Receipt', number: 'ACME-0001-R' });
    expect([copy.tie_out.reason, receipt.tie_out.reason]).toEqual(['duplicate', 'receipt']);
    const { body } = await api.get('/api/v1/reconciliation/statement?period=2026-02');
    expect(body.invoices).toHaveLength(1);
  });
});

describe('an invoice with a line twice', () => {
  it('waits for a person, becomes a finding once confirmed, and its page is in the claim’s evidence', async () => {
    const { adminKey: key } = await api.addOrganization();
    const imported = await importBill(api, BILL, { provider: 'anthropic', account: ACCOUNT }, key);
    expect(imported.status).toBe('succeeded');
    const read = await upload(LINE_TWICE, key);
    expect(read).toMatchObject({
      status: 'needs_review',
      review_reasons: ['contradiction'],
      tie_out: { tie: 'contradicts', invoiced: 672, billed: 462, difference: 210 },
    });
    expect(read.lines.map((line: { match_status: string }) => line.match_status)).toEqual([
      'matched',
      'matched',
      'unmatched',
    ]);
    const findings = async () =>
      (await api.get(`/api/v1/financial/findings?invoice_id=${read.id}`, key)).body.findings;
    expect(await findings()).toEqual([]);

    const confirmed = await api.post(
      `${INVOICES}/${read.id}/confirm`,
      { note: 'the line is there twice' },
      key,
    );
    expect(confirmed.status).toBe(202);
    expect((await processedInvoice(api, read.id, key)).status).toBe('reconciled');
    const [finding] = await findings();
    expect(finding).toMatchObject({
      ...{ kind: 'duplicate_charge', impact_usd: 210, confidence: 'HIGH', in_review_queue: true },
      reason:
        'Line 3 repeats line 2 of the invoice, and the provider’s own bill has the charge once. The bill is $210.00 too much on 2026-02-28.',
    });

    const { body: dispute } = await api.post(`/api/v1/financial/review-queue/${finding.id}/confirm`, {}, key);
    const { body: claim } = await api.post('/api/v1/claims', { dispute_ids: [dispute.id] }, key);
    expect(claim.total_recoverable_cents).toBe(21_000);
    expect(claim.evidence.invoice_refs).toContainEqual(
      expect.objectContaining({ source_id: read.id, invoice_id: 'ACME-0002' }),
    );
    const answer = await fetch(`${api.baseUrl}/api/v1/claims/${claim.id}/evidence.tar.gz`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const pack = unpack('pack', Buffer.from(await answer.arrayBuffer()));
    expect(verifyPack(pack).differences).toEqual([]);
    const folder = `invoices/${read.id}`;
    const names = [...pack.keys()].filter((name) => name.startsWith(folder));
    expect(names.sort()).toEqual([
      `${folder}/comparison.csv`,
      `${folder}/invoice.pdf`,
      `${folder}/page-1.png`,
    ]);
    const cited = await fetch(`${api.baseUrl}${INVOICES}/${read.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${key}` },
    });
    expect(cited.status).toBe(409);
  });
});

describe('an invoice before its bill', () => {
  it('is compared by itself once the bill is there', async () => {
    const { adminKey: key } = await api.addOrganization();
    const early = await upload(RIGHT, key);
    expect(early).toMatchObject({ status: 'needs_review', review_reasons: ['no_bill'] });
    await importBill(api, BILL, { provider: 'anthropic', account: ACCOUNT }, key);
    const settled = await pollUntil(async () => (await api.get(`${INVOICES}/${early.id}`, key)).body);
    expect(settled.tie_out).toMatchObject({ tie: 'exact', billed: 462 });
  });
});

async function pollUntil<T extends { status: string }>(read: () => Promise<T>): Promise<T> {
  for (let polls = 0; polls < 400; polls += 1) {
    const found = await read();
    if (found.status === 'reconciled') return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the invoice was not compared again');
}
