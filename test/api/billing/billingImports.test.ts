import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../../support/api.js';
import { importBill, pollToEnd, uploadBill } from '../../support/bills.js';
import { startWorkingApi } from '../../support/workingApi.js';

let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi();
});

afterAll(() => api?.close());

const DAY_SECONDS = 86_400;
const page = (days: Record<number, [lineItem: string, value: string, quantity?: number][]>) =>
  JSON.stringify({
    object: 'page',
    data: Object.entries(days).map(([day, lines]) => ({
      object: 'bucket',
      start_time: Number(day) * DAY_SECONDS,
      end_time: (Number(day) + 1) * DAY_SECONDS,
      results: lines.map(([line_item, value, quantity]) => ({
        object: 'organization.costs.result',
        amount: { value, currency: 'usd' },
        line_item,
        project_id: 'proj_1',
        ...(quantity === undefined ? {} : { quantity, quantity_unit: 'tokens' }),
      })),
    })),
    has_more: false,
    next_page: null,
  });

const totals = async (orgId: string) => {
  const { rows } = await api.database.superuser.query(
    `select day::text, charge_category, sum(amount_usd)::text as usd from billing_rows where org_id = $1 group by 1, 2 order by 1, 2`,
    [orgId],
  );
  return rows.map(({ day, charge_category, usd }) => [day, charge_category, usd]);
};

