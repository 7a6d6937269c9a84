import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LimitedApi, policiesOf, startLimitedApi } from '../support/limits.js';
import { anEvent, ingest, send } from '../support/requests.js';

const EXPORT = '/api/v1/events/export?start=2026-01-01&end=2027-01-01&include_payload=true';
const RUN = '/api/v1/reconciliation/gap-explorer/run';

let api: LimitedApi;
/** Another instance on the same database. */
let other: LimitedApi;
beforeAll(async () => {
  const limits = {
    openExportsMax: 2,
    openRunsMax: 2,
    openImportsMax: 2,
    runs: { quota: 4, windowSeconds: 3_600, burst: 4 },
  };
  api = await startLimitedApi(limits);
  other = await startLimitedApi(limits, { database: api.database });
});
afterAll(async () => {
  await other.close();
  await api.close();
});

/** An organization with more data than socket buffers hold, so that an unread export keeps running. */
async function anOrganizationWithMuch() {
  const organization = await api.addOrganization();
  const payload = { text: 'x'.repeat(100_000) };
  for (let batch = 0; batch < 3; batch += 1) {
    const events = Array.from({ length: 80 }, () => anEvent({ payload }));
    await ingest(api, events, organization.ingestKey);
  }
  return organization;
}

/** Begins an export and reads nothing of it but its head. */
function beginExport(instance: LimitedApi, key: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const asked = httpRequest(instance.baseUrl + EXPORT, { agent: false, headers }, resolve);
    asked.on('error', reject);
    asked.end();
  });
}

const slots = async (orgId: string) =>
  Number(
    (await api.database.superuser.query('select count(*) from request_slots where org_id = $1', [orgId]))
      .rows[0].count,
  );

describe('exports of an organization', () => {
  it('beyond the number that it may have at once are refused, over all instances; each holds its place to its end', async () => {
    const { orgId, adminKey } = await anOrganizationWithMuch();
    const first = await beginExport(api, adminKey);
    const second = await beginExport(other, adminKey);
    expect([first.statusCode, second.statusCode]).toEqual([200, 200]);
    expect(policiesOf({ headers: first.headers }).get('exports')).toMatchObject({
      quota: 2,
      unit: 'concurrent-requests',
      windowSeconds: undefined,
    });
    for (const instance of [api, other]) {
      const refused = await instance.get(EXPORT, adminKey);
      expect(refused.status).toBe(429);
      expect(refused.body).toMatchObject({ code: 'rate_limited', 'violated-policies': ['exports'] });
      expect(refused.body.detail).toMatch(/2 exports of the organization are under way/);
      const told = policiesOf(refused);
      expect(told.get('exports')?.remaining).toBe(0);
      expect(told.get('default')?.resetSeconds).toBeLessThanOrEqual(
        Number(refused.headers.get('retry-after')),
      );
    }
    // Other reads go on meanwhile.
    expect((await api.get('/api/v1/events?limit=1', adminKey)).status).toBe(200);
    // One client disconnects, the other reads to the end.
    first.destroy();
    await expect.poll(() => slots(orgId)).toBe(1);
    const third = await beginExport(other, adminKey);
    expect(third.statusCode).toBe(200);
    third.destroy();
    let bytes = 0;
    for await (const chunk of second) bytes += (chunk as Buffer).length;
    expect(bytes).toBeGreaterThan(24_000_000);
    await expect.poll(() => slots(orgId)).toBe(0);
  });

  it('that are refused for another reason hold no place', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    for (let times = 0; times < 5; times += 1)
      expect((await api.get('/api/v1/events/export?start=2026-02-01&end=2026-01-01', adminKey)).status).toBe(
        400,
      );
    await expect.poll(() => slots(orgId)).toBe(0);
  });
});

