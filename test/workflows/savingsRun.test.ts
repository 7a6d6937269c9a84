import { rmSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { holdSavingsRun, takeSavingsRun } from '../../db/policies/savingsRuns.js';
import { findUuid } from '../../domain/ids.js';
import { picoFromDecimal } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { queueSavingsRun } from '../../usecases/policies/savings.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { pollToEnd } from '../support/bills.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { type PlainOutcome, type PlainRule, plainFindings, plainReplay } from '../support/plainReplay.js';
import { isLongRun } from '../support/propertyRuns.js';
import { MONTH_RULES, type SeededMonth, seedMonth } from '../support/savingsMonth.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const SAVINGS = '/api/v1/enforcement/savings';
const RULES = '/api/v1/enforcement-rules';
const CALLS = 700;
/** Enough calls that a run takes a while, with the small pages that it has here. */
const MANY_CALLS = 2_500;
const CENT = 10_000_000_000n;

let api: TestApi;
let engine: TestEngine;
const folder = makeTestFolder('savings');

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, {
    replayPageCalls: 7,
    sweep: { queuedSeconds: 0, silentSeconds: 0 },
  });
});

afterAll(async () => {
  await engine?.close();
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Place {
  organization: TestOrganization;
  month: SeededMonth;
  rules: PlainRule[];
}

/** An organization with a month of calls, sent in the given order, and rules; no savings run has ended yet. */
async function aMonth(
  seed: number,
  { calls = CALLS, order = 'forwards' }: { calls?: number; order?: 'forwards' | 'backwards' } = {},
): Promise<Place> {
  const organization = await api.addOrganization();
  const month = seedMonth({ seed, calls, nowMs: Date.now() });
  const events = order === 'forwards' ? month.events : [...month.events].reverse();
  for (let from = 0; from < events.length; from += 500)
    await ingest(api, events.slice(from, from + 500), organization.ingestKey);
  const rules: PlainRule[] = [];
  for (const { body, plain } of MONTH_RULES) {
    const { status, body: rule } = await api.post(RULES, body, organization.adminKey);
    expect(status, JSON.stringify(rule)).toBe(201);
    rules.push({ id: rule.id, ...plain });
  }
  return { organization, month, rules };
}

/** Cancels a workflow as an operator of Temporal may. */
async function cancel({ orgId }: TestOrganization, runId: string): Promise<void> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const workflowId = runWorkflowId('savings_run', { orgId, id: findUuid('run', runId) ?? '' });
  await client.workflow.getHandle(workflowId).cancel();
  await connection.close();
}

const get = async (organization: TestOrganization, path: string) => {
  const answer = await api.get(path, organization.adminKey);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};

/** Starts a run, or joins the open one, and waits for its end. */
async function model(organization: TestOrganization, body: object = {}) {
  const answer = await api.post(`${SAVINGS}/runs`, body, organization.adminKey);
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return pollToEnd(api, answer.body.status_url, 180_000, organization.adminKey);
}

/** Every call of the result, page by page. */
async function allCalls(organization: TestOrganization, query = '') {
  const calls = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await get(organization, `${SAVINGS}/calls?limit=100${query}${more}`);
    calls.push(...page.calls);
    cursor = page.next_cursor;
  }
  return calls;
}

const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
const pico = (text: string) => picoFromDecimal(text) ?? 0n;
const shown = (usd: number) => pico(String(usd));
const near = (amount: bigint, exact: bigint) => amount - exact < CENT && exact - amount < CENT;

/** The result equals the plain replay, rule by rule and call by call. */
async function expectPlain({ organization, month, rules }: Place): Promise<PlainOutcome[]> {
  const outcomes = plainReplay(rules, month.calls);
  const savings = await get(organization, SAVINGS);
  const expected = rules.map(({ id }) => ({ id, ...plainFindings(id, outcomes) }));
  expect(savings.modeled.calls).toBe(month.calls.length);
  const found = savings.modeled.by_rule.map((rule: Record<string, unknown>) => ({
    id: rule.rule_id,
    asked: rule.asked_calls,
    blocked: rule.blocked_calls,
    downgraded: rule.downgraded_calls,
    saved: pico(String(rule.preventable_modeled_usd_exact)),
    unpriced: rule.unpriced_calls,
    unjudged: Object.fromEntries(
      (rule.unjudged as { reason: string; calls: number }[]).map(({ reason, calls }) => [reason, calls]),
    ),
  }));
  expect(found).toEqual(expected);
  // To the cent, and the shown rows sum to the shown total.
  const total = sum(expected.map(({ saved }) => saved));
  const rows = savings.modeled.by_rule.map((rule: { preventable_modeled_usd: number }) =>
    shown(rule.preventable_modeled_usd),
  );
  expect(shown(savings.preventable_modeled_usd)).toBe(((total + CENT / 2n) / CENT) * CENT);
  expect(sum(rows)).toBe(shown(savings.preventable_modeled_usd));
  expect(rows.every((row: bigint, index: number) => near(row, expected[index]?.saved ?? 0n))).toBe(true);
  expect(pico(savings.preventable_modeled_usd_exact)).toBe(total);
  await expectPlainCalls(organization, outcomes);
  return outcomes;
}

