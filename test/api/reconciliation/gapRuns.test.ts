import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { generateBills } from '../../support/billGenerator.js';
import { importBill, pollToEnd, runGaps } from '../../support/bills.js';
import { startTestEngine, type TestEngine } from '../../support/engine.js';

const RUN = '/api/v1/reconciliation/gap-explorer/run';
const EXPLORER = '/api/v1/reconciliation/gap-explorer';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

const runsOf = async (orgId: string) => {
  const { rows } = await api.database.superuser.query(
    'select status, count(*)::int as count from gap_runs where org_id = $1 group by 1',
    [orgId],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
};

describe('a gap run, while no worker takes it', () => {
  it('is accepted, queued and answered with the address of its status', async () => {
    const { adminKey } = await api.addOrganization();
    const { status, headers, body } = await api.post(`${RUN}?period=7d&provider=openai`, {}, adminKey);
    expect(status).toBe(202);
    expect([headers.get('location'), headers.get('retry-after')]).toEqual([body.status_url, '2']);
    expect(body).toMatchObject({
      status: 'queued',
      kind: 'gap_run',
      period: '7d',
      provider: 'openai',
      result: null,
      error: null,
      progress: { stage: 'queued', percent: 0 },
    });
    expect(body.status_url).toBe(`${EXPLORER}/runs/${body.run_id}`);
    expect((await api.get(body.status_url, adminKey)).body).toEqual(body);
  });

  it('asked for fifty times at once is one run, with one message to start it', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => api.post(`${RUN}?period=90d`, {}, adminKey)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(202));
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect(answers.filter(({ body }) => !body.existing)).toHaveLength(1);
    const { rows } = await api.database.superuser.query(
      'select count(*)::int as count from outbox where org_id = $1',
      [orgId],
    );
    expect(rows[0].count).toBe(1);
  });

  it('is its own for each period and provider', async () => {
    const { adminKey } = await api.addOrganization();
    const ids = [];
    for (const query of [
      '',
      '?period=7d',
      '?provider=openai',
      '?provider=anthropic',
      '?provider=azure',
      '?period=30d',
    ]) {
      ids.push((await api.post(`${RUN}${query}`, {}, adminKey)).body.run_id);
    }
    expect(new Set(ids).size).toBe(5);
    expect(ids[5]).toBe(ids[0]);
  });

  it.each([
    ['in the body', '', { period: '7d', provider: 'azure' }],
    ['in the query', '?period=7d&provider=azure_openai', {}],
    ['one in each', '?period=7d', { provider: 'azure_openai' }],
    [
      'the same value in both',
      '?period=7d&provider=azure_openai',
      { period: '7d', provider: 'azure_openai' },
    ],
  ])('takes period and provider %s', async (_where, query, sent) => {
    const { adminKey } = await api.addOrganization();
    const { status, body } = await api.post(`${RUN}${query}`, sent, adminKey);
    expect([status, body.period, body.provider]).toEqual([202, '7d', 'azure_openai']);
  });

  it('compares all providers over 30 days when the body is absent, empty or names no provider', async () => {
    const { adminKey } = await api.addOrganization();
    for (const init of [{}, { body: '{}' }, { body: '{"provider":null}' }]) {
      const response = await fetch(`${api.baseUrl}${RUN}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${adminKey}` },
        ...init,
        ...('body' in init
          ? { headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' } }
          : {}),
      });
      const run = (await response.json()) as { period: string; provider: string | null };
      expect([response.status, run.period, run.provider]).toEqual([202, '30d', null]);
    }
  });

  it.each([
    ['?period=7d', { period: '30d' }, 'period'],
    ['?provider=openai', { provider: 'anthropic' }, 'provider'],
  ])('refuses query %s with the body %j, which names another value', async (query, sent, field) => {
    const { adminKey, orgId } = await api.addOrganization();
    const { status, body } = await api.post(`${RUN}${query}`, sent, adminKey);
    expect([status, body.code]).toEqual([400, 'invalid_parameter']);
    expect(body.errors).toEqual([
      { in: 'query', field, message: expect.stringContaining('another value in the body') },
    ]);
    expect(await runsOf(orgId)).toEqual({});
  });

  it.each([
    [{ periods: '7d' }, 'periods'],
    [{ provider: 'openai', model: 'gpt-6-sol' }, 'model'],
    [{ period: '14d' }, 'period'],
    [{ provider: 'google' }, 'provider'],
    [{ provider: 7 }, 'provider'],
  ])('refuses the body %j and names %s', async (sent, field) => {
    const { adminKey, orgId } = await api.addOrganization();
    const { status, body } = await api.post(RUN, sent, adminKey);
    expect([status, body.code, body.errors[0].in, body.errors[0].field]).toEqual([
      400,
      'invalid_body',
      'body',
      field,
    ]);
    expect(await runsOf(orgId)).toEqual({});
  });

  it('can be cancelled, which frees its place, and not twice', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const { body } = await api.post(RUN, {}, adminKey);
    const cancelled = await api.post(`${body.status_url}/cancel`, {}, adminKey);
    expect([cancelled.status, cancelled.body.status]).toEqual([202, 'cancelled']);
    const again = await api.post(`${body.status_url}/cancel`, {}, adminKey);
    expect([again.status, again.body.code]).toEqual([409, 'run_not_cancellable']);
    const next = await api.post(RUN, {}, adminKey);
    expect(next.body.run_id).not.toBe(body.run_id);
    expect(await runsOf(orgId)).toEqual({ cancelled: 1, queued: 1 });
  });

  it('is listed, newest first, by provider and status', async () => {
    const { adminKey } = await api.addOrganization();
    const first = (await api.post(`${RUN}?provider=openai`, {}, adminKey)).body.run_id;
    const second = (await api.post(`${RUN}?provider=anthropic`, {}, adminKey)).body.run_id;
    await api.post(`${EXPLORER}/runs/${first}/cancel`, {}, adminKey);
    const ids = async (query: string) =>
      (await api.get(`${EXPLORER}/runs${query}`, adminKey)).body.runs.map(
        ({ run_id }: { run_id: string }) => run_id,
      );
    expect(await ids('')).toEqual([second, first]);
    expect(await ids('?limit=1')).toEqual([second]);
    expect(await ids('?provider=openai')).toEqual([first]);
    expect(await ids('?status=queued')).toEqual([second]);
  });

  it.each([
    [`${RUN}?period=14d`, 'period', '7d, 30d, 90d'],
    [`${RUN}?provider=google`, 'provider', 'openai, anthropic, aws_bedrock, azure_openai'],
  ])('%s is refused with what is possible', async (path, field, choices) => {
    const { status, body } = await api.post(path, {});
    expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_parameter', field]);
    expect(body.message).toContain(choices);
    expect((await api.get(path.replace('/run', ''))).status).toBe(400);
  });

  it('of another organization is not found', async () => {
    const other = await api.addOrganization();
    const { body } = await api.post(RUN, {}, other.adminKey);
    expect((await api.get(body.status_url)).status).toBe(404);
    expect((await api.post(`${body.status_url}/cancel`, {})).status).toBe(404);
    expect((await api.get(`${EXPLORER}/runs/run_00000000000000000000000000000000`)).status).toBe(404);
  });

  it('needs reconciliation:write; reading needs less', async () => {
    const auditor = await api.addKey(api.orgId, 'auditor');
    expect((await api.post(RUN, {}, auditor)).status).toBe(403);
    expect((await api.post(RUN, {}, api.ingestKey)).status).toBe(403);
    expect((await api.get(EXPLORER, auditor)).status).toBe(200);
    expect((await api.get('/api/v1/reconciliation/summary', api.ingestKey)).status).toBe(403);
    const member = await api.addKey(api.orgId, 'member');
    expect((await api.post(`${RUN}?period=7d`, {}, member)).status).toBe(202);
  });
});

