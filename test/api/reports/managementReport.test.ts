import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';
import { parseConfig } from '../../../platform/config.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { REPORTS_PATH, storeReport } from '../../support/reports.js';
import { send } from '../support/requests.js';

let api: TestApi;
beforeAll(async () => {
  // Without the workflow engine the API makes reports itself.
  api = await startTestApi({ temporalStatus: async () => 'degraded' });
}, 300_000);
afterAll(() => api?.close());

const MARCH = { from: '2026-03-01', to: '2026-03-31' };

function make(
  body: object,
  {
    at = api,
    key = at.adminKey,
    headers = {},
  }: { at?: TestApi; key?: string; headers?: Record<string, string> } = {},
) {
  return send(at, {
    method: 'POST',
    path: `${REPORTS_PATH}/management`,
    key,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

const list = async (key: string, query = '') => (await api.get(`${REPORTS_PATH}${query}`, key)).body;

describe('POST /reports/management', () => {
  it('answers the PDF, which the list names and which can be downloaded again', async () => {
    const { adminKey } = await api.addOrganization();
    const made = await make({ ...MARCH, sections: ['spend', 'summary', 'spend'] }, { key: adminKey });
    expect([made.status, made.headers['content-type']]).toEqual([200, 'application/pdf']);
    expect(made.headers['content-disposition']).toBe(
      'attachment; filename="management-report-2026-03-01-2026-03-31.pdf"',
    );
    expect(made.bytes.subarray(0, 5).toString()).toBe('%PDF-');
    const id = String(made.headers['x-report-id']);
    const { reports, ...page } = await list(adminKey);
    expect(page).toEqual({ count: 1, offset: 0, has_more: false });
    expect(reports).toEqual([
      {
        id,
        period_from: '2026-03-01',
        period_to: '2026-03-31',
        sections: ['summary', 'spend'],
        generated_at: expect.stringMatching(/Z$/),
        expires_at: expect.stringMatching(/Z$/),
        size_bytes: made.bytes.length,
      },
    ]);
    const [{ generated_at: generated, expires_at: expires }] = reports;
    expect(Date.parse(expires) - Date.parse(generated)).toBe(90 * 86_400_000);
    const again = await send(api, { path: `${REPORTS_PATH}/${id}`, key: adminKey });
    expect(again.status).toBe(200);
    expect(again.bytes.equals(made.bytes)).toBe(true);
    const { body } = await api.get(`${REPORTS_PATH}/runs/${id.replace('rpt', 'run')}`, adminKey);
    expect(body).toMatchObject({ status: 'succeeded', cause: 'request', result: { report_id: id } });
    const log = JSON.stringify((await api.get('/api/v1/audit-log', adminKey)).body);
    expect(log).toContain('report.requested');
    expect(log).toContain(id);
  });

  it.each([
    ['from after to', { from: '2026-03-02', to: '2026-03-01' }, 'invalid_range'],
    ['367 days', { from: '2025-01-01', to: '2026-01-02' }, 'invalid_range'],
    ['a section that there is not', { ...MARCH, sections: ['spending'] }, 'invalid_body'],
    ['no section', { ...MARCH, sections: [] }, 'invalid_body'],
    ['a day that there is not', { from: '2026-02-30', to: '2026-03-01' }, 'invalid_body'],
    ['a time', { from: '2026-03-01T00:00:00Z', to: '2026-03-01' }, 'invalid_body'],
    ['no end', { from: '2026-03-01' }, 'invalid_body'],
    ['a field that is not known', { ...MARCH, section: ['spend'] }, 'invalid_body'],
  ])('refuses %s, and makes nothing', async (_name, body, code) => {
    const { adminKey } = await api.addOrganization();
    expect((await make(body, { key: adminKey })).body).toMatchObject({ status: 400, code });
    expect((await api.get(`${REPORTS_PATH}/runs`, adminKey)).body.runs).toEqual([]);
  });

  it('takes the longest period of 366 days', async () => {
    const { adminKey } = await api.addOrganization();
    expect((await make({ from: '2025-01-01', to: '2026-01-01' }, { key: adminKey })).status).toBe(200);
  });

  it('answers the run at once where that is preferred', async () => {
    const { adminKey } = await api.addOrganization();
    const { status, headers, body } = await make(MARCH, {
      key: adminKey,
      headers: { prefer: 'wait=1, respond-async' },
    });
    expect([status, headers['preference-applied']]).toEqual([202, 'respond-async']);
    expect(body).toMatchObject({ kind: 'report', status: 'queued', result: null });
    expect(headers.location).toBe(body.status_url);
    expect((await api.get(body.status_url, adminKey)).body.status).toBe('queued');
    expect((await list(adminKey)).reports).toEqual([]);
  });

  it('answers 503 with the place of the run where it takes longer than a request waits', async () => {
    // No worker is behind it, so that the run stays queued.
    const waiting = await startTestApi({ temporalStatus: async () => 'up', reportWaitMs: 500 });
    try {
      const { status, headers, body } = await make(MARCH, { at: waiting });
      expect([status, body.code]).toEqual([503, 'report_delayed']);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      const run = await waiting.get(String(headers.location));
      expect(run.body).toMatchObject({ kind: 'report', status: 'queued' });
    } finally {
      await waiting.close();
    }
  });

  it('gives the same report for the same Idempotency-Key, and refuses another request under it', async () => {
    const { adminKey } = await api.addOrganization();
    const headers = { 'idempotency-key': 'march' };
    const first = await make(MARCH, { key: adminKey, headers });
    const second = await make(MARCH, { key: adminKey, headers });
    expect(second.headers['x-report-id']).toBe(first.headers['x-report-id']);
    expect([first.headers['idempotency-replayed'], second.headers['idempotency-replayed']]).toEqual([
      undefined,
      'true',
    ]);
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const other = await make({ ...MARCH, sections: ['spend'] }, { key: adminKey, headers });
    expect(other.body).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
    const wrong = await make(MARCH, { key: adminKey, headers: { 'idempotency-key': 'ü' } });
    expect(wrong.body).toMatchObject({ status: 400, code: 'invalid_idempotency_key' });
    expect((await list(adminKey)).count).toBe(1);
  });
});

describe('a stored report', () => {
  it('is found by nobody once it has expired, nor by another organization, nor by a wrong id', async () => {
    const { orgDb, adminKey } = await api.addOrganization();
    const now = BigInt(Date.now()) * 1_000n;
    const old = await storeReport(orgDb, { generatedAtMicros: now - 90n * MICROS_PER_DAY - 1n });
    const young = await storeReport(orgDb, { generatedAtMicros: now - 90n * MICROS_PER_DAY + 60_000_000n });
    const get = (id: string, key: string) => api.get(`${REPORTS_PATH}/${id}`, key);
    expect((await get(publicId('rpt', young), adminKey)).status).toBe(200);
    const missing = [
      await get(publicId('rpt', old), adminKey),
      await get(publicId('rpt', young), api.adminKey),
      await get('rpt_00000000000070008000000000000000', adminKey),
      await get('run_none', adminKey),
    ];
    const said = missing.map(({ body }) => [body.status, body.code, body.detail]);
    expect(new Set(said.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(said[0]).toEqual([404, 'report_not_found', expect.any(String)]);
    expect((await list(adminKey)).reports.map(({ id }: { id: string }) => id)).toEqual([
      publicId('rpt', young),
    ]);
  });

  it('is listed newest first, page by page', async () => {
    const { orgDb, adminKey } = await api.addOrganization();
    const now = BigInt(Date.now()) * 1_000n;
    const ids: string[] = [];
    for (const age of [3n, 1n, 2n])
      ids.push(publicId('rpt', await storeReport(orgDb, { generatedAtMicros: now - age * MICROS_PER_DAY })));
    const idsOf = ({ reports }: { reports: { id: string }[] }) => reports.map(({ id }) => id);
    expect(idsOf(await list(adminKey))).toEqual([ids[1], ids[2], ids[0]]);
    const page = await list(adminKey, '?limit=1&offset=1');
    expect([idsOf(page), page.has_more]).toEqual([[ids[2]], true]);
  });
});

describe('an organization', () => {
  it('has two reports open at a time', async () => {
    const { adminKey } = await api.addOrganization();
    const headers = { prefer: 'respond-async' };
    const limited = await startTestApi({
      database: api.database,
      temporalStatus: async () => 'up',
      limits: parseConfig({}).limits,
    });
    try {
      const ask = () =>
        send(limited, {
          method: 'POST',
          path: `${REPORTS_PATH}/management`,
          key: adminKey,
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(MARCH),
        });
      expect([(await ask()).status, (await ask()).status]).toEqual([202, 202]);
      const refused = await ask();
      expect(refused.body).toMatchObject({ status: 429, 'violated-policies': ['open-reports'] });
    } finally {
      await limited.close();
    }
  });
});
