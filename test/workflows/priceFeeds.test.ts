import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { priceFeedScheduleId, WORKFLOW_NAMES } from '../../workflows/contract.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';
import { fetchFrom, litellmModel, startPriceFeed } from '../support/priceFeed.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

const PROPOSALS = '/api/v1/pricing/proposals';
/** Longest time of a fetch: a busy machine takes a while to send 6 MB. */
const FETCH_MS = 1_500;
const NOW = new Date(Date.now() - 3_600_000).toISOString();

let api: TestApi;
let connection: Connection;
let client: Client;
let engine: TestEngine;
let first: Awaited<ReturnType<typeof startPriceFeed>>;
let second: Awaited<ReturnType<typeof startPriceFeed>>;

beforeAll(async () => {
  [first, second] = await Promise.all([startPriceFeed(), startPriceFeed()]);
  const priceFeeds = [
    { name: 'first', url: first.url },
    { name: 'second', url: second.url },
  ];
  api = await startTestApi({ priceFeeds });
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
  const fetchPriceFile = fetchFrom([first.host, second.host], FETCH_MS);
  engine = await startTestEngine(api.database.database, { priceFeeds, fetchPriceFile });
  await engine.startWorker();
  second.file = { 'feed-two': litellmModel(1, 2) };
}, 60_000);
afterEach(() => {
  first.answer = undefined;
});
afterAll(async () => {
  await engine.close();
  await connection.close();
  await api.close();
  await Promise.all([first.close(), second.close()]);
});

const run = () =>
  client.workflow.execute(WORKFLOW_NAMES.priceFeeds, {
    workflowId: `prices-${randomUUID()}`,
    taskQueue: engine.taskQueue,
  });

function offer(file: object): void {
  first.file = file;
  first.etag = `"${randomUUID()}"`;
}

const list = async (query = '', key?: string) => (await api.get(`${PROPOSALS}${query}`, key)).body;
const openOf = async (model: string) => (await list(`?status=open&model=${model}`)).proposals;

