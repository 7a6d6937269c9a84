import { ApplicationFailure } from '@temporalio/common';
import { expect, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import type { TestApi, TestOrganization } from '../support/api.js';
import { generateBills } from '../support/billGenerator.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { until } from '../support/engine.js';
import { startRecording } from './recording.js';
import { saveHistory } from './saveHistory.js';

/**
 * Records the histories of imports and runs that test/workflows/replay.test.ts replays: `npm run workflows:record`. Run
 * it when a workflow is added or changed behind a patch, and commit its files; an existing history is never replaced.
 */

const RUN = '/api/v1/reconciliation/gap-explorer/run';

/** Simulates a change of all prices: the next run compares every day. */
async function everythingChanges({ database, orgId }: TestApi): Promise<void> {
  await database.superuser.query(`update gap_run_units set input_mark = '' where org_id = $1`, [orgId]);
}

it('records one history of each way that an import or a gap run can go', { timeout: 300_000 }, async () => {
  const recording = await startRecording();
  const { api, engine, client } = recording;
  const lastDay = new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10);
  const bills = generateBills({ seed: 3, lastDay, days: 5, callsPerHour: 1 });
  const runId = (body: { run_id: string }, { orgId }: TestOrganization) =>
    runWorkflowId('gap_run', { orgId, id: findUuid('run', body.run_id) ?? '' });
  const importId = (body: { import_id: string }) =>
    runWorkflowId('billing_import', { orgId: api.orgId, id: findUuid('imp', body.import_id) ?? '' });

  const plain = await engine.startWorker();
  await saveHistory(
    client,
    importId(await importBill(api, bills.files.openaiCosts, { provider: 'openai' })),
    'billing-import-succeeded',
  );
  await saveHistory(
    client,
    importId(await importBill(api, '{"data":[oops]}', { provider: 'openai' })),
    'billing-import-unreadable',
  );
  await importBill(api, bills.files.anthropicCosts, { provider: 'anthropic' });
  const succeeded = (await api.post(RUN, {})).body;
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, runId(succeeded, api), 'gap-run-succeeded');
  await saveHistory(client, runId(succeeded, api), 'gap-run-explained');
  await saveHistory(client, runId(succeeded, api), 'gap-run-drafted');
  await saveHistory(client, runId(succeeded, api), 'gap-run-credits');
  await saveHistory(client, runId(succeeded, api), 'gap-run-ended-last');
  const empty = await api.addOrganization();
  const nothing = (await api.post(RUN, {}, empty.adminKey)).body;
  await pollToEnd(api, nothing.status_url, undefined, empty.adminKey);
  await saveHistory(client, runId(nothing, empty), 'gap-run-no-billing-data');
  await saveHistory(client, runId(nothing, empty), 'gap-run-nothing-to-explain');
  await plain.stop();

  const failing = await engine.startWorker((activities) => ({
    matchProviderDay: async (unit) => {
      if (unit.ordinal === 1) throw ApplicationFailure.nonRetryable('this day is broken', 'not_found');
      await activities.matchProviderDay(unit);
    },
    explainRunAccount: async () => {
      throw ApplicationFailure.nonRetryable('this account is broken', 'not_found');
    },
    draftRunClaims: async () => {
      throw ApplicationFailure.nonRetryable('no claim can be made', 'not_found');
    },
    findRunCredits: async () => {
      throw ApplicationFailure.nonRetryable('no credit can be looked for', 'not_found');
    },
  }));
  await everythingChanges(api);
  const partial = (await api.post(RUN, {})).body;
  expect((await pollToEnd(api, partial.status_url)).status).toBe('partial');
  await saveHistory(client, runId(partial, api), 'gap-run-partial');
  await saveHistory(client, runId(partial, api), 'gap-run-account-failed');
  await saveHistory(client, runId(partial, api), 'gap-run-drafting-failed');
  await saveHistory(client, runId(partial, api), 'gap-run-credits-failed');
  await saveHistory(client, runId(partial, api), 'gap-run-follow-up-failed');
  await failing.stop();

  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held = await engine.startWorker((activities) => ({
    matchProviderDay: async (unit) => {
      if (unit.ordinal > 3) await gate;
      await activities.matchProviderDay(unit);
    },
  }));
  await everythingChanges(api);
  const cancelled = (await api.post(RUN, {})).body;
  await until(
    'units',
    () => api.get(cancelled.status_url),
    ({ body }) => body.progress.done > 0,
  );
  await api.post(`${cancelled.status_url}/cancel`, {});
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, runId(cancelled, api), 'gap-run-cancelled');
  await saveHistory(client, runId(cancelled, api), 'gap-run-cancelled-before-explaining');
  release();
  await held.stop();

  let isDrafting = false;
  const drafting = await engine.startWorker((activities) => ({
    draftRunClaims: async (run) => {
      isDrafting = true;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return activities.draftRunClaims(run);
    },
  }));
  const stopped = (await api.post(RUN, {})).body;
  await until('the run that drafts', async () => isDrafting, Boolean);
  await client.workflow.getHandle(runId(stopped, api)).cancel();
  expect((await pollToEnd(api, stopped.status_url)).status).toBe('partial');
  await saveHistory(client, runId(stopped, api), 'gap-run-stopped-after-publishing');
  await drafting.stop();

  await recording.close();
});

