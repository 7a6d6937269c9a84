import { heartbeat } from '@temporalio/activity';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Activities } from '../../activities/index.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { generateBills } from '../support/billGenerator.js';
import { importBill, uploadBill } from '../support/bills.js';
import { type RunningWorker, startTestEngine, type TestEngine, until } from '../support/engine.js';
import { aGate, pollToFinal } from '../support/runAnswers.js';

const EXPLORER = '/api/v1/reconciliation/gap-explorer';
const SAVINGS = '/api/v1/enforcement/savings';
const DAY_MS = 86_400_000;
const dayAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
const bills = generateBills({ seed: 9, lastDay: dayAgo(4), days: 3, callsPerHour: 1 });

let api: TestApi;
let engine: TestEngine;
let worker: RunningWorker | undefined;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, {
    sweep: { queuedSeconds: 0, silentSeconds: 0 },
    repricePassMs: 0,
  });
}, 300_000);
afterEach(() => stopWorker());
afterAll(async () => {
  await engine?.close();
  await api?.close();
});

async function startWorker(replace?: (activities: Activities) => Partial<Activities>): Promise<void> {
  worker = await engine.startWorker(replace);
}
/** Waits for work in progress. */
async function stopWorker(): Promise<void> {
  await worker?.stop();
  worker = undefined;
}
/** Waits until all work in progress has ended, and all remaining work was checked. */
async function settle(): Promise<void> {
  await stopWorker();
  await startWorker();
  await engine.sweeper.sweep();
  await stopWorker();
}

const post = async (path: string, body: object, org: TestOrganization) => {
  const answer = await api.post(path, body, org.adminKey);
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return answer.body;
};
const cancel = async (run: { status_url: string }, org: TestOrganization) =>
  (await post(`${run.status_url}/cancel`, {}, org)).progress;

async function aBilledOrganization(): Promise<TestOrganization> {
  const org = await api.addOrganization();
  await startWorker();
  await importBill(api, bills.files.openaiCosts, { provider: 'openai' }, org.adminKey);
  await stopWorker();
  return org;
}

/** Has work wait at a gate, as a live activity does that does not look whether it was cancelled. */
function held<A, R>(work: (input: A) => Promise<R>, gate: ReturnType<typeof aGate>) {
  return async (input: A): Promise<R> => {
    const beat = setInterval(() => heartbeat(), 1_000);
    await gate.pass().finally(() => clearInterval(beat));
    return work(input);
  };
}

type Held = (activities: Activities, gate: ReturnType<typeof aGate>) => Partial<Activities>;
const STAGES: [stage: string, hold: Held][] = [
  ['planning', ({ planGapRun }, gate) => ({ planGapRun: held(planGapRun, gate) })],
  ['matching', ({ matchProviderDay }, gate) => ({ matchProviderDay: held(matchProviderDay, gate) })],
  ['explaining', ({ explainRunAccount }, gate) => ({ explainRunAccount: held(explainRunAccount, gate) })],
  ['publishing', ({ publishRunFindings }, gate) => ({ publishRunFindings: held(publishRunFindings, gate) })],
];

describe('a gap run that is cancelled', () => {
  it('before it began ends at once, and its answer stays', { timeout: 300_000 }, async () => {
    const org = await aBilledOrganization();
    const run = await post(`${EXPLORER}/run`, {}, org);
    expect(await cancel(run, org)).toEqual({ stage: 'cancelled', done: 0, total: 0, percent: 0 });
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'cancelled', result: null, error: null });
    await final.expectUnchanged(settle);
  });

  it.each(STAGES)(
    'while %s publishes nothing, and its answer stays when late work is done',
    {
      timeout: 300_000,
    },
    async (_stage, hold) => {
      const org = await aBilledOrganization();
      const gate = aGate();
      await startWorker((activities) => hold(activities, gate));
      const run = await post(`${EXPLORER}/run`, {}, org);
      await gate.reached;
      expect((await cancel(run, org)).stage).toBe('cancelling');
      // Where Temporal waits for the work itself, the run ends with it.
      const opened = new Promise((resolve) => setTimeout(resolve, 1_000)).then(gate.open);
      const final = await pollToFinal(api, run.status_url, org);
      expect(final.body).toMatchObject({ status: 'cancelled', result: null, error: null });
      await final.expectUnchanged(async () => {
        await opened;
        await settle();
      });
      expect((await api.get(EXPLORER, org.adminKey)).body.total).toBe(0);
    },
  );

  it('and whose workflow Temporal has lost ends cancelled all the same', { timeout: 300_000 }, async () => {
    const org = await aBilledOrganization();
    const run = await post(`${EXPLORER}/run`, {}, org);
    // Simulates a run that had begun before Temporal lost its data.
    await org.orgDb.run(
      `update gap_runs set status = 'running', stage = 'matching', total_units = 5, done_units = 2 where org_id = $1`,
      [org.orgId],
    );
    await api.database.superuser.query('delete from outbox where org_id = $1', [org.orgId]);
    expect((await cancel(run, org)).stage).toBe('cancelling');
    await startWorker();
    await engine.sweeper.sweep();
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'cancelled', progress: { percent: 40 } });
    expect((await api.get(EXPLORER, org.adminKey)).body.total).toBe(0);
  });
});

