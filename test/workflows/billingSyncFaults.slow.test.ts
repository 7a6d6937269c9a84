import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { syncScheduleId } from '../../workflows/contract.js';
import { pollToEnd } from '../support/bills.js';
import { until, writeWorkflowBundle } from '../support/engine.js';
import { BACKFILL_DAYS, CONNECTIONS, daysAgo, expectedDays, FAST } from '../support/fetchedBills.js';
import { countedDays, type FetchingPlace, startFetchingPlace } from '../support/fetchingPlace.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

let place: FetchingPlace;
afterEach(() => place?.close());

const rows = async (sql: string) => (await place.api.database.superuser.query(sql)).rows;

describe('a worker that is killed in the middle of a backfill', () => {
  it('leaves no day missing and none twice: another one continues behind the last stored page', {
    timeout: 300_000,
  }, async () => {
    const folder = makeTestFolder('billing-sync');
    place = await startFetchingPlace();
    place.openai.limitPages(7);
    const bundlePath = await writeWorkflowBundle(folder);
    const { sync } = await place.connect('openai');
    const pages = () => place.count('sync_pages');
    for (let round = 1; round <= 3; round += 1) {
      const before = await pages();
      const goOn = await pauseWorkers(place.api.database.superuser, {
        write: 'insert',
        table: 'sync_pages',
        condition: `(select count(*) from sync_pages) >= ${before + 3}`,
      });
      const victim = await spawnWorker({
        databaseUrl: place.api.database.url,
        address: inject('temporalAddress'),
        namespace: TEST_NAMESPACE,
        taskQueue: place.engine.taskQueue,
        bundlePath,
        providers: { openai: place.openai.origin },
        syncPace: FAST,
      });
      await until('pages of the killed worker', pages, (count) => count >= before + 3, 180_000);
      await killHard(victim);
      await goOn();
    }
    const worker = await place.engine.startWorker();
    const run = await pollToEnd(place.api, sync.status_url, 240_000);
    expect(run).toMatchObject({
      status: 'succeeded',
      result: { changed_days: BACKFILL_DAYS + 1, missing: [] },
    });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    expect(
      await rows(
        `select report, count(*)::int as days, count(distinct day)::int as places from billing_days
         where superseded_at is null and charge_category = 'usage' group by 1 having count(*) <> ${BACKFILL_DAYS + 1} or count(distinct day) <> ${BACKFILL_DAYS + 1}`,
      ),
    ).toEqual([]);
    // Every row that is stored belongs to a day that counts, once.
    expect(
      await rows(
        `select d.day, d.report from billing_days d where d.row_count <> (select count(*) from billing_rows r
           where r.org_id = d.org_id and r.source_id = d.source_id and r.day = d.day and r.feed = d.feed and r.report = d.report
             and r.charge_category = d.charge_category)`,
      ),
    ).toEqual([]);
    await worker.stop();
    rmSync(folder, { recursive: true, force: true });
  });
});