describe('runs of an organization', () => {
  it('beyond the number that may be open are refused, naming those; one of the same period is still the answer', async () => {
    const { adminKey } = await api.addOrganization();
    const start = (period: string, instance = api) => instance.post(`${RUN}?period=${period}`, {}, adminKey);
    const first = await start('7d');
    const second = await start('30d', other);
    expect([first.status, second.status]).toEqual([202, 202]);
    const refused = await start('90d');
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ code: 'rate_limited', 'violated-policies': ['open-gap-runs'] });
    expect(refused.body.detail).toContain(first.body.run_id);
    expect(refused.body.detail).toContain(second.body.run_id);
    expect(await start('7d')).toMatchObject({
      status: 202,
      body: { existing: true, run_id: first.body.run_id },
    });
    expect(
      (await api.post(`/api/v1/reconciliation/gap-explorer/runs/${first.body.run_id}/cancel`, {}, adminKey))
        .status,
    ).toBe(202);
    expect((await start('90d')).status).toBe(202);
  });

  it('are never more than may be open, however many are asked for at once on several instances', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const answers = await Promise.all(
      ['7d', '30d', '90d'].flatMap((period) =>
        [api, other].map((instance) => instance.post(`${RUN}?period=${period}`, {}, adminKey)),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 429]));
    const { rows } = await api.database.superuser.query(
      `select count(*) from gap_runs where org_id = $1 and status in ('queued', 'running')`,
      [orgId],
    );
    expect(rows[0].count).toBe('2');
  });

  it('are begun so often an hour; what was open already, refused or repeated does not count', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const start = () => api.post(`${RUN}?period=7d`, {}, adminKey);
    const end = () =>
      api.database.superuser.query(
        `update gap_runs set status = 'succeeded', finished_at = now() where org_id = $1`,
        [orgId],
      );
    for (let run = 0; run < 4; run += 1) {
      expect((await start()).status).toBe(202);
      for (let again = 0; again < 4; again += 1) expect((await start()).body.existing).toBe(true);
      expect((await api.post(`${RUN}?period=never`, {}, adminKey)).status).toBe(400);
      await end();
    }
    const refused = await start();
    expect(refused.status).toBe(429);
    expect(refused.body['violated-policies']).toEqual(['gap-runs']);
    expect(policiesOf(refused).get('gap-runs')).toMatchObject({
      quota: 4,
      windowSeconds: 3_600,
      remaining: 0,
    });
    expect(Number(refused.headers.get('retry-after'))).toBe(900);
    // Other kinds of work, and other organizations, have separate buckets.
    const reprice = await api.post(
      '/api/v1/pricing/reprice',
      { from: '2026-01-01', to: '2026-01-31' },
      adminKey,
    );
    expect(reprice.status).toBe(202);
    expect((await api.post(`${RUN}?period=7d`, {}, (await api.addOrganization()).adminKey)).status).toBe(202);
    await api.forward(900);
    expect((await start()).status).toBe(202);
  });
});

describe('imports of an organization', () => {
  it('beyond the number that may be open are refused before the file is received', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const upload = (text: string) => {
      const form = new FormData();
      form.set('provider', 'openai');
      form.set('account', 'org-1');
      form.set('file', new Blob([text]), 'bill.csv');
      return fetch(`${api.baseUrl}/api/v1/billing-imports`, {
        method: 'POST',
        headers: { authorization: `Bearer ${adminKey}` },
        body: form,
      });
    };
    for (const bill of ['a', 'b']) expect((await upload(`date,cost\n${bill}`)).status).toBe(202);
    const refused = await upload('date,cost\nc');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['open-imports'] });
    const { rows } = await api.database.superuser.query(
      'select count(distinct source_id) from billing_pages where org_id = $1',
      [orgId],
    );
    expect(rows[0].count).toBe('2');
  });
});

describe('F-21: a noisy organization', () => {
  it('is limited itself; another one meets no limit and loses nothing', async () => {
    const limits = {
      reads: { quota: 60, windowSeconds: 60, burst: 10 },
      ingest: { quota: 60, windowSeconds: 60, burst: 10 },
    };
    const shared = await startLimitedApi(limits);
    const [noisy, quiet] = [await shared.addOrganization(), await shared.addOrganization()];
    const noise = Promise.all(
      Array.from({ length: 250 }, (_, index) =>
        index % 2 === 0
          ? send(shared, { path: '/api/v1/events', key: noisy.adminKey })
          : shared.post('/api/v1/ingest/events', { events: [anEvent()] }, noisy.ingestKey),
      ),
    );
    const heard: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      heard.push((await shared.get('/api/v1/events', quiet.adminKey)).status);
      heard.push(
        (await shared.post('/api/v1/ingest/events', { events: [anEvent()] }, quiet.ingestKey)).status,
      );
    }
    expect(heard).toEqual(Array(5).fill([200, 202]).flat());
    const answers = (await noise).map(({ status }) => status);
    expect(answers.filter((status) => status === 429)).toHaveLength(250 - 20);
    expect((await shared.get('/api/v1/events', quiet.adminKey)).body.count).toBe(5);
    await shared.close();
  });
});