describe('without any bill', () => {
  it('the explorer is empty and the summary is the previous month with zeros', async () => {
    const { adminKey } = await api.addOrganization();
    const explorer = await api.get(EXPLORER, adminKey);
    expect(explorer.body).toMatchObject({ total: 0, flagged: 0, gaps: [] });
    expect(explorer.body.period.start).toBe(`${daysAgo(29)}T00:00:00Z`);
    const previous = new Date();
    previous.setUTCDate(1);
    previous.setUTCMonth(previous.getUTCMonth() - 1);
    expect((await api.get('/api/v1/reconciliation/summary', adminKey)).body).toEqual({
      period: previous.toISOString().slice(0, 7),
      matched_usd: 0,
      unmatched_usd: 0,
      confidence_distribution: { HIGH: 0, MEDIUM: 0, LOW: 0, UNVERIFIED: 0 },
    });
  });
});

describe('the period of the explorer', () => {
  it.each([
    ['7d', 6],
    ['30d', 29],
    ['90d', 89],
  ])('%s begins %i days before today and ends now', async (period, days) => {
    const before = Date.now();
    const { body } = await api.get(`${EXPLORER}?period=${period}`);
    expect(body.period.start).toBe(`${daysAgo(days)}T00:00:00Z`);
    expect(Date.parse(body.period.end)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(body.period.end)).toBeLessThanOrEqual(Date.now());
  });

  it('is that of a run: both cover the same days', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    await api.post(`${RUN}?period=7d`, {}, adminKey);
    const { rows } = await api.database.superuser.query(
      `select (window_start at time zone 'utc')::text as start, (window_end at time zone 'utc')::text as end from gap_runs where org_id = $1`,
      [orgId],
    );
    expect(rows).toEqual([{ start: `${daysAgo(6)} 00:00:00`, end: `${daysAgo(-1)} 00:00:00` }]);
  });
});