describe('the schedule of a connection', () => {
  const idOf = (connection: { id: string }) =>
    syncScheduleId({ orgId: place.api.orgId, connectionId: findUuid('con', connection.id) ?? '' });
  const schedules = () => place.engine.orchestrator.listSyncSchedules();

  it('follows its row: made, paused, resumed and removed with it', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('openai');
    const id = idOf(connection);
    await until('the schedule', schedules, (found) => found.get(id)?.paused === false);
    // It is noted behind the schedule.
    await expect
      .poll(async () => (await place.api.get(`${CONNECTIONS}/${connection.id}`)).body.next_sync_at)
      .not.toBeNull();
    await place.changeConnection(connection.id, { paused: true });
    await until('the pause', schedules, (found) => found.get(id)?.paused === true);
    await place.changeConnection(connection.id, { paused: false });
    await until('the end of the pause', schedules, (found) => found.get(id)?.paused === false);
    await place.endConnection(connection.id);
    await until('the end of the schedule', schedules, (found) => !found.has(id));
  });

  it('that Temporal lost is restored, and a schedule without a connection is removed', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('anthropic');
    const id = idOf(connection);
    await until('the schedule', schedules, (found) => found.has(id));
    const stray = { orgId: randomUUID(), connectionId: randomUUID() };
    await place.engine.orchestrator.putSyncSchedule({ ...stray, everySeconds: 3_600, paused: false });
    await place.engine.orchestrator.deleteSchedule(id);
    await until('the loss', schedules, (found) => !found.has(id) && found.has(syncScheduleId(stray)));
    await place.engine.schedules.reconcile();
    await until(
      'the healed schedules',
      schedules,
      (found) => found.has(id) && !found.has(syncScheduleId(stray)),
    );
  });

  it('requests a sync that runs like every other, and none while one is open', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('anthropic');
    await until('the schedule', schedules, (found) => found.has(idOf(connection)));
    const worker = await place.engine.startWorker();
    await place.ended(connection.sync);
    const temporal = await Connection.connect({ address: inject('temporalAddress') });
    const handle = new Client({ connection: temporal, namespace: TEST_NAMESPACE }).schedule.getHandle(
      idOf(connection),
    );
    await handle.trigger();
    const list = await until(
      'the scheduled sync',
      () => place.api.get(`${CONNECTIONS}/${connection.id}/runs`),
      ({ body }) => body.runs[0].trigger === 'schedule' && body.runs[0].status === 'succeeded',
      180_000,
    );
    expect(list.body.count).toBe(2);
    expect(list.body.runs[0].result).toMatchObject({ changed_days: 0, missing: [] });
    await worker.stop();
    await temporal.close();
  });
});

describe('a sync that Temporal has lost', () => {
  it('is started again, and ends as if nothing had happened', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace({ sweep: { queuedSeconds: 0, silentSeconds: 0 } });
    const connection = await place.connect('anthropic');
    await until(
      'the start',
      () => rows(`select from outbox where kind = 'billing_sync.start' and dispatched_at is not null`),
      (found) => found.length === 1,
    );
    const temporal = await Connection.connect({ address: inject('temporalAddress') });
    const runId = findUuid('run', connection.sync.id);
    const lost = `sync-run:${place.api.orgId}:${runId}`;
    await temporal.workflowService.deleteWorkflowExecution({
      namespace: TEST_NAMESPACE,
      workflowExecution: { workflowId: lost },
    });
    await until(
      'the loss',
      () => place.engine.orchestrator.describe(lost),
      (state) => state === 'unknown',
    );
    await place.engine.sweeper.sweep();
    const worker = await place.engine.startWorker();
    expect(await place.ended(connection.sync)).toMatchObject({
      status: 'succeeded',
    });
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
    await worker.stop();
    await temporal.close();
  });
});

describe('a sync whose secret key is missing', () => {
  it('ends at once with what to do, asks the provider nothing and loses nothing', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('openai');
    const asked = place.openai.requests.length;
    await rows(
      `update billing_connections set ciphertext = set_byte(ciphertext, 1, 255 - get_byte(ciphertext, 1))`,
    );
    await place.engine.startWorker();
    const run = await place.ended(connection.sync);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'secret_key_missing' }, result: null });
    expect(run.error.message).toContain('DATA_DIR/secret-key');
    expect(place.openai.requests).toHaveLength(asked);
    const { body } = await place.api.get(`${CONNECTIONS}/${connection.id}`);
    expect(body).toMatchObject({ status: 'failing', last_error: run.error });
    // The key is back: the next sync takes up all of it.
    await rows(
      `update billing_connections set ciphertext = set_byte(ciphertext, 1, 255 - get_byte(ciphertext, 1))`,
    );
    expect(await place.syncAgain(connection)).toMatchObject({
      status: 'succeeded',
      result: { changed_days: BACKFILL_DAYS + 1, missing: [] },
    });
  });
});
