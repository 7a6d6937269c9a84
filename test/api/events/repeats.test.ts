import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aSpan, aTime, aTrace, type RawAnswer, send } from '../support/requests.js';

/** Two API processes over one database, each with its writer, price book and key cache. */
let one: TestApi;
let other: TestApi;

beforeAll(async () => {
  one = await startTestApi();
  other = await startTestApi({ database: one.database });
});
afterAll(async () => {
  await other.close();
  await one.close();
});

const BATCH = 40;
const REPEATS = 50;

async function post(api: TestApi, org: TestOrganization, path: string, body: object): Promise<RawAnswer> {
  return send(api, {
    path,
    key: org.ingestKey,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
}

/** An organization's stored rows, read without the API: rows, distinct rows, live ones, and their exact cost. */
async function storedOf(org: TestOrganization) {
  const { rows } = await one.database.superuser.query(
    `select count(*)::int as rows, count(distinct (timestamp, api_key_hash, model, provider))::int as calls,
       count(*) filter (where superseded_by is null)::int as live, sum(cost_usd) filter (where superseded_by is null)::text as cost
     from events where org_id = $1`,
    [org.orgId],
  );
  return rows[0];
}

describe('50 identical batches in parallel', () => {
  it.each([
    ['over one API server', () => [one]],
    ['over two API servers on one database', () => [one, other]],
  ])('store each event once, %s, and all answer the same count', async (_, servers) => {
    const org = await one.addOrganization();
    const apis = servers();
    const events = Array.from({ length: BATCH }, (_, index) =>
      anEvent({ timestamp: aTime(index), cost_usd: 0.01 }),
    );
    const answers = await Promise.all(
      Array.from({ length: REPEATS }, (_, index) =>
        post(apis[index % apis.length] as TestApi, org, '/api/v1/ingest/events', { events }),
      ),
    );
    for (const answer of answers)
      expect([answer.status, answer.body.accepted, answer.body.rejected]).toEqual([202, BATCH, []]);
    const duplicates = answers.reduce((sum, answer) => sum + answer.body.duplicates, 0);
    expect(duplicates).toBe(BATCH * (REPEATS - 1));
    expect(await storedOf(org)).toEqual({ rows: BATCH, calls: BATCH, live: BATCH, cost: '0.400000000000' });
    const summary = (await other.get('/api/v1/usage/summary', org.adminKey)).body;
    expect([summary.call_count, summary.total_cost_usd]).toEqual([BATCH, 0.4]);
  });

  it('of spans with response ids, reordered and split differently, store each call once', async () => {
    const org = await one.addOrganization();
    const spans = Array.from({ length: BATCH }, (_, index) =>
      aSpan({ 'gen_ai.response.id': `resp-${org.orgId}-${index}`, 'gen_ai.response.cost_usd': 0.01 }),
    );
    const answers = await Promise.all(
      Array.from({ length: REPEATS }, async (_, index) => {
        const api = index % 2 === 0 ? one : other;
        const shuffled = index % 3 === 0 ? [...spans].reverse() : spans;
        const cut = (index * 7) % BATCH;
        const parts = [shuffled.slice(0, cut), shuffled.slice(cut)].filter((part) => part.length > 0);
        const sent = await Promise.all(
          parts.map((part) => post(api, org, '/api/v1/ingest/trace', aTrace(...part))),
        );
        return sent.map((answer, part) => [answer.status, answer.body.accepted === parts[part]?.length]);
      }),
    );
    expect(answers.flat().every(([status, isWhole]) => status === 202 && isWhole)).toBe(true);
    expect(await storedOf(org)).toEqual({ rows: BATCH, calls: BATCH, live: BATCH, cost: '0.400000000000' });
  });

  it('of calls that two clients report, each by a span of its own, count each call once', async () => {
    const org = await one.addOrganization();
    const calls = Array.from({ length: 10 }, (_, index) => `chatcmpl-${org.orgId}-${index}`);
    const told = calls.map((id) => ({
      span: aTrace(
        aSpan({
          'gen_ai.response.id': id,
          'gen_ai.usage.input_tokens': 1_000,
          'gen_ai.usage.output_tokens': 10,
        }),
      ),
      event: {
        events: [
          anEvent({
            request_id: id,
            timestamp: aTime(1),
            input_tokens: 1_000,
            output_tokens: 10,
            team_id: 't1',
          }),
        ],
      },
    }));
    const requests = told.flatMap(({ span, event }) => [
      () => post(one, org, '/api/v1/ingest/trace', span),
      () => post(other, org, '/api/v1/ingest/events', event),
      () => post(other, org, '/api/v1/ingest/trace', span),
      () => post(one, org, '/api/v1/ingest/events', event),
    ]);
    const answers = await Promise.all(requests.map((ask) => ask()));
    expect(answers.map((answer) => [answer.status, answer.body.accepted])).toEqual(
      requests.map(() => [202, 1]),
    );
    const stored = await storedOf(org);
    expect([stored.rows, stored.live]).toEqual([20, 10]);
    const summary = (await one.get('/api/v1/usage/summary', org.adminKey)).body;
    expect([summary.call_count, summary.total_input_tokens]).toEqual([10, 10_000]);
    const teams = (await one.get('/api/v1/usage/summary?group_by=team', org.adminKey)).body.breakdown;
    expect(teams.map((team: { key: string; call_count: number }) => [team.key, team.call_count])).toEqual([
      ['t1', 10],
    ]);
  });
});

describe('reports of one call that arrive at the same time, over two API servers', () => {
  it('end as one event each, which contains what every report contained', async () => {
    for (let round = 0; round < 5; round += 1) {
      const org = await one.addOrganization();
      const ids = Array.from({ length: 8 }, (_, index) => `chatcmpl-${org.orgId}-${round}-${index}`);
      const label = (id: string, second: number, labels: object) => [
        anEvent({
          request_id: id,
          timestamp: aTime(second),
          input_tokens: 1_000,
          output_tokens: 10,
          ...labels,
        }),
      ];
      const requests = ids.flatMap((id) => [
        // Poor, richer and richest: each may find any other one standing for the call.
        { events: label(id, 1, { team_id: 't1', input_tokens: undefined, output_tokens: undefined }) },
        { events: label(id, 2, { feature: 'f1', output_tokens: undefined }) },
        { events: label(id, 3, { user_id: 'u1' }) },
        { events: label(id, 4, { project_id: 'p1', cache_read: 5 }) },
        { events: label(id, 5, { session_id: 's1', cache_read: 5, cache_creation: 0 }) },
      ]);
      await Promise.all(
        requests.map((body, index) =>
          post(index % 2 === 0 ? one : other, org, '/api/v1/ingest/events', body),
        ),
      );
      const { events } = (await one.get('/api/v1/events', org.adminKey)).body;
      expect(events.map((event: { request_id: string }) => event.request_id).sort()).toEqual([...ids].sort());
      for (const event of events) {
        expect(event).toMatchObject({
          team_id: 't1',
          feature: 'f1',
          user_id: 'u1',
          project_id: 'p1',
          session_id: 's1',
        });
        expect([event.input_tokens, event.cache_read, event.output_tokens]).toEqual([1_000, 5, 10]);
      }
      const summary = (await other.get('/api/v1/usage/summary?group_by=user', org.adminKey)).body;
      expect(
        summary.breakdown.map((user: { key: string; call_count: number }) => [user.key, user.call_count]),
      ).toEqual([['u1', ids.length]]);
    }
  });
});

describe('two organizations that send the very same call', () => {
  it('have an event each', async () => {
    const [a, b] = [await one.addOrganization(), await one.addOrganization()];
    const body = aTrace(aSpan({ 'gen_ai.response.id': 'resp-shared' }));
    for (const org of [a, b])
      expect((await post(one, org, '/api/v1/ingest/trace', body)).body).toMatchObject({
        accepted: 1,
        duplicates: 0,
      });
    for (const org of [a, b]) expect((await storedOf(org)).live).toBe(1);
  });
});
