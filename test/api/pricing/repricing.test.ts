import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';

const REPRICE = '/api/v1/pricing/reprice';
const RUNS = '/api/v1/pricing/reprice-runs';
const WINDOW = { from: '2026-02-01', to: '2026-02-28' };

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

describe('POST /api/v1/pricing/reprice', () => {
  it('is taken at once, with where to ask for its state and when', async () => {
    const org = await api.addOrganization();
    const { status, headers, body } = await api.post(
      REPRICE,
      { ...WINDOW, provider: 'OpenAI' },
      org.adminKey,
    );
    expect(status).toBe(202);
    expect(body).toMatchObject({
      kind: 'reprice',
      status: 'queued',
      from: '2026-02-01T00:00:00Z',
      to: '2026-02-28T23:59:59.999999Z',
      provider: 'openai',
      model: null,
      progress: { done: 0, total: 28, percent: 0 },
      result: null,
      error: null,
      finished_at: null,
      status_url: `${RUNS}/${body.id}`,
    });
    expect(headers.get('location')).toBe(body.status_url);
    expect(headers.get('retry-after')).toBe('2');
    expect((await api.get(body.status_url, org.adminKey)).body).toEqual(body);
  });

  it('of one organization works alone: the same again is the open run, another one waits for it', async () => {
    const org = await api.addOrganization();
    const first = await api.post(REPRICE, WINDOW, org.adminKey);
    const again = await api.post(REPRICE, WINDOW, org.adminKey);
    expect([again.status, again.body]).toEqual([202, { ...first.body, existing: true }]);
    for (const body of [
      { ...WINDOW, to: '2026-03-01' },
      { ...WINDOW, model: 'gpt-4o' },
      { ...WINDOW, provider: 'openai' },
    ]) {
      const refused = await api.post(REPRICE, body, org.adminKey);
      expect([refused.status, refused.body.code]).toEqual([409, 'reprice_in_progress']);
      expect(refused.body.message).toContain(first.body.id);
    }
    const other = await api.addOrganization();
    expect((await api.post(REPRICE, WINDOW, other.adminKey)).body.existing).toBeUndefined();
    const cancelled = await api.post(`${first.body.status_url}/cancel`, {}, org.adminKey);
    expect([cancelled.status, cancelled.body.status]).toEqual([202, 'cancelled']);
    expect(cancelled.body.result).toMatchObject({ events: 0, changed: 0, models: [], model_count: 0 });
    const twice = await api.post(`${first.body.status_url}/cancel`, {}, org.adminKey);
    expect([twice.status, twice.body.code]).toEqual([409, 'run_not_cancellable']);
    expect((await api.post(REPRICE, { ...WINDOW, model: 'gpt-4o' }, org.adminKey)).status).toBe(202);
    const { body } = await api.get(`${RUNS}?limit=1`, org.adminKey);
    expect(body).toMatchObject({ count: 1, has_more: true, runs: [{ model: 'gpt-4o', status: 'queued' }] });
    const over = await api.get(`${RUNS}?status=cancelled`, org.adminKey);
    expect(over.body.runs.map(({ id }: { id: string }) => id)).toEqual([first.body.id]);
  });

  it('names the models with the largest changes, fewer in a list of runs, and sums all of them', async () => {
    const org = await api.addOrganization();
    const run = (await api.post(REPRICE, WINDOW, org.adminKey)).body;
    await api.post(`${run.status_url}/cancel`, {}, org.adminKey);
    await api.database.superuser.query(
      `insert into reprice_totals (org_id, run_id, provider, model, events, changed, old_cost_usd, new_cost_usd,
         old_computed_cost_usd, new_computed_cost_usd, old_unpriced, new_unpriced)
       select $1, id, 'openai', 'm' || at, 2, 1, 1, 1 + case when at % 2 = 0 then 0.01 else -0.01 end * least(at, 1000), 1, 2, 1, 0
       from reprice_runs, generate_series(1, 1003) at where org_id = $1`,
      [org.orgId],
    );
    const { result } = (await api.get(run.status_url, org.adminKey)).body;
    expect(result).toMatchObject({ model_count: 1_003, events: 2_006, changed: 1_003, old_cost_usd: 1_003 });
    expect(result.old_unpriced_calls).toBe(1_003);
    expect(result.models).toHaveLength(1_000);
    const names = (models: { model: string }[]) => models.slice(0, 5).map(({ model }) => model);
    expect(names(result.models)).toEqual(['m1000', 'm1001', 'm1002', 'm1003', 'm999']);
    const [listed] = (await api.get(RUNS, org.adminKey)).body.runs;
    expect(listed.result).toEqual({ ...result, models: result.models.slice(0, 20) });
  });

  it('names what is wrong with a request: a missing or inverted window, one too long, an unknown name', async () => {
    const org = await api.addOrganization();
    const ask = async (body: object) => {
      const answer = await api.post(REPRICE, body, org.adminKey);
      return [answer.status, answer.body.code, answer.body.errors?.[0]?.field];
    };
    expect(await ask({ to: '2026-02-28' })).toEqual([400, 'invalid_body', 'from']);
    expect(await ask({ from: '2026-02-28', to: '2026-02-01' })).toEqual([400, 'invalid_range', 'from']);
    expect(await ask({ from: '2010-01-01', to: '2026-02-01' })).toEqual([400, 'invalid_range', 'from']);
    expect(await ask({ from: 'yesterday', to: '2026-02-01' })).toEqual([400, 'invalid_body', 'from']);
    const farthest = { from: '2016-01-30', to: '2026-02-05' };
    expect(await ask({ ...farthest, to: '2026-02-06' })).toEqual([400, 'invalid_range', 'from']);
    expect(await ask({ ...farthest, to: '2026-02-06T00:00:00.000001Z' })).toEqual([
      400,
      'invalid_range',
      'from',
    ]);
    // A slip in a filter's name would price everything again.
    expect((await ask({ ...WINDOW, modell: 'gpt-4o' })).slice(0, 2)).toEqual([400, 'invalid_body']);
    expect(await ask({ from: '2026-02-01', to: '2026-02-01' })).toEqual([202, undefined, undefined]);
    // The longest window is accepted: only the open run is in its way.
    for (const to of [farthest.to, '2026-02-06T00:00:00Z'])
      expect(await ask({ ...farthest, to })).toEqual([409, 'reprice_in_progress', undefined]);
  });

  it('needs pricing:write, its runs pricing:read, and another organization’s are not found', async () => {
    const org = await api.addOrganization();
    const other = await api.addOrganization();
    const member = await api.addKey(org.orgId, 'member');
    const refused = await api.post(REPRICE, WINDOW, member);
    expect([refused.status, refused.body.message]).toEqual([
      403,
      expect.stringContaining('admin role required'),
    ]);
    const { body: run } = await api.post(REPRICE, WINDOW, org.adminKey);
    expect((await api.get(run.status_url, member)).status).toBe(200);
    expect((await api.get(run.status_url, other.adminKey)).status).toBe(404);
    expect((await api.post(`${run.status_url}/cancel`, {}, other.adminKey)).status).toBe(404);
    expect((await api.post(`${run.status_url}/cancel`, {}, member)).status).toBe(403);
    expect((await api.get(RUNS, other.adminKey)).body.runs).toEqual([]);
    for (const id of ['x', run.id.replace('run_', 'imp_'), `run_${'0'.repeat(32)}`])
      expect((await api.get(`${RUNS}/${id}`, org.adminKey)).status).toBe(404);
  });
});
