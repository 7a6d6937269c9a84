import { heartbeat } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { claimsOf } from '../api/support/claims.js';
import { day } from '../api/support/financial.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { generateBills } from '../support/billGenerator.js';
import { importBill } from '../support/bills.js';
import { type RunningWorker, startTestEngine, type TestEngine, until } from '../support/engine.js';
import { aGate, pollToFinal } from '../support/runAnswers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { anEndpoint } from '../support/webhooks.js';

const EXPLORER = '/api/v1/reconciliation/gap-explorer';
const lastDay = new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10);
const bills = generateBills({ seed: 5, lastDay, days: 3, callsPerHour: 1 });

let api: TestApi;
let engine: TestEngine;
let client: Client;
let connection: Connection;
let worker: RunningWorker | undefined;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, { sweep: { queuedSeconds: 0, silentSeconds: 0 } });
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
}, 300_000);
afterEach(async () => {
  await worker?.stop();
  worker = undefined;
});
afterAll(async () => {
  await connection?.close();
  await engine?.close();
  await api?.close();
});

const claims = claimsOf(() => api);

/** An organization with three days of a bill, an endpoint for ends of runs, and confirmed findings of two kinds. */
async function anOrganization(): Promise<TestOrganization> {
  const { org } = await claims.orgWithDisputes(
    { days: [day(90n, '2026-03-10')] },
    { days: [day(20n, '2026-03-10')], kind: 'tool_fee_mismatch' },
  );
  worker = await engine.startWorker();
  await importBill(api, bills.files.openaiCosts, { provider: 'openai' }, org.adminKey);
  await worker.stop();
  worker = undefined;
  await anEndpoint(org, 'https://receiver.example/', ['gap_run.completed']);
  return org;
}

const start = async (org: TestOrganization) => (await api.post(`${EXPLORER}/run`, {}, org.adminKey)).body;
const handleOf = (org: TestOrganization, run: { run_id: string }) =>
  client.workflow.getHandle(
    runWorkflowId('gap_run', { orgId: org.orgId, id: findUuid('run', run.run_id) ?? '' }),
  );
/** Waits until the workflow of a run has ended, in any way. */
const workflowOver = (org: TestOrganization, run: { run_id: string }) =>
  handleOf(org, run)
    .result()
    .catch(() => undefined);
const answerOf = async (org: TestOrganization, run: { status_url: string }) =>
  (await api.get(run.status_url, org.adminKey)).body;
const shownBuckets = async (org: TestOrganization) => (await api.get(EXPLORER, org.adminKey)).body.total;
/** The bodies of the messages that a run has left. */
const messagesOf = async (org: TestOrganization, run: { run_id: string }) => {
  const rows = await org.orgDb.rows<{ body: string }>('select body from webhook_messages where org_id = $1', [
    org.orgId,
  ]);
  return rows.map(({ body }) => JSON.parse(body)).filter(({ data }) => data.run_id === run.run_id);
};
const claimCount = async (org: TestOrganization) => (await claims.list(org)).length;
/** Waits at a gate as a live activity does. */
async function waitAt(gate: { pass: () => Promise<void> }): Promise<void> {
  const beat = setInterval(() => heartbeat(), 1_000);
  await gate.pass().finally(() => clearInterval(beat));
}

