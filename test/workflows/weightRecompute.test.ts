import { Client, Connection } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { findWeightSet } from '../../db/reconciliation/weightSets.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { POKE_SIGNAL, WORKFLOW_NAMES, weightRecomputeWorkflowId } from '../../workflows/contract.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { storeClaim } from '../support/claims.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

const QUIET_MS = 300;

let api: TestApi;
let engine: TestEngine;
let connection: Connection;
let client: Client;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database, { weightsQuietMs: QUIET_MS });
  // Each test sends the signal of an outcome itself.
  await engine.dispatcher.stop();
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
});
afterAll(async () => {
  await engine?.close();
  await connection?.close();
  await api?.close();
});

const handleOf = ({ orgId }: TestOrganization) =>
  client.workflow.getHandle(weightRecomputeWorkflowId({ orgId }));
const ended = async (org: TestOrganization) => {
  await handleOf(org).result();
  const { events } = await handleOf(org).fetchHistory();
  const count = (of: (event: NonNullable<typeof events>[number]) => unknown) =>
    (events ?? []).filter((event) => Boolean(of(event))).length;
  return {
    signals: count((event) => event.workflowExecutionSignaledEventAttributes),
    recomputes: count((event) => event.activityTaskScheduledEventAttributes),
  };
};
const denied = (org: TestOrganization) =>
  storeClaim(org.orgDb, { status: 'denied', disputes: [{ cents: 5_000, kind: 'cache_read_rate_mismatch' }] });

describe('the outcomes of claims', () => {
  it('are learned from once after ten outcomes, from all ten', async () => {
    const org = await api.addOrganization();
    for (let claim = 0; claim < 10; claim += 1) {
      await denied(org);
      await engine.orchestrator.pokeWeightRecompute({ orgId: org.orgId });
    }
    const worker = await engine.startWorker();
    expect(await ended(org)).toEqual({ signals: 10, recomputes: 1 });
    await worker.stop();
    const set = await findWeightSet(org.orgDb);
    expect(set).toMatchObject({ version: 1, learned: { base: 'default-1', outcomes: 10 } });
    expect(set?.learned.detectors.cache_read_rate_mismatch).toMatchObject({ outcomes: 10 });
  });

  it('that come while another is learned from are learned from too', async () => {
    const org = await api.addOrganization();
    let recomputes = 0;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await engine.startWorker((activities) => ({
      recomputeWeights: async (ref) => {
        recomputes += 1;
        if (recomputes === 1) await gate;
        await activities.recomputeWeights(ref);
      },
    }));
    await denied(org);
    await engine.orchestrator.pokeWeightRecompute({ orgId: org.orgId });
    await until(
      'the first recompute',
      async () => recomputes,
      (count) => count === 1,
    );
    await denied(org);
    await engine.orchestrator.pokeWeightRecompute({ orgId: org.orgId });
    release();
    expect(await ended(org)).toEqual({ signals: 2, recomputes: 2 });
    expect((await findWeightSet(org.orgDb))?.learned.outcomes).toBe(2);
    await worker.stop();
  });

  it('put off learning by another outcome: the quiet time begins again', async () => {
    const org = await api.addOrganization();
    const worker = await engine.startWorker();
    const workflowId = weightRecomputeWorkflowId({ orgId: org.orgId });
    const poke = () =>
      client.workflow.signalWithStart(WORKFLOW_NAMES.weightRecompute, {
        ...{ workflowId, taskQueue: engine.taskQueue, signal: POKE_SIGNAL },
        // No test waits for it.
        args: [{ orgId: org.orgId, quietMs: 3_600_000 }],
      });
    const timers = async () => {
      const { events } = await handleOf(org).fetchHistory();
      return {
        started: (events ?? []).filter((event) => event.timerStartedEventAttributes).length,
        cancelled: (events ?? []).filter((event) => event.timerCanceledEventAttributes).length,
        recomputes: (events ?? []).filter((event) => event.activityTaskScheduledEventAttributes).length,
      };
    };
    await poke();
    const before = await until('a first timer', timers, ({ started }) => started > 0);
    await poke();
    const after = await until('another timer', timers, ({ started }) => started > before.started);
    expect(after).toEqual({
      started: before.started + 1,
      cancelled: before.cancelled + 1,
      recomputes: 0,
    });
    await handleOf(org).terminate('the test is over');
    await worker.stop();
  });

  it('are learned from by the next signal after an effect that failed', async () => {
    const org = await api.addOrganization();
    let isBroken = true;
    const worker = await engine.startWorker((activities) => ({
      recomputeWeights: async (ref) => {
        if (isBroken) throw ApplicationFailure.nonRetryable('this is broken', 'not_found');
        await activities.recomputeWeights(ref);
      },
    }));
    await denied(org);
    await engine.orchestrator.pokeWeightRecompute({ orgId: org.orgId });
    await until(
      'a failed recompute',
      async () => (await handleOf(org).fetchHistory()).events ?? [],
      (events) => events.some((event) => event.activityTaskFailedEventAttributes),
    );
    isBroken = false;
    await engine.orchestrator.pokeWeightRecompute({ orgId: org.orgId });
    await handleOf(org).result();
    expect((await findWeightSet(org.orgDb))?.version).toBe(1);
    await worker.stop();
  });

  it('reach the workflow by the outbox, and many messages of an organization start one recompute', async () => {
    const org = await api.addOrganization();
    const told = await startTestEngine(api.database.database, { weightsQuietMs: QUIET_MS });
    await org.orgDb.transaction(async (inside) => {
      const { id } = await storeClaim(inside, { status: 'denied' });
      for (let word = 0; word < 5; word += 1) await insertOutboxMessage(inside, 'weights.recompute', id);
    });
    told.dispatcher.kick();
    await until(
      'the workflow',
      () => told.orchestrator.describe(weightRecomputeWorkflowId({ orgId: org.orgId })),
      (state) => state === 'running',
    );
    const worker = await told.startWorker();
    expect(await ended(org)).toEqual({ signals: 1, recomputes: 1 });
    expect((await findWeightSet(org.orgDb))?.version).toBe(1);
    await worker.stop();
    await told.close();
  });

  it('whose message was lost with Temporal are found by the sweeper, once', async () => {
    const org = await api.addOrganization();
    const { superuser } = api.database;
    await denied(org);
    // Simulates a signal that was sent and that Temporal lost.
    await superuser.query(
      `update outbox set dispatched_at = now() where org_id = $1 and kind = 'weights.recompute'`,
      [org.orgId],
    );
    const pending = async () => {
      await engine.sweeper.sweep();
      const { rows } = await superuser.query(
        `select 1 from outbox where org_id = $1 and kind = 'weights.recompute' and dispatched_at is null`,
        [org.orgId],
      );
      return rows.length;
    };
    expect(await pending()).toBe(0);
    await superuser.query(
      `update claim_outcome_kinds set at = at - interval '10 minutes' where org_id = $1`,
      [org.orgId],
    );
    expect(await pending()).toBe(1);
    expect(await pending()).toBe(1);
    const found = await startTestEngine(api.database.database, { weightsQuietMs: QUIET_MS });
    const worker = await found.startWorker();
    await until(
      'the first version',
      () => findWeightSet(org.orgDb),
      (set) => set?.version === 1,
    );
    await worker.stop();
    await found.close();
    expect(await pending()).toBe(0);
  });
});