it('records one history of each way that a re-pricing can go', { timeout: 300_000 }, async () => {
  const recording = await startRecording({ repricePassMs: 0 });
  const { api, engine, client } = recording;
  const workflowId = ({ run_id }: { run_id: string }) =>
    runWorkflowId('reprice', { orgId: api.orgId, id: findUuid('run', run_id) ?? '' });
  const window = { from: '2026-02-01', to: '2026-02-03' };

  const plain = await engine.startWorker();
  const succeeded = (await api.post('/api/v1/pricing/reprice', window)).body;
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, workflowId(succeeded), 'repricing-succeeded');
  await plain.stop();

  const failing = await engine.startWorker(() => ({
    repriceEvents: async () => {
      throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
    },
  }));
  const failed = (await api.post('/api/v1/pricing/reprice', window)).body;
  expect((await pollToEnd(api, failed.status_url)).status).toBe('failed');
  await saveHistory(client, workflowId(failed), 'repricing-failed');
  await failing.stop();

  const slow = await engine.startWorker((activities) => ({
    repriceEvents: async (run) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return activities.repriceEvents(run);
    },
  }));
  const cancelled = (await api.post('/api/v1/pricing/reprice', { ...window, to: '2026-12-01' })).body;
  await until(
    'a first day',
    () => api.get(cancelled.status_url),
    ({ body }) => body.progress.done > 0,
  );
  await api.post(`${cancelled.status_url}/cancel`, {});
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, workflowId(cancelled), 'repricing-cancelled');
  await slow.stop();

  await recording.close();
});

it('records one history of each way that a savings run can go', { timeout: 300_000 }, async () => {
  const recording = await startRecording();
  const { api, engine, client } = recording;
  const workflowId = ({ run_id }: { run_id: string }) =>
    runWorkflowId('savings_run', { orgId: api.orgId, id: findUuid('run', run_id) ?? '' });
  const start = async () => (await api.post('/api/v1/enforcement/savings/runs', {})).body;

  const plain = await engine.startWorker();
  const succeeded = await start();
  expect((await pollToEnd(api, succeeded.status_url)).status).toBe('succeeded');
  await saveHistory(client, workflowId(succeeded), 'savings-run-succeeded');
  await plain.stop();

  const failing = await engine.startWorker(() => ({
    modelSavings: async () => {
      throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
    },
    removeReplacedSavings: async () => {
      throw ApplicationFailure.nonRetryable('this too', 'not_found');
    },
  }));
  const failed = await start();
  expect((await pollToEnd(api, failed.status_url)).status).toBe('failed');
  await saveHistory(client, workflowId(failed), 'savings-run-failed');
  await failing.stop();

  let isAtWork = false;
  const slow = await engine.startWorker((activities) => ({
    modelSavings: async (run) => {
      isAtWork = true;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return activities.modelSavings(run);
    },
  }));
  const cancelled = await start();
  await until('the run at work', async () => isAtWork, Boolean);
  await client.workflow.getHandle(workflowId(cancelled)).cancel();
  expect((await pollToEnd(api, cancelled.status_url)).status).toBe('cancelled');
  await saveHistory(client, workflowId(cancelled), 'savings-run-cancelled');
  await slow.stop();

  await recording.close();
});
