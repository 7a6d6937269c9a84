import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type ClaimsPlace, startClaimsPlace, untilMoved, uuidOf } from '../support/claimsPlace.js';
import { until, writeWorkflowBundle } from '../support/engine.js';
import { forgetAll, killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const folder = makeTestFolder('claim-recovery');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SWEEP = { sweep: { queuedSeconds: 0, silentSeconds: 0 } };

/** Has a claim's notice be due at a time. */
const dueAt = (place: ClaimsPlace, id: string, when: string) =>
  place.api.database.superuser.query(`update claims set next_action_at = ${when} where id = $1`, [
    uuidOf(id),
  ]);
const wake = (place: ClaimsPlace, id: string) =>
  place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(id) });
const noticesOf = async (place: ClaimsPlace, id: string): Promise<number> => {
  const { rows } = await place.api.database.superuser.query(
    `select count(*)::int as count from alerts where org_id = $1 and notice = 'claim_due' and subject_id = $2`,
    [place.api.orgId, id],
  );
  return rows[0].count;
};

describe('a notice', () => {
  let place: ClaimsPlace;
  beforeAll(async () => {
    place = await startClaimsPlace({ engine: SWEEP, asksAgain: true });
  }, 300_000);
  afterAll(() => place?.close());

  it('that becomes due while no worker runs is sent once, by the worker that comes back', async () => {
    const id = await place.aClaim({ status: 'under_review' });
    await dueAt(place, id, `now() - interval '1 second'`);
    await wake(place, id);
    await wake(place, id);
    const worker = await place.engine.startWorker();
    await until(
      'the notice',
      () => noticesOf(place, id),
      (count) => count > 0,
    );
    await wake(place, id);
    await place.patch(id, { status: 'escalated' });
    expect(await noticesOf(place, id)).toBe(1);
    await worker.stop();
  });

  it('of a claim whose workflow is gone is sent after a sweep', async () => {
    const worker = await place.engine.startWorker();
    const id = await place.aClaim();
    expect((await place.submit(id)).status).toBe(200);
    await place.handleOf(id).terminate('lost');
    await dueAt(place, id, `now() - interval '1 second'`);
    await place.engine.sweeper.sweep();
    await until(
      'the notice',
      () => noticesOf(place, id),
      (count) => count > 0,
    );
    const { next_action_at, status } = await place.get(id);
    expect(status).toBe('submitted_to_provider');
    expect(Date.parse(next_action_at)).toBeGreaterThan(Date.now());
    await worker.stop();
  });

  it('that is overdue wakes its claim once, and not while another wake-up is on its way', async () => {
    const id = await place.aClaim();
    await dueAt(place, id, `now() - interval '1 second'`);
    await place.engine.dispatcher.stop();
    await place.engine.sweeper.sweep();
    await place.engine.sweeper.sweep();
    const { rows } = await place.api.database.superuser.query(
      `select count(*)::int as count from outbox where kind = 'claim.wake' and subject_id = $1`,
      [uuidOf(id)],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });
});

describe('a worker', () => {
  it('killed in the middle of a move loses nothing and doubles nothing: the repeat is answered', {
    timeout: 300_000,
  }, async () => {
    const place = await startClaimsPlace({ engine: SWEEP });
    const victim = await spawnWorker({
      databaseUrl: place.api.database.url,
      address: inject('temporalAddress'),
      namespace: TEST_NAMESPACE,
      taskQueue: place.engine.taskQueue,
      bundlePath: await writeWorkflowBundle(folder),
    });
    const id = await place.aClaim();
    const once = randomUUID();
    // The row is locked, so the move is in progress when the worker dies.
    const holder = await place.api.database.superuser.connect();
    await holder.query('begin');
    await holder.query('select from claims where id = $1 for update', [uuidOf(id)]);
    const moving = place.submit(id, { once });
    await until(
      'the move at the row',
      async () =>
        (
          await place.api.database.superuser.query(
            `select from pg_stat_activity where datname = current_database() and application_name = 'killed' and wait_event_type = 'Lock'`,
          )
        ).rowCount,
      (count) => (count ?? 0) > 0,
    );
    await killHard(victim);
    await holder.query('commit');
    holder.release();
    const first = await moving;
    expect([200, 503]).toContain(first.status);
    const worker = await place.engine.startWorker();
    // The engine misses the dead worker after some seconds.
    const again = await until(
      'the move',
      () => place.submit(id, { once }),
      ({ status }) => status !== 503,
      180_000,
    );
    expect([again.status, again.body.status]).toEqual([200, 'submitted_to_provider']);
    if (first.status === 200) expect(again.body).toEqual(first.body);
    expect(await place.historyOf(id)).toEqual(['draft', 'submitted_to_provider']);
    await worker.stop();
    await place.close();
  });
});

describe('the workflow engine', () => {
  it('may be away, and may come back without its data: no claim and no deadline is lost', {
    timeout: 300_000,
  }, async () => {
    const dataDir = join(folder, 'engine');
    const first = await startOwnTemporal(dataDir);
    const place = await startClaimsPlace({ engine: { ...SWEEP, address: first.address } });
    const worker = await place.engine.startWorker();
    const [moved, waiting] = [await place.aClaim(), await place.aClaim()];
    for (const id of [moved, waiting]) expect((await untilMoved(() => place.submit(id))).status).toBe(200);
    const before = await place.get(moved);
    await killTemporal(first);
    const once = randomUUID();
    const refused = await place.patch(moved, { status: 'under_review' }, { once });
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([
      503,
      'workflow_engine_unavailable',
      '5',
    ]);
    expect((await place.patch(moved, { status: 'draft' })).status).toBe(409);
    expect(await place.get(moved)).toEqual(before);
    await dueAt(place, waiting, 'now()');
    forgetAll(dataDir);
    const second = await startOwnTemporal(dataDir);
    expect(second.address).toBe(first.address);
    const sweeping = setInterval(() => void place.engine.sweeper.sweep().catch(() => undefined), 500);
    await until(
      'the notice',
      () => noticesOf(place, waiting),
      (count) => count > 0,
      180_000,
    );
    const again = await until(
      'the move',
      () => place.patch(moved, { status: 'under_review' }, { once }),
      ({ status }) => status === 200,
      180_000,
    );
    clearInterval(sweeping);
    expect(again.body).toMatchObject({
      status: 'under_review',
      version: 3,
      submitted_at: before.submitted_at,
    });
    expect(await place.historyOf(moved)).toEqual(['draft', 'submitted_to_provider', 'under_review']);
    expect(await noticesOf(place, waiting)).toBe(1);
    await worker.stop();
    await place.close();
    await second.stop();
  });
});
