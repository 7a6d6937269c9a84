import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { REPRICE_RUNS } from '../../db/pricing/repriceRuns.js';
import { insertRun } from '../../db/runs/runTable.js';
import { publicId } from '../../domain/ids.js';
import { picoFromDecimal } from '../../domain/money.js';
import { microsOfDay } from '../../domain/period.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { pollToEnd } from '../support/bills.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const REPRICE = '/api/v1/pricing/reprice';
const DAYS = 10;
/** Calls of a day: more than one batch would leave no day between two batches. */
const CALLS = 6;
const firstDay = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10);
const dayOf = (index: number) =>
  new Date(Date.parse(firstDay) + index * 86_400_000).toISOString().slice(0, 10);
const WINDOW = { from: firstDay, to: dayOf(DAYS - 1) };

let api: TestApi;
let engine: TestEngine;
let bundlePath: string;
const folder = makeTestFolder('repricing');

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, {
    repricePassMs: 0,
    sweep: { queuedSeconds: 0, silentSeconds: 0 },
  });
  bundlePath = await writeWorkflowBundle(folder);
});

afterAll(async () => {
  await engine?.close();
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Ten days of calls of two models at two providers, some with a reported cost, one model without a price. */
async function aBusyOrganization(): Promise<TestOrganization> {
  const organization = await api.addOrganization();
  const events = Array.from({ length: DAYS }, (_, day) =>
    Array.from({ length: CALLS }, (_, call) =>
      anEvent({
        timestamp: `${dayOf(day)}T0${call}:00:00Z`,
        ...(call % 3 === 0
          ? { provider: 'anthropic', model: 'claude-sonnet-4-5' }
          : { provider: 'openai', model: call === 5 ? 'in-house-7b' : 'gpt-4o' }),
        input_tokens: 100_000 + call,
        output_tokens: 10_000 + day,
        ...(call === 4 ? { cost_usd: 1.5 } : {}),
      }),
    ),
  ).flat();
  await ingest(api, events, organization.ingestKey);
  return organization;
}

/** Enters the organization's own prices, which apply from now on. */
async function enterPrices(organization: TestOrganization, input = 5): Promise<void> {
  for (const model of ['gpt-4o', 'in-house-7b']) {
    const body = { provider: 'openai', model, rates: { input, output: 20 }, effective_from: '2020-01-01' };
    const { status } = await api.post('/api/v1/pricing/overrides', body, organization.adminKey);
    expect(status).toBe(201);
  }
}

const start = async (organization: TestOrganization, body: object = WINDOW) => {
  const answer = await api.post(REPRICE, body, organization.adminKey);
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return answer.body;
};

const summaryOf = async (organization: TestOrganization) => {
  const { body } = await api.get(
    `/api/v1/usage/summary?from=${WINDOW.from}&to=${WINDOW.to}`,
    organization.adminKey,
  );
  return body;
};

const changedEvents = async (organization: TestOrganization) => {
  const { rows } = await api.database.superuser.query(
    'select count(*)::int as count from event_price_changes where org_id = $1',
    [organization.orgId],
  );
  return rows[0].count as number;
};

/** The stored prices of every event, with former ones. */
async function storedPrices(organization: TestOrganization): Promise<unknown[]> {
  const { rows } = await api.database.superuser.query(
    `select e.timestamp, e.model, e.cost_usd, e.computed_cost_usd, e.cost_source, e.price_gaps, c.old_cost_usd, c.new_cost_usd, c.old_cost_source
     from events e left join event_price_changes c on c.org_id = e.org_id and c.event_id = e.id
     where e.org_id = $1 order by e.timestamp`,
    [organization.orgId],
  );
  return rows;
}

/** Checks that a call's answer has its former cost, for its organization only. */
async function expectFormerPrice(organization: TestOrganization, runId: string): Promise<void> {
  const query = `/api/v1/events?model=in-house-7b&since=${WINDOW.from}&limit=1`;
  const { body } = await api.get(query, organization.adminKey);
  const { body: event } = await api.get(`/api/v1/events/${body.events[0].id}`, organization.adminKey);
  expect(event).toMatchObject({
    cost_source: 'computed',
    former_prices: [{ cost_usd: 0, computed_cost_usd: null, cost_source: 'unpriced', run_id: runId }],
  });
}

describe('a re-pricing', () => {
  it('prices the calls of its window by the organization’s current prices, keeps both prices, and lists its changes', async () => {
    const organization = await aBusyOrganization();
    const other = await aBusyOrganization();
    const before = await summaryOf(organization);
    const untouched = await storedPrices(other);
    await enterPrices(organization);
    const worker = await engine.startWorker();
    const done = await pollToEnd(
      api,
      (await start(organization)).status_url,
      undefined,
      organization.adminKey,
    );
    // 1, 2 and 4 are of gpt-4o, 5 of the model that had no price; 4 has a reported cost, which stays.
    expect(done).toMatchObject({
      kind: 'reprice',
      status: 'succeeded',
      progress: { done: DAYS, total: DAYS, percent: 100 },
      error: null,
      result: { events: DAYS * CALLS, changed: DAYS * 4, old_unpriced_calls: DAYS, new_unpriced_calls: 0 },
    });
    const after = await summaryOf(organization);
    expect(done.result.old_cost_usd).toBe(before.total_cost_usd);
    expect(done.result.new_cost_usd).toBe(after.total_cost_usd);
    expect(done.result.new_computed_cost_usd).toBe(after.computed_cost_usd);
    expect(after.reported_cost_usd).toBe(before.reported_cost_usd);
    expect(after.unpriced_calls).toBe(0);
    const [first] = done.result.models;
    expect(done.result.models.length).toBe(3);
    expect(first).toMatchObject({ provider: 'openai', model: 'in-house-7b', events: DAYS, changed: DAYS });
    const sum = done.result.models.reduce(
      (total: bigint, model: { new_cost_usd_exact: string }) =>
        total + (picoFromDecimal(model.new_cost_usd_exact) ?? 0n),
      0n,
    );
    expect(sum).toBe(picoFromDecimal(done.result.new_cost_usd_exact));
    expect(await storedPrices(other)).toEqual(untouched);
    await expectFormerPrice(organization, done.run_id);
    const again = await pollToEnd(
      api,
      (await start(organization)).status_url,
      undefined,
      organization.adminKey,
    );
    expect(again.result).toMatchObject({
      events: DAYS * CALLS,
      changed: 0,
      old_cost_usd: after.total_cost_usd,
    });
    await worker.stop();
  });

  it('takes only the provider and the model that are named', async () => {
    const organization = await aBusyOrganization();
    await enterPrices(organization);
    const worker = await engine.startWorker();
    const run = await start(organization, { ...WINDOW, provider: 'OpenAI', model: 'gpt-4o' });
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect(done).toMatchObject({
      provider: 'openai',
      model: 'gpt-4o',
      result: { events: DAYS * 3, changed: DAYS * 3 },
    });
    expect((await summaryOf(organization)).unpriced_calls).toBe(DAYS);
    await worker.stop();
  });

  it('that is cancelled stops where it is, and what was priced stays so', async () => {
    const organization = await aBusyOrganization();
    await enterPrices(organization);
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let batches = 0;
    const worker = await engine.startWorker((activities) => ({
      repriceEvents: async (run) => {
        batches += 1;
        if (batches > 3) await gate;
        return activities.repriceEvents(run);
      },
    }));
    const run = await start(organization);
    await until(
      'three days',
      () => changedEvents(organization),
      (count) => count === 12,
    );
    const asked = await api.post(`${run.status_url}/cancel`, {}, organization.adminKey);
    expect([asked.status, asked.body.progress.stage]).toEqual([202, 'cancelling']);
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect(done).toMatchObject({ status: 'cancelled', result: { events: 3 * CALLS, changed: 12 } });
    release();
    await worker.stop();
    expect(await changedEvents(organization)).toBe(12);
  });

  it('that meets changed prices ends partial and states why: one state of the prices holds for a whole run', async () => {
    const organization = await aBusyOrganization();
    await enterPrices(organization);
    let batches = 0;
    const worker = await engine.startWorker((activities) => ({
      repriceEvents: async (run) => {
        batches += 1;
        if (batches === 4) await enterPrices(organization, 6);
        return activities.repriceEvents(run);
      },
    }));
    const done = await pollToEnd(
      api,
      (await start(organization)).status_url,
      undefined,
      organization.adminKey,
    );
    expect(done).toMatchObject({ status: 'partial', error: { code: 'prices_changed' } });
    expect(done.result.events).toBeLessThan(DAYS * CALLS);
    await worker.stop();
  });

  it('that lost its message, or whose workflow Temporal has lost, is started by the sweeper', async () => {
    const organization = await aBusyOrganization();
    await enterPrices(organization);
    for (const status of ['queued', 'running']) {
      const id = randomUUID();
      await insertRun(organization.orgDb, REPRICE_RUNS, {
        id,
        windowStartMicros: microsOfDay(WINDOW.from),
        windowEndMicros: microsOfDay(WINDOW.to),
        provider: null,
        model: null,
        requestedBy: null,
      });
      await api.database.superuser.query('update reprice_runs set status = $2 where id = $1', [id, status]);
      await engine.sweeper.sweep();
      const worker = await engine.startWorker();
      const url = `/api/v1/pricing/reprice-runs/${publicId('run', id)}`;
      const done = await pollToEnd(api, url, undefined, organization.adminKey);
      expect(done.status).toBe('succeeded');
      await worker.stop();
    }
  });
});

describe('exactly once', () => {
  it('a killed worker’s run is finished by another, as if nothing had happened', {
    timeout: 300_000,
  }, async () => {
    const reference = await aBusyOrganization();
    const organization = await aBusyOrganization();
    await enterPrices(reference);
    await enterPrices(organization);
    const undisturbed = await engine.startWorker();
    const expected = await pollToEnd(api, (await start(reference)).status_url, undefined, reference.adminKey);
    await undisturbed.stop();
    const run = await start(organization);
    for (let round = 0; round < 2; round += 1) {
      const goOn = await pauseWorkers(api.database.superuser, {
        write: 'insert',
        table: 'event_price_changes',
        condition: `(select count(*) from event_price_changes) >= ${(round + 1) * 8}`,
      });
      const victim = await spawnWorker({
        databaseUrl: api.database.url,
        address: inject('temporalAddress'),
        namespace: TEST_NAMESPACE,
        taskQueue: engine.taskQueue,
        bundlePath,
      });
      await until(
        'batches of the killed worker',
        () => changedEvents(organization),
        (count) => count >= (round + 1) * 8,
      );
      await killHard(victim);
      await goOn();
    }
    expect(await changedEvents(organization)).toBeLessThan(DAYS * 4);
    const other = await engine.startWorker();
    const done = await pollToEnd(api, run.status_url, 180_000, organization.adminKey);
    expect(done.status).toBe('succeeded');
    expect({ ...done.result, price_version: null }).toEqual({ ...expected.result, price_version: null });
    expect(await storedPrices(organization)).toEqual(await storedPrices(reference));
    expect((await summaryOf(organization)).total_cost_usd).toBe(done.result.new_cost_usd);
    await other.stop();
  });
});