describe('a bill uploaded as a file', () => {
  it('is taken at once and read behind the scenes, to the last digit', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const text = page({
      20000: [
        ['gpt-6-sol, input', '0.30000000000000004', 150_000],
        ['Promotional credit', '-3.25'],
      ],
    });
    const taken = await uploadBill(
      api,
      text,
      { provider: 'openai' },
      { key: adminKey, filename: '../../etc/costs.json' },
    );
    expect(taken.status).toBe(202);
    expect(taken.headers.get('location')).toBe(taken.body.status_url);
    expect(taken.headers.get('retry-after')).toBe('2');
    expect(taken.body).toMatchObject({
      kind: 'billing_import',
      status: 'queued',
      filename: 'costs.json',
      sha256: createHash('sha256').update(text).digest('hex'),
    });
    const done = await pollToEnd(api, taken.body.status_url, undefined, adminKey);
    expect(done).toMatchObject({
      status: 'succeeded',
      format: 'openai_pages',
      provider_account_id: 'default',
      rows: 2,
      period_start: '2024-10-04',
      period_end: '2024-10-04',
      unparsed: [],
      error: null,
      progress: { stage: 'succeeded', percent: 100 },
    });
    expect(done.amount_usd).toBeCloseTo(-2.95, 12);
    expect(await totals(orgId)).toEqual([
      ['2024-10-04', 'credit', '-3.250000000000'],
      ['2024-10-04', 'usage', '0.300000000000'],
    ]);
  });

  it('takes its fields before or after the file', async () => {
    const { adminKey } = await api.addOrganization();
    const text = 'date,model,token_class,quantity,amount_usd\n2026-01-01,mistral-large-4,input,10,1\n';
    const { status, body } = await uploadBill(
      api,
      text,
      { provider: 'mistral_ai', format: 'plain_csv' },
      { key: adminKey, fileFirst: true },
    );
    expect([status, body.provider]).toEqual([202, 'mistral']);
    expect((await pollToEnd(api, body.status_url, undefined, adminKey)).status).toBe('succeeded');
  });

  it('uploaded again is the same import, also when it comes twenty times at once', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const text = page({ 20001: [['gpt-6-sol, input', '1']] });
    const answers = [];
    for (let round = 0; round < 10; round += 1) {
      answers.push(
        ...(await Promise.all(
          [1, 2].map(() => uploadBill(api, text, { provider: 'openai' }, { key: adminKey })),
        )),
      );
    }
    const taken = answers.filter(({ status }) => status === 202);
    expect(taken.length).toBeGreaterThan(10);
    expect(new Set(taken.map(({ body }) => body.import_id)).size).toBe(1);
    expect(taken.filter(({ body }) => !body.existing)).toHaveLength(1);
    await pollToEnd(api, taken[0]?.body.status_url, undefined, adminKey);
    expect(await totals(orgId)).toEqual([['2024-10-05', 'usage', '1.000000000000']]);
  });

  it('that cannot be read names line and column, and nothing of it is kept', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const broken = `${page({ 20000: [['gpt-6-sol, input', '1']] })}\n{"data": [{"start_time": 1, "end_time": 2,\n  "results": [oops]}]}`;
    const done = await importBill(api, broken, { provider: 'openai' }, adminKey);
    expect(done).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_billing_file', message: expect.stringMatching(/^line 3, column 15: "oops"/) },
    });
    for (const table of ['billing_rows', 'billing_days', 'billing_pages']) {
      const { rows } = await api.database.superuser.query(
        `select count(*)::int as count from ${table} where org_id = $1`,
        [orgId],
      );
      expect([table, rows[0].count]).toEqual([table, 0]);
    }
    const again = await uploadBill(api, broken, { provider: 'openai' }, { key: adminKey });
    expect(again.body.import_id).not.toBe(done.import_id);
  });

  it('of several known accounts must name one; the first belongs to default', async () => {
    const { adminKey } = await api.addOrganization();
    const csv = (usd: number) =>
      `date,model,token_class,quantity,amount_usd\n2026-01-01,gpt-6-sol,input,10,${usd}\n`;
    expect((await importBill(api, csv(1), { provider: 'openai' }, adminKey)).provider_account_id).toBe(
      'default',
    );
    expect((await importBill(api, csv(2), { provider: 'openai' }, adminKey)).provider_account_id).toBe(
      'default',
    );
    expect(
      (await importBill(api, csv(3), { provider: 'openai', account: 'org-b' }, adminKey)).provider_account_id,
    ).toBe('org-b');
    const refused = await uploadBill(api, csv(4), { provider: 'openai' }, { key: adminKey });
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'account_required', errors: [{ field: 'account' }] },
    });
    const named = page({ 20000: [['gpt-6-sol, input', '1']] }).replace(
      '"project_id"',
      '"organization_id":"org-c","project_id"',
    );
    expect((await importBill(api, named, { provider: 'openai' }, adminKey)).provider_account_id).toBe(
      'org-c',
    );
  });

  it('lists its unknown labels and its restated buckets', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const text =
      page({ 20000: [['Quantum flux', '2.5']], 20002: [['gpt-6-sol, input', '9']] }) +
      page({ 20002: [['gpt-6-sol, input', '4']] });
    const done = await importBill(api, text, { provider: 'openai' }, adminKey);
    expect(done).toMatchObject({
      rows: 2,
      restated_buckets: 1,
      unparsed: [{ label: 'Quantum flux', rows: 1, amount_usd: 2.5 }],
    });
    expect(await totals(orgId)).toEqual([
      ['2024-10-04', 'usage', '2.500000000000'],
      ['2024-10-06', 'usage', '4.000000000000'],
    ]);
  });

  it('is listed, newest first, for its own organization only', async () => {
    const [one, other] = [await api.addOrganization(), await api.addOrganization()];
    const done = await importBill(
      api,
      page({ 20000: [['gpt-6-sol, input', '1']] }),
      { provider: 'openai' },
      one.adminKey,
    );
    const list = await api.get('/api/v1/billing-imports', one.adminKey);
    expect(list.body).toMatchObject({ count: 1, has_more: false, imports: [{ import_id: done.import_id }] });
    expect((await api.get('/api/v1/billing-imports?provider=anthropic', one.adminKey)).body.count).toBe(0);
    expect((await api.get('/api/v1/billing-imports', other.adminKey)).body.count).toBe(0);
    expect((await api.get(done.status_url, other.adminKey)).status).toBe(404);
    expect((await api.get('/api/v1/billing-imports/imp_nope', one.adminKey)).status).toBe(404);
  });

  it('needs an admin’s key', async () => {
    const { status, body } = await uploadBill(api, '{}', { provider: 'openai' }, { key: api.ingestKey });
    expect([status, body.message]).toEqual([403, 'admin role required']);
    const member = await api.addKey(api.orgId, 'member');
    expect((await uploadBill(api, '{}', { provider: 'openai' }, { key: member })).status).toBe(403);
    expect((await api.get('/api/v1/billing-imports', member)).status).toBe(200);
  });
});

