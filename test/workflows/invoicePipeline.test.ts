import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestAnswer, type TestApi } from '../support/api.js';
import { uploadBill } from '../support/bills.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { INVOICES, processedInvoice, uploadInvoice } from '../support/invoices.js';

let api: TestApi;
let engine: TestEngine;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, { readsInvoices: true });
  await engine.startWorker();
});
afterAll(async () => {
  await engine?.close();
  await api?.close();
});

type Fields = Record<string, string>;

async function process(
  bytes: Buffer,
  { key = api.adminKey, fields = {} }: { key?: string; fields?: Fields } = {},
) {
  const { body } = await uploadInvoice(api, bytes, { key, fields });
  engine.dispatcher.kick();
  return processedInvoice(api, body.invoice_id, key);
}

async function change(
  method: string,
  path: string,
  body: object,
  key = api.adminKey,
): Promise<Pick<TestAnswer, 'status' | 'body'>> {
  const response = await fetch(`${api.baseUrl}${INVOICES}/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  engine.dispatcher.kick();
  return { status: response.status, body: await response.json() };
}

/** An organization whose bill of February is $30.00 of one account. */
async function withBill(amount = '30'): Promise<string> {
  const { adminKey } = await api.addOrganization();
  const days = Array.from({ length: 28 }, (_, at) => `2026-02-${String(at + 1).padStart(2, '0')}`);
  const rows = days.map((day, at) => `${day},claude-sonnet-4-5,input,1000,${at === 2 ? amount : '0'}`);
  const bill = `date,model,token_class,quantity,amount_usd\n${rows.join('\n')}\n`;
  const { body } = await uploadBill(api, bill, { provider: 'anthropic', account: 'acct' }, { key: adminKey });
  engine.dispatcher.kick();
  for (let status = ''; status !== 'succeeded'; )
    status = (await api.get(`/api/v1/billing-imports/${body.import_id}`, adminKey)).body.status;
  return adminKey;
}

describe('an uploaded invoice', () => {
  it('is read line by line, and agrees with the bill to the cent', async () => {
    const key = await withBill();
    const invoice = await process(await invoicePdf(), { key });
    expect(invoice).toMatchObject({
      status: 'reconciled',
      document_kind: 'invoice',
      number: 'TEST-0001',
      provider_account_id: 'acct',
      period_start: '2026-02-01',
      period_end: '2026-02-28',
      currency: 'USD',
      arithmetic_ok: true,
      engine: 'text',
      pages: 1,
      review_reasons: [],
      totals: { subtotal: 30, total: 30, amount_due: 30 },
      run: { status: 'succeeded', cause: 'upload', result: { status: 'reconciled', lines: 2 } },
    });
    expect(invoice.tie_out).toMatchObject({ tie: 'exact', invoiced: 30, billed: 30, difference: 0 });
    expect(invoice.lines).toHaveLength(2);
    expect(invoice.lines[0]).toMatchObject({
      line: 1,
      description: 'Claude Sonnet 4.5 input tokens',
      quantity: 1_000,
      unit_price: 0.01,
      amount: 10,
      kind: 'usage',
      model: 'claude-sonnet-4-5',
      token_class: 'input',
      corrected: null,
    });
    expect(invoice.lines[0].extracted.amount).toMatchObject({ value: 10, text: '$10.00', engine: 'text' });
    expect(invoice.lines[0].extracted.amount.box.page).toBe(1);
    expect(invoice.checks.every((check: { ok: boolean }) => check.ok)).toBe(true);
  });

  it('needs review where the bill says something else, until a person confirms it', async () => {
    const key = await withBill('29');
    const invoice = await process(await invoicePdf(), { key });
    expect(invoice).toMatchObject({ status: 'needs_review', review_reasons: ['contradiction'] });
    const { status, body } = await change('POST', `${invoice.id}/confirm`, { note: 'as sent' }, key);
    expect([status, body.status, body.confirmed.note]).toEqual([202, 'matching', 'as sent']);
    const confirmed = await processedInvoice(api, invoice.id, key);
    expect(confirmed).toMatchObject({
      status: 'reconciled',
      tie_out: { tie: 'contradicts', difference: 1 },
      run: { cause: 'rematch', status: 'succeeded' },
    });
    const again = await change('POST', `${invoice.id}/confirm`, {}, key);
    expect([again.status, again.body.code]).toEqual([409, 'not_for_review']);
  });

  it('needs review where its sums do not agree, and is compared once a line is corrected', async () => {
    const key = await withBill();
    const line = {
      description: 'Claude Sonnet 4.5 input tokens',
      quantity: '1',
      unitPrice: '$29.00',
      amount: '$29.00',
    };
    const invoice = await process(await invoicePdf({ lines: [line] }), { key });
    expect(invoice).toMatchObject({
      status: 'needs_review',
      review_reasons: ['arithmetic'],
      arithmetic_ok: false,
      tie_out: null,
    });
    const wrong = invoice.checks.filter((check: { ok: boolean }) => !check.ok);
    expect(wrong.length).toBeGreaterThan(0);
    const half = await change('PATCH', `${invoice.id}/lines/1`, { amount: 30 }, key);
    expect([half.status, half.body.status]).toEqual([200, 'needs_review']);
    const whole = await change('PATCH', `${invoice.id}/lines/1`, { unit_price: 30 }, key);
    expect([whole.status, whole.body.arithmetic_ok]).toEqual([200, true]);
    expect(whole.body.lines[0]).toMatchObject({
      amount: 30,
      unit_price: 30,
      corrected: { amount: 30, unit_price: 30 },
      extracted: { amount: { value: 29 } },
    });
    expect(await processedInvoice(api, invoice.id, key)).toMatchObject({
      status: 'reconciled',
      tie_out: { tie: 'exact' },
    });
  });

  it('in another file is a duplicate of the first, which alone counts; without the first it takes its place', async () => {
    const key = await withBill();
    const first = await process(await invoicePdf(), { key });
    const second = await process(await invoicePdf({ footer: 'Downloaded again.' }), { key });
    expect(second).toMatchObject({
      duplicate_of: first.id,
      tie_out: { tie: 'not_comparable', reason: 'duplicate' },
    });
    const deleted = await fetch(`${api.baseUrl}${INVOICES}/${first.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${key}` },
    });
    expect(deleted.status).toBe(204);
    engine.dispatcher.kick();
    const heir = await processedInvoice(api, second.id, key);
    expect(heir).toMatchObject({ duplicate_of: null, tie_out: { tie: 'exact' } });
    expect((await api.get(`${INVOICES}/${first.id}`, key)).status).toBe(404);
  });

  it('that is a receipt is never compared', async () => {
    const receipt = await process(await invoicePdf({ title: 'Receipt' }), { key: await withBill() });
    expect(receipt).toMatchObject({
      document_kind: 'receipt',
      tie_out: { tie: 'not_comparable', reason: 'receipt' },
    });
  });

  it('that cannot be read has failed for a reason, and its workflow has not', async () => {
    const { adminKey: key, orgDb } = await api.addOrganization();
    const invoice = await process(Buffer.from('%PDF-1.7\nnothing of a PDF'), { key });
    expect(invoice).toMatchObject({
      status: 'failed',
      failure_code: 'invalid_pdf',
      lines: [],
      run: { status: 'failed', error: { code: 'invalid_pdf' } },
    });
    const [run] = await orgDb.rows<{ id: string }>('select id from invoice_runs where org_id = $1', [
      orgDb.orgId,
    ]);
    await expect.poll(() => engine.orchestrator.describe(`invoice:${orgDb.orgId}:${run?.id}`)).toBe('closed');
    const retried = await change('POST', `${invoice.id}/retry`, { engines: ['text'] }, key);
    expect([retried.status, retried.body.cause, retried.body.engines]).toEqual([202, 'retry', ['text']]);
    expect(await processedInvoice(api, invoice.id, key)).toMatchObject({ status: 'failed' });
    const { body } = await api.get(`${INVOICES}/${invoice.id}/runs`, key);
    expect(body.runs.map(({ cause }: { cause: string }) => cause)).toEqual(['retry', 'upload']);
  });

  it('of which a retry fails is as it was before', async () => {
    const { adminKey: key } = await api.addOrganization();
    const invoice = await process(await invoicePdf(), { key });
    await change('POST', `${invoice.id}/retry`, { engines: ['document_ai'] }, key);
    const after = await processedInvoice(api, invoice.id, key);
    expect(after).toMatchObject({ status: 'needs_review', failure_code: null, run: { status: 'failed' } });
    expect(after.lines).toEqual(invoice.lines);
  });
});

describe('receivers of webhooks', () => {
  it('are told once of each run: what was read, and what cannot be', async () => {
    const { adminKey: key, orgDb } = await api.addOrganization();
    await orgDb.run(
      `insert into webhook_endpoints (org_id, id, url, description, status, ciphertext, secret_key_id, created_by)
       values ($1, gen_random_uuid(), 'https://receiver.example/', '', 'active', '\\x00', 'k1', 'test')`,
      [orgDb.orgId],
    );
    const invoice = await process(await invoicePdf(), { key });
    await process(Buffer.from('%PDF-1.7\nno'), { key });
    const messages = await orgDb.rows<{ type: string; body: string }>(
      'select type, body from webhook_messages where org_id = $1 order by created_at',
      [orgDb.orgId],
    );
    expect(messages.map(({ type }) => type)).toEqual(['invoice.processed', 'invoice.failed']);
    expect(JSON.parse(messages[0]?.body ?? '').data).toMatchObject({
      invoice_id: invoice.id,
      run_id: invoice.run.id,
      status: 'needs_review',
      number: 'TEST-0001',
      total: '30',
    });
  });
});