describe('a run of the price feeds', () => {
  it('proposes a changed price and a new model with the cost of the calls of 30 days, and applies nothing', async () => {
    await ingest(api, [
      anEvent({ model: 'gpt-4o-mini', input_tokens: 1_000_000, output_tokens: 100_000, timestamp: NOW }),
      anEvent({ model: 'gpt-brandnew', input_tokens: 2_000_000, output_tokens: 0, timestamp: NOW }),
    ]);
    offer({ 'gpt-4o-mini': litellmModel(0.2, 0.8), 'gpt-brandnew': litellmModel(3, 9) });
    await run();
    const [changed] = await openOf('gpt-4o-mini');
    expect(changed).toMatchObject({
      ...{ feed: 'first', source: 'litellm', kind: 'changed', provider: 'openai', is_jump: false },
      rates: [
        { tier: 'standard', rate_class: 'input', current: 0.15, proposed: 0.2 },
        { tier: 'standard', rate_class: 'output', current: 0.6, proposed: 0.8 },
      ],
      effect: { days: 30, calls: 1, current_cost_usd: 0.21, proposed_cost_usd: 0.28, change_usd: 0.07 },
    });
    expect(await openOf('gpt-brandnew')).toMatchObject([
      {
        kind: 'new',
        rates: [{ current: null }, { current: null }],
        // Absent is not zero: the calls have no price now.
        effect: { calls: 1, current_cost_usd: null, proposed_cost_usd: 6, change_usd: null },
      },
    ]);
    expect((await list()).feeds).toMatchObject([
      { name: 'first', error: null },
      { name: 'second', error: null },
    ]);
    expect((await api.get('/api/v1/pricing/overrides')).body.overrides).toEqual([]);
  });

  it('changes nothing when it is repeated, and sends the ETag back', async () => {
    const before = (await list()).proposals.map(({ id, status }: { id: string; status: string }) => [
      id,
      status,
    ]);
    first.requests.length = 0;
    await run();
    expect(first.requests.map((headers) => headers['if-none-match'])).toEqual([first.etag]);
    const after = (await list()).proposals.map(({ id, status }: { id: string; status: string }) => [
      id,
      status,
    ]);
    expect(after).toEqual(before);
  });

  it('does not propose dismissed rates again; a newer difference supersedes an open proposal', async () => {
    const [changed] = await openOf('gpt-4o-mini');
    const dismissed = await api.post(`${PROPOSALS}/${changed.id}/dismiss`, { reason: 'a typing error' });
    expect(dismissed).toMatchObject({ status: 200, body: { status: 'dismissed', reason: 'a typing error' } });
    await run();
    expect(await openOf('gpt-4o-mini')).toEqual([]);
    offer({ 'gpt-4o-mini': litellmModel(0.25, 0.8), 'gpt-brandnew': litellmModel(4, 9) });
    await run();
    expect(await openOf('gpt-4o-mini')).toHaveLength(1);
    expect((await list('?model=gpt-brandnew')).proposals).toMatchObject([
      { status: 'open', rates: [{ proposed: 4 }, { proposed: 9 }] },
      { status: 'superseded', rates: [{ proposed: 3 }, { proposed: 9 }] },
    ]);
  });

  it('makes an override of one applied by two people at once; the second is told who decided', async () => {
    const [{ id }] = await openOf('gpt-brandnew');
    const path = `${PROPOSALS}/${id}/apply`;
    const answers = await Promise.all([api.post(path, {}), api.post(path, {})]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const refused = answers.find(({ status }) => status === 409)?.body;
    expect(refused).toMatchObject({ code: 'already_decided' });
    expect(refused.detail).toMatch(/applied this proposal at .*nothing was changed now/);
    const { overrides } = (await api.get('/api/v1/pricing/overrides')).body;
    expect(overrides).toMatchObject([{ model: 'gpt-brandnew', rates: { input: 4, output: 9 } }]);
    expect((await list('?status=applied')).proposals).toMatchObject([{ id, override_id: overrides[0].id }]);
    await run();
    expect(await openOf('gpt-brandnew')).toEqual([]);
  });

  it('applies rates of other tiers too', async () => {
    const tiered = {
      ...litellmModel(0.15, 0.6),
      input_cost_per_token_priority: 0.4 / 1e6,
      output_cost_per_token_priority: 1.2 / 1e6,
    };
    offer({ 'gpt-4o-mini': tiered });
    await run();
    const [proposal] = await openOf('gpt-4o-mini');
    expect(proposal.rates.map(({ tier }: { tier: string }) => tier)).toContain('priority');
    expect((await api.post(`${PROPOSALS}/${proposal.id}/apply`, {})).status).toBe(200);
    const { overrides } = (await api.get('/api/v1/pricing/overrides?model=gpt-4o-mini')).body;
    expect(overrides[0].tiers).toMatchObject([
      { service_tier: 'priority', rates: { input: 0.4, output: 1.2 } },
    ]);
    await run();
    expect(await openOf('gpt-4o-mini')).toEqual([]);
  });

  it('refuses to apply a proposal whose present price has changed since', async () => {
    offer({ 'gpt-4o': litellmModel(2.6, 10) });
    await run();
    const [{ id }] = await openOf('gpt-4o');
    const override = {
      provider: 'openai',
      model: 'gpt-4o',
      effective_from: '2026-01-01',
      rates: { input: 2.4 },
    };
    expect((await api.post('/api/v1/pricing/overrides', override)).status).toBe(201);
    expect(await api.post(`${PROPOSALS}/${id}/apply`, {})).toMatchObject({
      status: 409,
      body: { code: 'already_decided', detail: expect.stringContaining('has changed since') },
    });
  });

  it('lists pages as CSV with exact decimals, to its own organization alone', async () => {
    const csv = (await api.get(`${PROPOSALS}?format=csv&status=dismissed`)).body as string;
    expect(csv.split('\r\n')[1]).toContain('standard input 0.15 → 0.2');
    const stranger = await api.addOrganization('stranger');
    expect((await list('?status=dismissed', stranger.adminKey)).proposals).toEqual([]);
  });
});

describe('a feed that cannot be read', () => {
  it.each<[string, (response: import('node:http').ServerResponse) => void, RegExp, number]>([
    ['broken JSON', (response) => response.end('{"a":'), /JSON|end/i, 1],
    ['6 MB', (response) => response.end(Buffer.alloc(6_000_000, ' ')), /larger than 5242880 bytes/, 1],
    [
      'a redirect',
      (response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
      /redirects \(302\)/,
      1,
    ],
    ['no answer in time, after retries', () => undefined, /did not answer within 1.5 s/, 4],
  ])(
    'is shown with its reason after %s, while the other feed is read',
    async (_name, answer, reason, tries) => {
      first.answer = answer;
      first.requests.length = 0;
      second.file = { [`two-${randomUUID()}`]: litellmModel(1, 2) };
      second.etag = `"${randomUUID()}"`;
      await run();
      const { feeds } = await list();
      expect(feeds[0].error).toMatch(reason);
      expect(feeds[1].error).toBeNull();
      expect(first.requests).toHaveLength(tries);
      expect(await openOf(Object.keys(second.file)[0] as string)).toHaveLength(1);
    },
    30_000,
  );
});

describe('the schedule of the price feeds', () => {
  const handle = () => client.schedule.getHandle(priceFeedScheduleId(engine.taskQueue));

  it('is made where feeds are set, at five in the morning, again after Temporal has lost it, and removed where none are', async () => {
    await engine.schedules.reconcile();
    expect((await handle().describe()).spec.intervals).toEqual([
      expect.objectContaining({ every: 86_400_000, offset: 18_000_000 }),
    ]);
    await handle().delete();
    await engine.schedules.reconcile();
    await handle().describe();
    const without = await startTestEngine(api.database.database);
    await without.schedules.reconcile();
    await expect(
      client.schedule.getHandle(priceFeedScheduleId(without.taskQueue)).describe(),
    ).rejects.toThrow();
    await without.close();
    await handle().delete();
  });
});