async function expectPlainCalls(organization: TestOrganization, outcomes: PlainOutcome[]): Promise<void> {
  const told = (await allCalls(organization)).map((call) => [
    call.timestamp,
    call.rule_id,
    call.action,
    call.saved_usd_exact === null ? null : pico(call.saved_usd_exact),
  ]);
  const plain = outcomes
    .filter(({ action }) => action !== null)
    .map(({ call, rule, action, saved }) => [call.at, rule, action, saved] as const)
    .reverse();
  expect(told.map(([timestamp, ...rest]) => [microsFromDate(new Date(timestamp)), ...rest])).toEqual(plain);
}

/** Runs a worker for the duration of the work, whatever happens to it. */
async function withWorker<T>(
  work: () => Promise<T>,
  replace?: Parameters<TestEngine['startWorker']>[0],
): Promise<T> {
  const worker = await engine.startWorker(replace);
  try {
    return await work();
  } finally {
    await worker.stop();
  }
}

describe('modeled savings', () => {
  it('equal a plain replay of the month to the cent, by rule and call by call, and stay equal the second time', async () => {
    const place = await aMonth(11);
    const { organization } = place;
    await withWorker(async () => {
      const first = await model(organization);
      expect(first).toMatchObject({ kind: 'savings_run', status: 'succeeded', error: null });
      const outcomes = await expectPlain(place);
      // Every rule matches calls of the month.
      for (const rule of place.rules)
        expect(outcomes.filter((outcome) => outcome.rule === rule.id).length, rule.type).toBeGreaterThan(3);
      const before = await get(organization, SAVINGS);
      const second = await model(organization);
      expect(second.result.preventable_modeled_usd_exact).toBe(first.result.preventable_modeled_usd_exact);
      const after = await get(organization, SAVINGS);
      expect(after.modeled.run_id).toBe(second.run_id);
      expect(after.modeled.by_rule).toEqual(before.modeled.by_rule);
    });
  });

  it('do not depend on the order in which the calls came', async () => {
    const place = await aMonth(12, { order: 'backwards' });
    await withWorker(async () => {
      await model(place.organization);
      await expectPlain(place);
    });
  });

  it('list the calls of one rule, which add up to the sum of the rule', async () => {
    const { organization } = await aMonth(13);
    await withWorker(() => model(organization));
    const { modeled } = await get(organization, SAVINGS);
    for (const rule of modeled.by_rule) {
      const calls = await allCalls(organization, `&rule_id=${rule.rule_id}`);
      expect(calls.length).toBe(rule.blocked_calls + rule.downgraded_calls);
      const saved = sum(calls.map((call) => pico(call.saved_usd_exact ?? '0')));
      expect(saved).toBe(pico(rule.preventable_modeled_usd_exact));
      expect(calls.filter((call) => call.saved_usd === null).length).toBe(rule.unpriced_calls);
    }
  });

  it('of a named period contain its calls alone, beside those of the last 30 days', async () => {
    const place = await aMonth(14);
    const { organization, month, rules } = place;
    const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);
    const [from, to] = [day(20), day(11)];
    await withWorker(async () => {
      await model(organization);
      const run = await model(organization, { from, to });
      expect(run).toMatchObject({ standard: false, from: `${from}T00:00:00Z`, status: 'succeeded' });
      const inside = month.calls.filter(({ at }) => {
        const date = new Date(Number(at / 1_000n)).toISOString().slice(0, 10);
        return date >= from && date <= to;
      });
      const outcomes = plainReplay(rules, inside);
      const saved = rules.map(({ id }) => plainFindings(id, outcomes).saved);
      const named = await get(organization, `${SAVINGS}?from=${from}&to=${to}`);
      expect(named.modeled).toMatchObject({ run_id: run.run_id, calls: inside.length });
      expect(pico(named.preventable_modeled_usd_exact)).toBe(sum(saved));
      const listed = await allCalls(organization, `&run_id=${run.run_id}`);
      expect(listed.length).toBe(outcomes.filter(({ action }) => action !== null).length);
    });
    await expectPlain(place);
    const other = await get(organization, `${SAVINGS}?from=${from}&to=${day(10)}`);
    expect([other.preventable_modeled_usd, other.modeled]).toEqual([null, null]);
  });
});

