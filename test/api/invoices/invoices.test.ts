import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { removeOrphanedFiles } from '../../../usecases/invoices/removeOrphanedFiles.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { testBlobs } from '../../support/blobs.js';
import { invoicePdf } from '../../support/invoicePdf.js';
import { INVOICES, storeReadInvoice, UPLOAD, uploadInvoice } from '../../support/invoices.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

const pdf = (text: string) => Buffer.from(`%PDF-1.7\n% ${text}\n`);

async function keysOf(orgId: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of testBlobs().stream(`invoices/${orgId}/`)) keys.push(key);
  return keys;
}

async function send(method: string, path: string, body?: object, key = api.adminKey) {
  const response = await fetch(api.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

describe('an upload', () => {
  it('is taken with its first run and waits for it, though no Temporal is there', async () => {
    const { status, headers, body } = await uploadInvoice(api, pdf('one'), {
      fields: { account: 'acct', fx_rate: '1.08' },
    });
    expect(status).toBe(202);
    expect(headers.get('location')).toBe(body.status_url);
    expect(Object.keys(body).sort()).toEqual([
      'created_at',
      'filename',
      'invoice_id',
      'provider',
      'sha256',
      'size_bytes',
      'status',
      'status_url',
    ]);
    expect(body).toMatchObject({ status: 'received', provider: 'anthropic', filename: 'invoice.pdf' });
    const invoice = (await api.get(body.status_url)).body;
    expect(invoice).toMatchObject({
      status: 'received',
      provider_account_id: 'acct',
      fx_rate: 1.08,
      run: { status: 'queued', cause: 'upload' },
    });
    expect((await api.get(invoice.run.status_url)).body.run_id).toBe(invoice.run.id);
  });

  it('of the same file, twenty at once and later, is one invoice with one file', async () => {
    const { adminKey: key, orgId } = await api.addOrganization();
    const bytes = pdf('the same');
    const answers = await Promise.all(Array.from({ length: 20 }, () => uploadInvoice(api, bytes, { key })));
    const taken = answers.filter(({ status }) => status === 202);
    expect(taken).toHaveLength(1);
    const rest = answers.filter(({ status }) => status === 200);
    expect(rest).toHaveLength(19);
    const { body } = taken[0] as (typeof taken)[number];
    for (const other of rest) expect(other.body).toEqual({ ...body, duplicate: true });
    expect((await uploadInvoice(api, bytes, { key })).body).toEqual({ ...body, duplicate: true });
    expect((await api.get(INVOICES, key)).body.count).toBe(1);
    expect(await keysOf(orgId)).toHaveLength(1);
    const other = await uploadInvoice(api, bytes, { key, provider: 'openai' });
    expect([other.status, other.body.invoice_id === body.invoice_id]).toEqual([202, false]);
  });

  it('is refused with the code of what is wrong, and leaves nothing', async () => {
    const { adminKey: key, orgId } = await api.addOrganization();
    const refusal = async (bytes: Buffer, options = {}) => {
      const { status, body } = await uploadInvoice(api, bytes, { key, ...options });
      return `${status} ${body.code}`;
    };
    expect(await refusal(Buffer.alloc(0))).toBe('400 invoice_empty');
    expect(await refusal(Buffer.from('text'))).toBe('415 not_a_pdf');
    expect(await refusal(Buffer.from(`${' '.repeat(1_024)}%PDF-1.7`))).toBe('415 not_a_pdf');
    expect(await refusal(pdf('x'), { provider: 'nobody' })).toBe('400 invalid_body');
    expect(await refusal(pdf('x'), { fields: { fx_rate: '-1' } })).toBe('400 invalid_body');
    expect(await refusal(pdf('x'), { fields: { format: 'pdf' } })).toBe('400 invalid_body');
    expect(await refusal(Buffer.concat([pdf('x'), Buffer.alloc(20_971_520)]))).toBe('413 payload_too_large');
    const json = await send('POST', UPLOAD, {}, key);
    expect([json.status, json.body.code]).toEqual([415, 'unsupported_media_type']);
    const form = new FormData();
    form.set('provider', 'openai');
    const fileless = await fetch(api.baseUrl + UPLOAD, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    expect([fileless.status, ((await fileless.json()) as { code: string }).code]).toEqual([
      400,
      'missing_parameter',
    ]);
    expect((await api.get(INVOICES, key)).body.invoices).toEqual([]);
    expect(await keysOf(orgId)).toEqual([]);
  });

  it('with an Idempotency-Key is answered again as it was', async () => {
    const headers = { 'idempotency-key': 'upload-1' };
    const first = await uploadInvoice(api, pdf('repeated'), { headers });
    const again = await uploadInvoice(api, pdf('repeated'), { headers });
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect((await uploadInvoice(api, pdf('another'), { headers })).body.code).toBe('idempotency_key_reused');
  });
});

describe('invoices', () => {
  it('are listed by status, provider and month of service', async () => {
    const { adminKey: key, orgDb } = await api.addOrganization();
    const id = publicId('inv', await storeReadInvoice(orgDb, 'acct'));
    const waiting = (await uploadInvoice(api, pdf('waiting'), { key })).body.invoice_id;
    const ids = async (query: string) =>
      (await api.get(`${INVOICES}?${query}`, key)).body.invoices.map((one: { id: string }) => one.id);
    expect(await ids('')).toEqual([waiting, id]);
    expect(await ids('status=needs_review')).toEqual([id]);
    expect(await ids('provider=openai')).toEqual([id]);
    expect(await ids('provider=nobody')).toEqual([]);
    expect(await ids('period=2026-02')).toEqual([id]);
    expect(await ids('period=2026-03')).toEqual([]);
    expect((await api.get(`${INVOICES}?limit=1`, key)).body).toMatchObject({ count: 1, has_more: true });
  });

  it('give their file to be saved, and their pages as images that are drawn once', async () => {
    const { adminKey: key, orgId } = await api.addOrganization();
    const bytes = await invoicePdf();
    const { body } = await uploadInvoice(api, bytes, { key, filename: 'a"b.pdf' });
    const file = await fetch(`${api.baseUrl}${body.status_url}/file`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true);
    expect(file.headers.get('content-type')).toBe('application/pdf');
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; filename="[^"]+"$/);
    expect(file.headers.get('content-security-policy')).toContain('sandbox');
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
    const page = async (n: number) => {
      const answer = await fetch(`${api.baseUrl}${body.status_url}/pages/${n}.png`, {
        headers: { authorization: `Bearer ${key}` },
      });
      return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
    };
    const first = await page(1);
    expect(first.bytes.subarray(1, 4).toString()).toBe('PNG');
    expect((await keysOf(orgId)).some((name) => name.endsWith('/page-1-0.png'))).toBe(true);
    expect((await page(1)).bytes.equals(first.bytes)).toBe(true);
    expect((await page(2)).status).toBe(404);
  });

  it('that are being read are neither corrected nor confirmed', async () => {
    const { adminKey: key } = await api.addOrganization();
    const { body } = await uploadInvoice(api, pdf('busy'), { key });
    const corrected = await send('PATCH', `${body.status_url}/lines/1`, { amount: 1 }, key);
    const confirmed = await send('POST', `${body.status_url}/confirm`, {}, key);
    expect([corrected.body.code, confirmed.body.code]).toEqual(['invoice_busy', 'invoice_busy']);
    const retried = await send('POST', `${body.status_url}/retry`, {}, key);
    expect([retried.status, retried.body.existing, retried.body.cause]).toEqual([202, true, 'upload']);
  });

  it('go with their files and stop their run, unless a claim cites them', async () => {
    const { adminKey: key, orgDb, orgId } = await api.addOrganization();
    const { body } = await uploadInvoice(api, pdf('gone'), { key });
    expect((await send('DELETE', body.status_url, undefined, key)).status).toBe(204);
    expect((await api.get(body.status_url, key)).status).toBe(404);
    expect(await keysOf(orgId)).toEqual([]);
    const kinds = await orgDb.rows<{ kind: string }>(
      'select kind from outbox where org_id = $1 order by id',
      [orgId],
    );
    expect(kinds.map(({ kind }) => kind)).toEqual(['invoice_run.start', 'invoice_run.cancel']);
    const again = await uploadInvoice(api, pdf('gone'), { key });
    expect([again.status, again.body.invoice_id === body.invoice_id]).toEqual([202, false]);
    const cited = await storeReadInvoice(orgDb, 'acct');
    const { superuser } = api.database;
    await superuser.query(
      `begin; set local session_replication_role = 'replica';
       insert into claim_invoices (org_id, claim_id, invoice_id) values ('${orgId}', gen_random_uuid(), '${cited}'); commit`,
    );
    const refused = await send('DELETE', `${INVOICES}/${publicId('inv', cited)}`, undefined, key);
    expect([refused.status, refused.body.code]).toEqual([409, 'invoice_cited']);
  });

  it('leave their changes in the audit log', async () => {
    const { adminKey: key, orgDb } = await api.addOrganization();
    const { body } = await uploadInvoice(api, pdf('logged'), { key });
    const id = publicId('inv', await storeReadInvoice(orgDb, 'acct'));
    await send('PATCH', `${INVOICES}/${id}/lines/1`, { amount: 11 }, key);
    await send('POST', `${INVOICES}/${id}/confirm`, {}, key);
    await send('DELETE', `${INVOICES}/${body.invoice_id}`, undefined, key);
    const log = await api.get('/api/v1/audit-log', key);
    const actions = log.body.records.map(({ action }: { action: string }) => action);
    expect(actions).toEqual([
      'invoice.deleted',
      'invoice.confirmed',
      'invoice.line_corrected',
      'invoice.uploaded',
    ]);
  });

  it('are nobody else’s: every address answers 404 to another organization', async () => {
    const { body } = await uploadInvoice(api, pdf('mine'));
    const { adminKey: key } = await api.addOrganization();
    const { run } = (await api.get(body.status_url)).body;
    const paths: [string, string, object?][] = [
      ['GET', ''],
      ['GET', '/file'],
      ['GET', '/pages/1.png'],
      ['GET', '/runs'],
      ['GET', `/runs/${run.id}`],
      ['PATCH', '/lines/1', { amount: 1 }],
      ['POST', '/confirm', {}],
      ['POST', '/retry', {}],
      ['DELETE', ''],
    ];
    for (const [method, path, json] of paths) {
      const answer = await send(method, `${body.status_url}${path}`, json, key);
      expect(`${method} ${path} ${answer.status} ${answer.body.code}`).toBe(
        `${method} ${path} 404 not_found`,
      );
    }
    expect((await api.get(body.status_url)).body.run.status).toBe('queued');
  });
});

describe('the nightly removal of files', () => {
  it('takes files without an invoice that are older than a day, and no others', async () => {
    const { orgDb, orgId } = await api.addOrganization();
    const kept = await storeReadInvoice(orgDb, 'acct');
    const blobs = testBlobs();
    const put = (key: string) =>
      blobs.put(
        key,
        (async function* () {
          yield Buffer.from('x');
        })(),
        { bytesMax: 10 },
      );
    const young = await storeReadInvoice(orgDb, 'young');
    await orgDb.run('delete from invoice_lines where org_id = $1 and invoice_id = $2', [orgId, young]);
    await orgDb.run('delete from invoices where org_id = $1 and id = $2', [orgId, young]);
    const old = `invoices/${orgId}/019a0000-0000-7000-8000-000000000000/document.pdf`;
    await put(old);
    const removed: number[] = [];
    const work = {
      database: api.database.database,
      nowMicros: BigInt(Date.now()) * 1_000n,
      report: async ({ rows }: { rows: number }) => {
        removed.push(rows);
      },
    };
    await removeOrphanedFiles(work, blobs);
    expect(removed.reduce((sum, rows) => sum + rows, 0)).toBe(1);
    const left = (await keysOf(orgId)).map((key) => key.split('/')[2]).sort();
    expect(left).toEqual([kept, young].sort());
  });
});