describe('an import', () => {
  it('has its final answer with its final status', { timeout: 300_000 }, async () => {
    const org = await api.addOrganization();
    await startWorker();
    const { body: run } = await uploadBill(
      api,
      bills.files.openaiCosts,
      { provider: 'openai' },
      { key: org.adminKey },
    );
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body.status).toBe('succeeded');
    await final.expectUnchanged(settle);
  });

  it('that cannot be read ends failed, below 100 percent', { timeout: 300_000 }, async () => {
    const org = await api.addOrganization();
    await startWorker();
    const { body: run } = await uploadBill(
      api,
      '{"data":[oops]}',
      { provider: 'openai' },
      { key: org.adminKey },
    );
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'failed', error: { code: 'invalid_billing_file' } });
    await final.expectUnchanged(settle);
  });
});

describe('a re-pricing', () => {
  const aBusyOrganization = async () => {
    const org = await api.addOrganization();
    const events = [5, 6, 7].map((days) => anEvent({ timestamp: `${dayAgo(days)}T12:00:00Z` }));
    await ingest(api, events, org.ingestKey);
    return org;
  };
  const window = { from: dayAgo(8), to: dayAgo(3) };

  it('has its final answer with its final status', { timeout: 300_000 }, async () => {
    const org = await aBusyOrganization();
    await startWorker();
    const run = await post('/api/v1/pricing/reprice', window, org);
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'succeeded', result: { events: 3 } });
    await final.expectUnchanged(settle);
  });

  it('that is cancelled shows how far it came, and late work changes nothing of it', {
    timeout: 300_000,
  }, async () => {
    const org = await aBusyOrganization();
    const gate = aGate();
    let passes = 0;
    await startWorker(({ repriceEvents }) => ({
      repriceEvents: (ref) => {
        passes += 1;
        return passes > 2 ? held(repriceEvents, gate)(ref) : repriceEvents(ref);
      },
    }));
    const run = await post('/api/v1/pricing/reprice', window, org);
    await gate.reached;
    expect((await cancel(run, org)).stage).toBe('cancelling');
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body.status).toBe('cancelled');
    expect(final.body.progress.done).toBeGreaterThan(0);
    expect(final.body.progress.done).toBeLessThan(final.body.progress.total);
    await final.expectUnchanged(async () => {
      gate.open();
      await settle();
    });
  });

  it('that is cancelled before it began ends at once', { timeout: 300_000 }, async () => {
    const org = await aBusyOrganization();
    const run = await post('/api/v1/pricing/reprice', window, org);
    expect(await cancel(run, org)).toMatchObject({ stage: 'cancelled', percent: 0 });
    const final = await pollToFinal(api, run.status_url, org);
    await final.expectUnchanged(settle);
  });
});

describe('a savings run', () => {
  it('keeps its answer when newer results take its place', { timeout: 300_000 }, async () => {
    const org = await api.addOrganization();
    await ingest(api, [anEvent({ timestamp: `${dayAgo(5)}T12:00:00Z` })], org.ingestKey);
    await startWorker();
    const first = await post(`${SAVINGS}/runs`, {}, org);
    const final = await pollToFinal(api, first.status_url, org);
    expect(final.body.status).toBe('succeeded');
    await final.expectUnchanged(async () => {
      for (let more = 0; more < 3; more += 1)
        await pollToFinal(api, (await post(`${SAVINGS}/runs`, {}, org)).status_url, org);
      await until(
        'the removal of the first result',
        () => api.get(`${SAVINGS}/calls?run_id=${first.run_id}`, org.adminKey),
        ({ status }) => status === 400,
      );
      await settle();
    });
  });
});