describe('a savings run', () => {
  const countRuns = async ({ orgId }: TestOrganization, condition = 'true') => {
    const { rows } = await api.database.superuser.query(
      `select count(*)::int as count from savings_runs where org_id = $1 and ${condition}`,
      [orgId],
    );
    return rows[0].count as number;
  };
  const aRule = { type: 'token_ceiling', config: { max_tokens: 100 } };
  const changeRule = async (organization: TestOrganization, id: string, maxTokens: number) => {
    const response = await fetch(`${api.baseUrl}${RULES}/${id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${organization.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ config: { max_tokens: maxTokens } }),
    });
    expect(response.status).toBe(200);
  };

  it('is opened by a change of the rules, once however many there are, and reads them when it begins', async () => {
    const organization = await api.addOrganization();
    await ingest(api, [anEvent(), anEvent()], organization.ingestKey);
    const { body: rule } = await api.post(RULES, aRule, organization.adminKey);
    await changeRule(organization, rule.id, 90);
    expect(await countRuns(organization)).toBe(1);
    let hold: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      hold = resolve;
    });
    let isAtWork = false;
    const run = await withWorker(
      async () => {
        await until('the run at work', async () => isAtWork, Boolean);
        // The rules are read when a run begins; one that has not begun reads the change itself.
        await changeRule(organization, rule.id, 80);
        hold();
        return until(
          'the end of all runs',
          () => countRuns(organization, `status = 'succeeded'`),
          (count) => count === 1,
        );
      },
      (activities) => ({
        modelSavings: async (input) => {
          isAtWork = true;
          await held;
          return activities.modelSavings(input);
        },
      }),
    );
    expect(run).toBe(1);
    const { modeled, preventable_modeled_usd_exact: saved } = await get(organization, SAVINGS);
    expect(modeled.by_rule[0].config).toEqual({ max_tokens: 80 });
    expect(pico(saved)).toBeGreaterThan(0n);
    expect(await countRuns(organization)).toBe(1);
  });

  it('that has read the rules before they changed shows what it found, and the next one follows it by itself', async () => {
    const { organization, rules } = await aMonth(15, { calls: MANY_CALLS });
    const { body: added } = await api.post(RULES, aRule, organization.adminKey);
    await withWorker(async () => {
      await until(
        'the first pages',
        () => countRuns(organization, 'calls > 0'),
        (count) => count === 1,
      );
      await changeRule(organization, added.id, 70);
      // The change is recorded on the running run; another run follows its publication.
      expect(await countRuns(organization)).toBe(1);
      await until(
        'the end of both',
        () => countRuns(organization, `status = 'succeeded'`),
        (count) => count === 2,
      );
    });
    const listed = await get(organization, `${SAVINGS}/runs`);
    expect(listed.runs.map((run: { cause: string }) => run.cause)).toEqual(['rule_change', 'rule_change']);
    const { modeled } = await get(organization, SAVINGS);
    expect(modeled.by_rule.length).toBe(rules.length + 1);
    expect(modeled.by_rule.at(-1).config).toEqual({ max_tokens: 70 });
  });

  it('of an organization without rules shows that they would save nothing', async () => {
    const organization = await api.addOrganization();
    await ingest(api, [anEvent()], organization.ingestKey);
    expect(await get(organization, SAVINGS)).toMatchObject({ preventable_modeled_usd: null, modeled: null });
    await withWorker(() => model(organization));
    expect(await get(organization, SAVINGS)).toMatchObject({
      preventable_modeled_usd: 0,
      preventable_modeled_usd_exact: '0',
      modeled: { by_rule: [] },
    });
  });

  it('that another attempt has taken over writes nothing more', async () => {
    const { orgDb } = await api.addOrganization();
    await queueSavingsRun(orgDb, BigInt(Date.now()) * 1_000n, 'schedule');
    const [{ id }] = (await orgDb.rows<{ id: string }>('select id from savings_runs where org_id = $1', [
      orgDb.orgId,
    ])) as [{ id: string }];
    const [first, second] = [crypto.randomUUID(), crypto.randomUUID()];
    await takeSavingsRun(orgDb, id, { id: first, priceVersion: 'v' });
    expect(await holdSavingsRun(orgDb, id, first, { calls: 3, cursorMicros: 1n })).toBe(true);
    expect((await takeSavingsRun(orgDb, id, { id: second, priceVersion: 'v' }))?.calls).toBe(0);
    expect(await holdSavingsRun(orgDb, id, first, undefined)).toBe(false);
    expect(await holdSavingsRun(orgDb, id, second, undefined)).toBe(true);
  });

  it('that is cancelled shows nothing, and what was shown before stays', async () => {
    const { organization } = await aMonth(16, { calls: MANY_CALLS });
    await withWorker(() => model(organization));
    const before = await get(organization, SAVINGS);
    const { body: run } = await api.post(`${SAVINGS}/runs`, {}, organization.adminKey);
    await withWorker(async () => {
      await until(
        'the run at work',
        () => countRuns(organization, `calls > 0 and status = 'running'`),
        (count) => count === 1,
      );
      await cancel(organization, run.run_id);
      expect(await pollToEnd(api, run.status_url, undefined, organization.adminKey)).toMatchObject({
        status: 'cancelled',
        result: null,
      });
    });
    expect((await get(organization, SAVINGS)).modeled).toEqual(before.modeled);
  });

  it('that lost its message, or whose workflow Temporal has lost, is started by the sweeper', async () => {
    for (const status of ['queued', 'running']) {
      const organization = await api.addOrganization();
      await queueSavingsRun(organization.orgDb, BigInt(Date.now()) * 1_000n, 'schedule');
      await api.database.superuser.query('delete from outbox where org_id = $1', [organization.orgId]);
      await api.database.superuser.query('update savings_runs set status = $2 where org_id = $1', [
        organization.orgId,
        status,
      ]);
      await engine.sweeper.sweep();
      await withWorker(() =>
        until(
          'the end of the run',
          () => countRuns(organization, `status = 'succeeded'`),
          (count) => count === 1,
        ),
      );
    }
  });

  const itInLongRuns = isLongRun() ? it : () => undefined;
  itInLongRuns(
    'killed and taken up by another worker has the same result, and no half of a result is ever seen',
    {
      timeout: 300_000,
    },
    async () => {
      const place = await aMonth(17);
      const { organization } = place;
      const { body: run } = await api.post(`${SAVINGS}/runs`, {}, organization.adminKey);
      const goOn = await pauseWorkers(api.database.superuser, {
        write: 'update',
        table: 'savings_runs',
        condition: `(select max(calls) from savings_runs where id = '${findUuid('run', run.run_id)}') >= 100`,
      });
      const victim = await spawnWorker({
        databaseUrl: api.database.url,
        address: inject('temporalAddress'),
        namespace: TEST_NAMESPACE,
        taskQueue: engine.taskQueue,
        bundlePath: await writeWorkflowBundle(folder),
      });
      await until(
        'calls of the killed worker',
        () => countRuns(organization, `calls between 50 and ${CALLS - 100}`),
        (count) => count === 1,
        180_000,
      );
      await killHard(victim);
      await goOn();
      expect(await get(organization, SAVINGS)).toMatchObject({
        preventable_modeled_usd: null,
        open_run: { run_id: run.run_id },
      });
      await withWorker(async () => {
        expect(await pollToEnd(api, run.status_url, 180_000, organization.adminKey)).toMatchObject({
          status: 'succeeded',
        });
      });
      await expectPlain(place);
    },
  );
});

describe('the results of savings runs', () => {
  it('are replaced by newer ones, but not while a reader pages through them', async () => {
    const { organization } = await aMonth(18);
    await withWorker(async () => {
      const first = await model(organization);
      const page = await get(organization, `${SAVINGS}/calls?limit=5`);
      expect(page.run_id).toBe(first.run_id);
      await model(organization);
      const next = await get(organization, `${SAVINGS}/calls?limit=5&cursor=${page.next_cursor}`);
      expect(next.run_id).toBe(first.run_id);
      const third = await model(organization);
      await until(
        'the first result gone',
        () => api.get(`${SAVINGS}/calls?run_id=${first.run_id}`, organization.adminKey),
        ({ status }) => status !== 200,
      );
      const late = await api.get(`${SAVINGS}/calls?cursor=${page.next_cursor}`, organization.adminKey);
      expect([late.status, late.body.errors[0].field]).toEqual([400, 'cursor']);
      const gone = await api.get(`${SAVINGS}/calls?run_id=${first.run_id}`, organization.adminKey);
      expect([gone.status, gone.body.errors[0].field]).toEqual([400, 'run_id']);
      expect((await get(organization, `${SAVINGS}/calls`)).run_id).toBe(third.run_id);
      // Its result is still shown.
      const told = await get(organization, first.status_url);
      expect(told.result.preventable_modeled_usd_exact).toBe(third.result.preventable_modeled_usd_exact);
    });
  });
});