describe('with a worker', () => {
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await startTestEngine(api.database.database);
    await engine.startWorker();
  });

  afterAll(async () => {
    await engine?.close();
  });

  it('a run without any bill succeeds without results and states why', async () => {
    const { adminKey } = await api.addOrganization();
    expect(await runGaps(api, '?period=7d', 20_000, adminKey)).toMatchObject({
      status: 'succeeded',
      result: { total: 0, flagged: 0, reason: 'no_billing_data' },
      error: null,
    });
  });

  it('a bill from before the first call is no alarm: every day is not_yet_observed', async () => {
    const { adminKey } = await api.addOrganization();
    const bills = generateBills({ seed: 1, lastDay: daysAgo(3), days: 3, callsPerHour: 1 });
    await importBill(api, bills.files.openaiCosts, { provider: 'openai' }, adminKey);
    expect((await runGaps(api, '', undefined, adminKey)).result).toMatchObject({ total: 12, flagged: 0 });
    const { body } = await api.get(EXPLORER, adminKey);
    const reasons = body.gaps.map(({ reason }: { reason: string }) => reason);
    expect([...new Set(reasons)].sort()).toEqual(['not_observable', 'not_yet_observed']);
  });

  it('a day that is restated after its run no longer counts as matched in the summary', async () => {
    const { adminKey } = await api.addOrganization();
    const [first, last] = lastMonth();
    const csv = (usd: string) =>
      `date,model,token_class,quantity,amount_usd\n${first},gpt-6-sol,input,1000000,${usd}\n${last},gpt-6-sol,input,1000000,2\n`;
    const events = [first, last].map((day) => ({
      provider: 'openai',
      model: 'gpt-6-sol',
      timestamp: `${day}T00:00:00Z`,
      request_id: `r-${day}`,
      input_tokens: 1_000_000,
      output_tokens: 0,
    }));
    expect((await api.post('/api/v1/ingest/events', { events }, adminKey)).body.accepted).toBe(2);
    await importBill(api, csv('2'), { provider: 'openai' }, adminKey);
    await runGaps(api, '?period=90d', undefined, adminKey);
    const summary = async () => (await api.get('/api/v1/reconciliation/summary', adminKey)).body;
    const before = await summary();
    expect([before.period, before.matched_usd + before.unmatched_usd]).toEqual([
      first.slice(0, 7),
      before.matched_usd,
    ]);
    await importBill(api, csv('3'), { provider: 'openai' }, adminKey);
    const stale = await summary();
    expect([stale.matched_usd, stale.unmatched_usd, stale.confidence_distribution.UNVERIFIED]).toEqual([
      0,
      before.matched_usd + 1,
      before.matched_usd + 1,
    ]);
    await runGaps(api, '?period=90d', undefined, adminKey);
    expect((await summary()).matched_usd).toBeGreaterThan(0);
  });

  it('two runs of an organization work at once; a third waits for its turn and then is done', async () => {
    const { adminKey } = await api.addOrganization();
    const answers = await Promise.all(
      ['?period=7d', '?period=30d', '?period=90d', '?period=7d&provider=openai'].map((query) =>
        api.post(`${RUN}${query}`, {}, adminKey),
      ),
    );
    for (const { body } of answers)
      expect((await pollToEnd(api, body.status_url, 180_000, adminKey)).status).toBe('succeeded');
  });
});

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** First and last day of the last complete UTC month. */
function lastMonth(): [string, string] {
  const now = new Date();
  const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1));
  const last = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0));
  return [first.toISOString().slice(0, 10), last.toISOString().slice(0, 10)];
}
