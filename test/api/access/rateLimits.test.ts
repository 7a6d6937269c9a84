import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../../platform/config.js';
import { createTestKey, startTestApi, type TestAnswer } from '../../support/api.js';
import { type LimitedApi, policiesOf, startLimitedApi, untilRefused } from '../support/limits.js';
import { anEvent, aSpan, aTrace, ingest, send } from '../support/requests.js';

const READS = { quota: 60, windowSeconds: 60, burst: 5 };

/** Checks every part of a refusal that clients rely on. */
function expectRefusal(answer: TestAnswer, policy: string): number {
  expect(answer.status).toBe(429);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.body).toMatchObject({
    type: 'urn:problem:rate_limited',
    status: 429,
    code: 'rate_limited',
    'violated-policies': [policy],
  });
  const retryAfter = Number(answer.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  for (const { resetSeconds } of policiesOf(answer).values())
    expect(resetSeconds ?? 0).toBeLessThanOrEqual(retryAfter);
  return retryAfter;
}

describe('requests of a key', () => {
  let api: LimitedApi;
  beforeAll(async () => {
    api = await startLimitedApi({
      reads: READS,
      writes: { quota: 30, windowSeconds: 60, burst: 3 },
      ingest: { quota: 120, windowSeconds: 60, burst: 4 },
      ingestItems: { quota: 60, windowSeconds: 60, burst: 20 },
    });
  });
  afterAll(() => api.close());

  it('that read are answered up to the burst, then 429 until the time that Retry-After names is over', async () => {
    const { adminKey } = await api.addOrganization();
    const { granted, refusal } = await untilRefused(() => api.get('/api/v1/events', adminKey));
    expect(granted).toBe(5);
    const retryAfter = expectRefusal(refusal, 'default');
    expect((await api.get('/api/v1/events', adminKey)).status).toBe(429);
    await api.forward(retryAfter);
    expect((await api.get('/api/v1/events', adminKey)).status).toBe(200);
    await api.forward(60);
    expect((await untilRefused(() => api.get('/api/v1/events', adminKey))).granted).toBe(5);
  });

  it('show quota, window and what is left on every answer, whatever its status', async () => {
    const { adminKey } = await api.addOrganization();
    const left: number[] = [];
    for (const path of ['events', 'events/evt_none', 'events?limit=none', 'usage/summary']) {
      const answer = await api.get(`/api/v1/${path}`, adminKey);
      const told = policiesOf(answer).get('default');
      expect(told).toMatchObject({ quota: 60, windowSeconds: 60, unit: undefined });
      left.push(told?.remaining ?? -1);
    }
    expect(left).toEqual([4, 3, 2, 1]);
    const answer = await api.get('/api/v1/events', adminKey);
    expect(answer.headers.get('ratelimit-policy')).toBe('"default";q=60;w=60');
    expect(answer.headers.get('ratelimit')).toMatch(/^"default";r=0;t=\d+$/);
  });

  it('show a rate that never meets the limit when a client follows it', async () => {
    const { adminKey } = await api.addOrganization();
    for (let turn = 0; turn < 12; turn += 1) {
      const answer = await api.get('/api/v1/events', adminKey);
      expect(answer.status).toBe(200);
      const { remaining = 0, resetSeconds = 0 } = policiesOf(answer).get('default') ?? {};
      await api.forward(resetSeconds / Math.max(1, remaining));
    }
  });

  it('are counted before the scope is judged and before the body is read', async () => {
    const { orgId } = await api.addOrganization();
    const auditor = await createTestKey(api.database.database, orgId, 'auditor');
    const post = () => api.post('/api/v1/reconciliation/gap-explorer/run?period=month', {}, auditor);
    expect((await post()).status).toBe(403);
    const { granted } = await untilRefused(post);
    expect(granted).toBe(2);
    const broken = await send(api, {
      path: '/api/v1/pricing/overrides',
      key: auditor,
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    expect(broken.status).toBe(429);
  });

  it('that write, read and send calls are counted apart, and each key for itself', async () => {
    const { orgId, adminKey, ingestKey } = await api.addOrganization();
    await untilRefused(() => api.get('/api/v1/events', adminKey));
    await untilRefused(() => api.post('/api/v1/pricing/overrides', {}, adminKey));
    expect((await api.post('/api/v1/ingest/events', { events: [anEvent()] }, adminKey)).status).toBe(202);
    const other = await createTestKey(api.database.database, orgId, 'admin');
    expect((await api.get('/api/v1/events', other)).status).toBe(200);
    const { granted, refusal } = await untilRefused(() =>
      api.post('/api/v1/ingest/trace', aTrace(), ingestKey),
    );
    expect(granted).toBe(4);
    expectRefusal(refusal, 'ingest');
  });

  it('count exports with the other reads', async () => {
    const { adminKey } = await api.addOrganization();
    const path = '/api/v1/events/export?start=2026-01-01&end=2026-01-02';
    const { granted, refusal } = await untilRefused(() => api.get(path, adminKey));
    expect(granted).toBe(5);
    expectRefusal(refusal, 'default');
  });

  it('are not counted where they fail to authenticate', async () => {
    const { adminKey } = await api.addOrganization();
    for (let times = 0; times < 10; times += 1) {
      const answer = await send(api, { path: '/api/v1/events', key: `${adminKey.slice(0, -1)}-` });
      expect(answer.status).toBe(401);
      expect(answer.headers.ratelimit).toBeUndefined();
    }
    expect((await api.get('/api/v1/events', adminKey)).status).toBe(200);
  });

  it('are counted by class in the metrics, without organization and key', async () => {
    const metrics = String((await send(api, { path: '/metrics', key: null })).bytes);
    expect(metrics).toMatch(/^trueup_rate_limited_total\{class="default"\} [1-9]\d*$/m);
    expect(metrics).not.toMatch(/trueup_rate_limited_total\{[^}]*(key_|org)/);
  });
});

describe('items of a key', () => {
  let api: LimitedApi;
  beforeAll(async () => {
    api = await startLimitedApi({ ingestItems: { quota: 60, windowSeconds: 60, burst: 20 } });
  });
  afterAll(() => api.close());
  const events = (count: number) => ({ events: Array.from({ length: count }, () => anEvent()) });
  const stored = async (key: string) => (await api.get('/api/v1/events?limit=1000', key)).body.count;

  it('beyond the limit are refused as a whole batch: nothing of it is stored, and it can be sent again', async () => {
    const { adminKey, ingestKey } = await api.addOrganization();
    await ingest(api, events(15).events, ingestKey);
    const batch = events(10);
    const refused = await api.post('/api/v1/ingest/events', batch, ingestKey);
    const retryAfter = expectRefusal(refused, 'ingest-items');
    expect(await stored(adminKey)).toBe(15);
    expect((await api.post('/api/v1/ingest/events', events(5), ingestKey)).status).toBe(202);
    await api.forward(retryAfter + 5);
    const repeated = await api.post('/api/v1/ingest/events', batch, ingestKey);
    expect(repeated).toMatchObject({ status: 202, body: { accepted: 10, duplicates: 0 } });
    expect(await stored(adminKey)).toBe(30);
  });

  it('may be more than the whole limit in one batch where nothing was sent for a while; then that is waited for', async () => {
    const { ingestKey } = await api.addOrganization();
    expect((await api.post('/api/v1/ingest/events', events(50), ingestKey)).status).toBe(202);
    const refused = await api.post('/api/v1/ingest/events', events(1), ingestKey);
    const retryAfter = expectRefusal(refused, 'ingest-items');
    expect(retryAfter).toBe(31);
    await api.forward(31);
    expect((await api.post('/api/v1/ingest/events', events(1), ingestKey)).status).toBe(202);
  });

  it('are counted on every way in: spans, observations, events', async () => {
    const { ingestKey } = await api.addOrganization();
    const spans = aTrace(...Array.from({ length: 19 }, () => aSpan()));
    expect((await api.post('/api/v1/ingest/trace', spans, ingestKey)).status).toBe(202);
    const observation = { type: 'observation-create', body: { type: 'SPAN' } };
    expect((await api.post('/api/v1/ingest/observability', observation, ingestKey)).status).toBe(202);
    for (const [path, body] of [
      ['trace', aTrace(aSpan())],
      ['observability', observation],
      ['events', events(1)],
    ] as const)
      expectRefusal(await api.post(`/api/v1/ingest/${path}`, body, ingestKey), 'ingest-items');
  });
});

describe('requests without a key', () => {
  it('are counted by address, the price table and the documents together; health is not', async () => {
    const api = await startLimitedApi({ publicRequests: { quota: 60, windowSeconds: 60, burst: 6 } });
    for (const path of ['/api/v1/pricing/table', '/openapi.json', '/docs'])
      for (let times = 0; times < 2; times += 1) {
        const answer = await send(api, { path, key: null });
        expect(answer.status).toBe(200);
        // Caches keep such answers, which must not disclose one client to another.
        expect(answer.headers.ratelimit).toBeUndefined();
      }
    for (const path of ['/api/v1/pricing/table', '/openapi.json', '/openapi.json/', '/docs', '/docs/']) {
      const refused = await send(api, { path, key: null });
      expect(refused.status).toBe(429);
      expect(refused.body['violated-policies']).toEqual(['public']);
      expect(policiesOf(refused).get('public')).toMatchObject({ quota: 60, remaining: 0 });
    }
    for (const path of ['/healthz', '/readyz', '/metrics', '/metrics/'])
      expect((await send(api, { path, key: null })).status).toBe(200);
    expect((await api.get('/api/v1/events')).status).toBe(200);
    await api.forward(1);
    expect((await send(api, { path: '/api/v1/pricing/table', key: null })).status).toBe(200);
    await api.close();
  });
});

describe('two and three instances on one database', () => {
  it.each([2, 3])(
    '%i of them grant a key what one grants, except for what each holds in advance',
    async (count) => {
      const rate = { quota: 60, windowSeconds: 3_600, burst: 60 };
      const first = await startLimitedApi({ reads: rate });
      const others = await Promise.all(
        Array.from({ length: count - 1 }, () =>
          startLimitedApi({ reads: rate }, { database: first.database }),
        ),
      );
      const instances = [first, ...others];
      const { adminKey } = await first.addOrganization();
      let granted = 0;
      for (let turn = 0; turn < 90; turn += 1) {
        const instance = instances[turn % count] as LimitedApi;
        const answer = await instance.get('/api/v1/events', adminKey);
        if (answer.status === 200) granted += 1;
        else expectRefusal(answer, 'default');
      }
      // A twentieth of the burst is taken in advance, and the next one when half of it is spent.
      const held = (count - 1) * 1.5 * 3;
      expect(granted).toBeLessThanOrEqual(61);
      expect(granted).toBeGreaterThanOrEqual(60 - held);
      for (const other of others) await other.close();
      await first.close();
    },
  );
});

describe('F-22: without their table', () => {
  it('limits hold on each instance by a bucket of its own, and no request fails', async () => {
    const api = await startLimitedApi({
      reads: READS,
      ingestItems: { quota: 60, windowSeconds: 60, burst: 20 },
    });
    const a = await api.addOrganization();
    for (let times = 0; times < 2; times += 1) await api.get('/api/v1/events', a.adminKey);
    await api.database.superuser.query('alter table rate_buckets rename to rate_buckets_gone');
    await api.database.superuser.query('alter table request_slots rename to request_slots_gone');
    await api.forward(0).catch(() => undefined);
    const known = await untilRefused(() => api.get('/api/v1/events', a.adminKey));
    expect(known.granted).toBe(3);
    expectRefusal(known.refusal, 'default');
    const b = await api.addOrganization();
    const { granted, refusal } = await untilRefused(() => api.get('/api/v1/events', b.adminKey));
    expect(granted).toBe(5);
    expectRefusal(refusal, 'default');
    await ingest(api, [anEvent()], b.ingestKey);
    const exported = await api.get(
      '/api/v1/events/export?start=2026-01-01&end=2026-01-02',
      (await api.addOrganization()).adminKey,
    );
    expect(exported.status).toBe(200);
    const metrics = String((await send(api, { path: '/metrics', key: null })).bytes);
    expect(metrics).toMatch(/^trueup_rate_store_failures_total [1-9]/m);
    expect(metrics).not.toMatch(/status="5\d\d"/);
    await api.close();
  });
});

describe('RATE_LIMITS=off', () => {
  it('limits nothing and sends no headers about limits', async () => {
    const api = await startTestApi();
    for (let times = 0; times < 125; times += 1)
      expect((await api.get('/api/v1/pricing/table')).status).toBe(200);
    const { headers } = await api.get('/api/v1/events');
    expect(headers.get('ratelimit')).toBeNull();
    expect(headers.get('ratelimit-policy')).toBeNull();
    await api.close();
  });

  it('is not the default: the limits of the documentation are', () => {
    const { rateLimits, limits } = parseConfig({});
    expect(rateLimits).toBe(true);
    expect(limits).toEqual({
      reads: { quota: 600, windowSeconds: 60, burst: 100 },
      writes: { quota: 120, windowSeconds: 60, burst: 120 },
      ingest: { quota: 3_000, windowSeconds: 60, burst: 3_000 },
      ingestItems: { quota: 600_000, windowSeconds: 60, burst: 600_000 },
      runs: { quota: 30, windowSeconds: 3_600, burst: 30 },
      imports: { quota: 120, windowSeconds: 3_600, burst: 120 },
      invoices: { quota: 120, windowSeconds: 3_600, burst: 120 },
      publicRequests: { quota: 120, windowSeconds: 60, burst: 120 },
      failedAuthentication: { quota: 20, windowSeconds: 60, burst: 20 },
      openRunsMax: 2,
      openImportsMax: 10,
      openInvoicesMax: 50,
      openExportsMax: 2,
    });
  });
});