describe('a gap run', () => {
  it('ends once its claims are drafted, and its answer never changes after that', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    const gate = aGate();
    worker = await engine.startWorker(({ draftRunClaims }) => ({
      draftRunClaims: async (ref) => {
        await waitAt(gate);
        return draftRunClaims(ref);
      },
    }));
    const run = await start(org);
    await gate.reached;
    // The findings are published; the run is not over.
    expect(await shownBuckets(org)).toBeGreaterThan(0);
    const open = await answerOf(org, run);
    expect(open).toMatchObject({ status: 'running', result: null, error: null, finished_at: null });
    expect(open.progress.stage).toBe('drafting');
    expect(open.progress.percent).toBeLessThan(100);
    expect(await messagesOf(org, run)).toEqual([]);
    gate.open();
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'succeeded', error: null });
    expect(final.body.result.claims_drafted).toHaveLength(2);
    expect(await messagesOf(org, run)).toMatchObject([
      { data: { status: 'succeeded', total: final.body.result.total, finished_at: final.body.finished_at } },
    ]);
    await final.expectUnchanged(async () => {
      await workflowOver(org, run);
      await worker?.stop();
      worker = undefined;
      await engine.sweeper.sweep();
    });
    expect(await claimCount(org)).toBe(2);
    expect(await messagesOf(org, run)).toHaveLength(1);
  });

  it('ends partial and states why when its claims cannot be drafted, and the next run drafts them', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    worker = await engine.startWorker(() => ({
      draftRunClaims: async () => {
        throw ApplicationFailure.nonRetryable('no paper left', 'not_found');
      },
      findRunCredits: async () => {
        throw ApplicationFailure.nonRetryable('no bill to look at', 'not_found');
      },
    }));
    const run = await start(org);
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({
      status: 'partial',
      error: {
        code: 'follow_up_failed',
        message:
          'claims could not be drafted: no paper left; no credits could be looked for: no bill to look at',
      },
      result: { claims_drafted: [] },
    });
    expect(await messagesOf(org, run)).toMatchObject([{ data: { status: 'partial' } }]);
    await final.expectUnchanged(() => workflowOver(org, run));
    await worker.stop();
    worker = await engine.startWorker();
    const next = await pollToFinal(api, (await start(org)).status_url, org);
    expect(next.body).toMatchObject({
      status: 'succeeded',
      result: { claims_drafted: [expect.any(String), expect.any(String)] },
    });
  });

  it('of which one claim cannot be drafted lists the others and ends partial', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    const { superuser } = api.database;
    await superuser.query(`create function refuse_large() returns trigger language plpgsql as $$ begin
        if new.total_recoverable_cents > 5000 then raise exception 'no paper left'; end if; return new; end $$;
      create trigger refuse_large before insert on claims for each row execute function refuse_large()`);
    worker = await engine.startWorker();
    const run = await start(org);
    const final = await pollToFinal(api, run.status_url, org);
    await superuser.query('drop trigger refuse_large on claims; drop function refuse_large()');
    expect(final.body).toMatchObject({
      status: 'partial',
      error: { code: 'follow_up_failed', message: '1 claim could not be drafted; the next run tries again' },
      result: { claims_drafted: [expect.any(String)] },
    });
    await final.expectUnchanged(() => workflowOver(org, run));
  });

  it('that had published when Temporal lost it continues with its claims and publishes nothing twice', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    await org.orgDb.run(
      `insert into gap_runs (org_id, id, period, provider, status, window_start, window_end, published_at, published_status, result)
       values ($1, $2, '30d', 'openai', 'queued', now() - interval '30 days', now(), now(), 'succeeded', $3::jsonb)`,
      [
        org.orgId,
        '0199f3a2-c4d5-7e3a-8f00-112233445566',
        JSON.stringify({
          ...{
            provider_days: 7,
            unchanged_days: 0,
            total: 5,
            flagged: 1,
            rate_mismatches: [],
            rate_mismatch_count: 0,
          },
          ...{ source_differences: [], failed_units: [] },
        }),
      ],
    );
    const statusUrl = `${EXPLORER}/runs/run_0199f3a2c4d57e3a8f00112233445566`;
    const refused = await api.post(`${statusUrl}/cancel`, {}, org.adminKey);
    expect([refused.status, refused.body.code]).toEqual([409, 'run_not_cancellable']);
    const planned: string[] = [];
    worker = await engine.startWorker(({ planGapRun }) => ({
      planGapRun: (ref) => {
        planned.push(ref.runId);
        return planGapRun(ref);
      },
    }));
    await engine.sweeper.sweep();
    const final = await pollToFinal(api, statusUrl, org);
    expect(final.body).toMatchObject({ status: 'succeeded', result: { total: 5, provider_days: 7 } });
    expect(final.body.result.claims_drafted).toHaveLength(2);
    expect([planned, await shownBuckets(org)]).toEqual([[], 0]);
  });
});

describe('a gap run that has published', () => {
  it('is not stopped any more: 409, and it ends with its claims', { timeout: 300_000 }, async () => {
    const org = await anOrganization();
    const gate = aGate();
    worker = await engine.startWorker(({ draftRunClaims }) => ({
      draftRunClaims: async (ref) => {
        await waitAt(gate);
        return draftRunClaims(ref);
      },
    }));
    const run = await start(org);
    await gate.reached;
    const refused = await api.post(`${run.status_url}/cancel`, {}, org.adminKey);
    expect([refused.status, refused.body.code]).toEqual([409, 'run_not_cancellable']);
    expect(refused.body.detail).toContain('drafting claims');
    gate.open();
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body.status).toBe('succeeded');
    expect(final.body.result.claims_drafted).toHaveLength(2);
    await final.expectUnchanged(() => workflowOver(org, run));
  });

  it('and whose workflow is cancelled ends partial, keeps its findings, and drafts nothing after its end', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    const gate = aGate();
    const late = aGate();
    worker = await engine.startWorker(({ draftRunClaims }) => ({
      draftRunClaims: async (ref) => {
        await waitAt(gate);
        return draftRunClaims(ref).finally(late.open);
      },
    }));
    const run = await start(org);
    await gate.reached;
    await handleOf(org, run).cancel();
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'partial', error: { code: 'follow_up_failed' } });
    expect(final.body.result.claims_drafted).toEqual([]);
    expect(await shownBuckets(org)).toBeGreaterThan(0);
    await final.expectUnchanged(async () => {
      gate.open();
      await late.passed;
      await worker?.stop();
      worker = undefined;
    });
    expect(await claimCount(org)).toBe(0);
  });

  it('and whose workflow is gone ends partial, with the claims that it had drafted', {
    timeout: 300_000,
  }, async () => {
    const org = await anOrganization();
    const gate = aGate();
    worker = await engine.startWorker(({ draftRunClaims, findRunCredits }) => ({
      draftRunClaims,
      findRunCredits: async (ref) => {
        await waitAt(gate);
        return findRunCredits(ref);
      },
    }));
    const run = await start(org);
    await gate.reached;
    await handleOf(org, run).terminate('lost');
    await until(
      'the end of the run',
      async () => {
        await engine.sweeper.sweep();
        return answerOf(org, run);
      },
      ({ status }) => status !== 'running',
    );
    const final = await pollToFinal(api, run.status_url, org);
    expect(final.body).toMatchObject({ status: 'partial', error: { code: 'follow_up_failed' } });
    expect(final.body.result.claims_drafted).toHaveLength(2);
    await final.expectUnchanged(async () => {
      gate.open();
      await worker?.stop();
      worker = undefined;
    });
  });
});