describe('P-26: an upload that is no proper form', () => {
  const post = (body: string, headers: Record<string, string>) =>
    fetch(`${api.baseUrl}/api/v1/billing-imports`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.adminKey}`, ...headers },
      body,
    });

  const part = (name: string, value: string, filename?: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n\r\n${value}\r\n`;
  const form = (...parts: string[]) =>
    post(`${parts.join('')}--b--\r\n`, { 'content-type': 'multipart/form-data; boundary=b' });

  const kept = async () => {
    const { rows } = await api.database.superuser.query(
      'select count(*)::int as count from billing_pages where org_id = $1',
      [api.orgId],
    );
    return rows[0].count;
  };

  it.each([
    ['no boundary', () => post('x', { 'content-type': 'multipart/form-data' }), 400, 'invalid_multipart'],
    [
      'another media type',
      () => post('{}', { 'content-type': 'application/json' }),
      415,
      'unsupported_media_type',
    ],
    ['no file', () => form(part('provider', 'openai')), 400, 'missing_parameter'],
    [
      'an empty file',
      () => form(part('provider', 'openai'), part('file', '', 'a.json')),
      400,
      'invalid_billing_file',
    ],
    ['no provider', () => form(part('file', '{}', 'a.json')), 400, 'missing_parameter'],
    [
      'an unknown provider',
      () => form(part('file', '{}', 'a.json'), part('provider', 'acme')),
      400,
      'invalid_body',
    ],
    [
      'a field that nobody asked for',
      () => form(part('file', '{}', 'a.json'), part('provider', 'openai'), part('org_id', 'x')),
      400,
      'invalid_body',
    ],
    [
      'an unknown format',
      () => form(part('file', '{}', 'a.json'), part('provider', 'openai'), part('format', 'x')),
      400,
      'invalid_body',
    ],
    [
      'a bad rate',
      () => form(part('file', '{}', 'a.json'), part('provider', 'openai'), part('fx_rate', '-1')),
      400,
      'invalid_body',
    ],
    [
      'two files',
      () => form(part('provider', 'openai'), part('file', '{}', 'a.json'), part('file', '{}', 'b.json')),
      400,
      'invalid_multipart',
    ],
    [
      'the file in another field',
      () => form(part('provider', 'openai'), part('bill', '{}', 'a.json')),
      400,
      'invalid_multipart',
    ],
    [
      '1,000 parts',
      () => form(...Array.from({ length: 1_000 }, (_, at) => part(`f${at}`, 'x'))),
      400,
      'invalid_multipart',
    ],
    [
      'an end that never comes',
      () => post(part('file', '{}', 'a.json'), { 'content-type': 'multipart/form-data; boundary=b' }),
      400,
      'invalid_multipart',
    ],
  ])('%s is refused and leaves nothing', async (_, send, status, code) => {
    const response = await send();
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([status, code]);
    expect(await kept()).toBe(0);
  });

  it('a client that disconnects midway leaves nothing', async () => {
    await new Promise<void>((resolve) => {
      const upload = request(`${api.baseUrl}/api/v1/billing-imports`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${api.adminKey}`,
          'content-type': 'multipart/form-data; boundary=b',
          'transfer-encoding': 'chunked',
        },
      });
      upload.on('error', () => resolve());
      upload.write(part('provider', 'openai'));
      upload.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n');
      upload.write(Buffer.alloc(3_000_000, 0x20), () => setTimeout(() => upload.destroy(), 100));
    });
    const after = await uploadBill(api, page({ 20009: [['gpt-6-sol, input', '1']] }), { provider: 'openai' });
    expect(after.status).toBe(202);
    await pollToEnd(api, after.body.status_url);
    await expect.poll(kept).toBe(1);
  });
});

describe('a stream of 2 GB', () => {
  it('is refused when it passes 1.5 GiB, and nothing of it is kept', { timeout: 300_000 }, async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const declared = await new Promise<number>((resolve, reject) => {
      const upload = request(`${api.baseUrl}/api/v1/billing-imports`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${adminKey}`,
          'content-type': 'multipart/form-data; boundary=b',
          'content-length': String(2_000_000_000),
        },
      });
      upload.on('error', reject);
      upload.on('response', (response) => {
        resolve(response.statusCode ?? 0);
        upload.on('error', () => undefined);
        upload.destroy();
      });
      upload.write('--b\r\n');
    });
    expect(declared).toBe(413);
    const { rows } = await api.database.superuser.query(
      'select count(*)::int as count from billing_pages where org_id = $1',
      [orgId],
    );
    expect(rows[0].count).toBe(0);
  });
});
