import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { listRetentionState } from '../../db/installation/retentionRuns.js';
import { RETENTION_STEPS } from '../../domain/installation/retention.js';
import { MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import { retentionScheduleId, WORKFLOW_NAMES } from '../../workflows/contract.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { drawTenant, insertOf } from '../db/support/tenantRows.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { untilNothingHoldsBack } from '../support/horizon.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

let api: TestApi;
let connection: Connection;
let client: Client;
/** The retention's present time. */
let nowMicros = microsFromDate(new Date());
const lines: { level: number; msg: string; step?: string }[] = [];
let engine: TestEngine;

beforeAll(async () => {
  api = await startTestApi();
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
  engine = await startTestEngine(api.database.database, {
    retention: { eventDays: 400, payloadDays: 30, auditDays: 730 },
    nowMicros: () => nowMicros,
    logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  });
});
afterAll(async () => {
  await engine.close();
  await connection.close();
  await api.close();
});

/** A run, started as the schedule would, when no transaction of another test keeps calls from being removed. */
async function run(): Promise<void> {
  await untilNothingHoldsBack(api.database.superuser);
  await client.workflow.execute(WORKFLOW_NAMES.retention, {
    workflowId: `retention-${randomUUID()}`,
    taskQueue: engine.taskQueue,
  });
}

const at = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const payloads = async () =>
  (await api.get('/api/v1/events?include_payload=true&limit=1000')).body.events.map(
    ({ session_id, payload }: { session_id: string; payload: unknown }) => [session_id, payload !== null],
  );
const states = async () =>
  new Map((await listRetentionState(api.database.database)).map((state) => [state.step, state]));

describe('a run of the retention', () => {
  it('removes old payloads, then old calls, with months as a whole, and reports what; a second run finds nothing to remove', async () => {
    const worker = await engine.startWorker();
    const event = (days: number) =>
      anEvent({ timestamp: at(days), session_id: `d${days}`, payload: { text: 'said' } });
    await ingest(api, [event(2), event(29), event(31), event(380), event(500)]);
    await run();
    expect(await payloads()).toEqual([
      ['d2', true],
      ['d29', true],
      ['d31', false],
      ['d380', false],
    ]);
    const first = await states();
    expect([...first.keys()].sort()).toEqual([...RETENTION_STEPS].sort());
    for (const state of first.values()) expect(state).toMatchObject({ failures: 0, errorMessage: null });
    expect(first.get('events')?.removedRows).toBe(1);
    expect(first.get('payloads')?.droppedPartitions.length).toBeGreaterThan(10);
    nowMicros += 300n * MICROS_PER_DAY;
    await run();
    expect((await payloads()).map(([session]: [string]) => session)).toEqual(['d2', 'd29', 'd31']);
    expect((await states()).get('events')?.droppedPartitions.length).toBeGreaterThan(5);
    expect((await api.get('/api/v1/usage/summary?from=2020-01-01')).body.call_count).toBe(5);
    await run();
    for (const state of (await states()).values())
      expect(state).toMatchObject({ removedRows: 0, droppedPartitions: [], failures: 0 });
    await worker.stop();
  });

  it('removes what else has had its time: kept answers of requests, idle rate limits, and what is known of runs of long ago', async () => {
    const { superuser } = api.database;
    const tenant = { ...drawTenant(), orgId: api.orgId };
    for (const table of ['idempotency_keys', 'rate_buckets'])
      await superuser.query(await insertOf(superuser, table, tenant));
    await superuser.query(
      `update idempotency_keys set created_at = now() - interval '2 days'; update rate_buckets set refilled_at = now() - interval '2 days'`,
    );
    await superuser.query(
      `insert into retention_runs (id, step, started_at, finished_at) values ($1, 'events', now() - interval '500 days', now())`,
      [randomUUID()],
    );
    const worker = await engine.startWorker();
    await run();
    const { rows } = await superuser.query(
      `select (select count(*)::int from idempotency_keys) as answers, (select count(*)::int from rate_buckets) as buckets,
         (select count(*)::int from retention_runs where started_at < now() - interval '400 days') as runs`,
    );
    expect(rows).toEqual([{ answers: 0, buckets: 0, runs: 0 }]);
    expect((await states()).get('idempotency_keys')?.removedRows).toBe(1);
    expect((await states()).get('rate_limits')?.removedRows).toBe(1);
    await worker.stop();
  });

  it('continues behind a step that fails; a step that fails again is a warning, and its success ends it', async () => {
    const failing = await engine.startWorker((activities) => ({
      runRetentionStep: async (ref) => {
        if (ref.step === 'payloads') throw ApplicationFailure.nonRetryable('the disk is tired', 'not_found');
        await activities.runRetentionStep(ref);
      },
    }));
    lines.length = 0;
    await run();
    expect((await states()).get('payloads')).toMatchObject({
      failures: 1,
      errorMessage: 'the disk is tired',
    });
    expect((await states()).get('events')).toMatchObject({ failures: 0, errorMessage: null });
    const told = () => lines.filter(({ step }) => step === 'payloads').map(({ level }) => level);
    expect(told()).toEqual([30]);
    await run();
    expect((await states()).get('payloads')).toMatchObject({ failures: 2 });
    expect(told()).toEqual([30, 40]);
    await failing.stop();
    const worker = await engine.startWorker();
    await run();
    expect((await states()).get('payloads')).toMatchObject({ failures: 0, errorMessage: null });
    await worker.stop();
  });
});

describe('the schedule of the retention', () => {
  const handle = () => client.schedule.getHandle(retentionScheduleId(engine.taskQueue));

  it('is made by a worker that starts: at three in the night, one at a time, a missed one within a day', async () => {
    await engine.schedules.reconcile();
    const { spec, policies, action } = await handle().describe();
    expect(spec.intervals).toEqual([expect.objectContaining({ every: 86_400_000, offset: 10_800_000 })]);
    expect(policies).toMatchObject({ overlap: 'SKIP', catchupWindow: 86_400_000 });
    expect(action).toMatchObject({ workflowType: WORKFLOW_NAMES.retention, taskQueue: engine.taskQueue });
  });

  it('is there again after Temporal has lost it, starts a run, and stays paused where an operator paused it', async () => {
    await handle().delete();
    await engine.schedules.reconcile();
    const worker = await engine.startWorker();
    onTestFinished(() => worker.stop());
    const before = (await states()).get('events')?.lastSuccessMicros ?? 0n;
    await handle().trigger();
    await until(
      'a run of the schedule',
      async () => (await states()).get('rate_limits')?.lastSuccessMicros ?? 0n,
      (last) => last > before,
    );
    // Temporal once took more than five seconds to describe a schedule whose run had just ended.
    await until(
      'the end of the run',
      async () => (await handle().describe()).info.runningActions.length,
      (running) => running === 0,
    );
    await handle().pause('maintenance');
    await engine.orchestrator.putRetentionSchedule();
    expect((await handle().describe()).state.paused).toBe(true);
    await handle().delete();
  });
});
