import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { send } from '../api/support/requests.js';
import { CLAIMS, type ClaimsPlace, startClaimsPlace, uuidOf } from '../support/claimsPlace.js';
import { until } from '../support/engine.js';
import { forgetAll, killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { makeTestFolder } from '../support/testFolder.js';

const SWEEP = { sweep: { queuedSeconds: 0, silentSeconds: 0 } };
const folder = makeTestFolder('claim-deadlines');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Moves the beginning of a claim's status and its next notice back by some days. */
const age = (place: ClaimsPlace, id: string, days: number) =>
  place.api.database.superuser.query(
    `update claims set entered_at = entered_at - make_interval(days => $2), next_action_at = next_action_at - make_interval(days => $2)
     where id = $1`,
    [uuidOf(id), days],
  );
/** The notices of a claim, in the order in which they were due. */
const toldOf = async (place: ClaimsPlace, id: string): Promise<string[]> => {
  const { rows } = await place.api.database.superuser.query(
    `select details ->> 'action' as action from alerts where org_id = $1 and notice = 'claim_due' and subject_id = $2
     order by (details ->> 'due_at')::timestamptz`,
    [place.api.orgId, id],
  );
  return rows.map(({ action }) => action);
};
const isRunning = async (place: ClaimsPlace, id: string) =>
  (
    await place
      .handleOf(id)
      .describe()
      .catch(() => undefined)
  )?.status.name === 'RUNNING';
const snooze = (place: ClaimsPlace, id: string, when: string | null) =>
  send(place.api, {
    ...{ method: 'POST', path: `${CLAIMS}/${id}/snooze`, headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ until: when }),
  });

describe('deadlines that pass while Temporal is away', () => {
  it('produce one notice each when Temporal is back without its data, and every claim has a workflow', {
    timeout: 300_000,
  }, async () => {
    const dataDir = join(folder, 'engine');
    const first = await startOwnTemporal(dataDir);
    const place = await startClaimsPlace({ engine: { ...SWEEP, address: first.address } });
    const worker = await place.engine.startWorker();
    const claims: string[] = [];
    const made = async (status: ClaimStatus) => {
      const id = await place.aClaim({ status });
      await place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(id) });
      claims.push(id);
      return id;
    };
    const [filed, draft, escalated] = [
      await made('submitted_to_provider'),
      await made('draft'),
      await made('escalated'),
    ];
    const waiting = await made('under_review');
    const { next_action_at: later } = await place.get(waiting);
    await killTemporal(first);
    // Two of the first claim, one of the second, three of the third.
    for (const [id, days] of [
      [filed, 20],
      [draft, 30],
      [escalated, 36],
    ] as const)
      await age(place, id, days);
    await place.engine.sweeper.sweep();
    forgetAll(dataDir);
    const second = await startOwnTemporal(dataDir);
    expect(second.address).toBe(first.address);
    const told = () => Promise.all([filed, draft, escalated].map((id) => toldOf(place, id)));
    const sweeping = setInterval(() => void place.engine.sweeper.sweep().catch(() => undefined), 500);
    await until('all notices', told, (all) => all.flat().length >= 6, 180_000);
    await until(
      'a workflow for each',
      () => Promise.all(claims.map((id) => isRunning(place, id))),
      (all) => all.every(Boolean),
      180_000,
    );
    clearInterval(sweeping);
    // Remaining work of the claim is done before the answer of a move.
    for (const id of [filed, escalated])
      await until(
        'a move',
        () => place.patch(id, { status: 'under_review' }),
        ({ status }) => status === 200,
        180_000,
      );
    expect(await told()).toEqual([
      ['remind', 'suggest_escalation'],
      ['remind'],
      ['remind', 'remind', 'remind'],
    ]);
    expect(await toldOf(place, waiting)).toEqual([]);
    expect(await place.get(waiting)).toMatchObject({
      status: 'under_review',
      version: 3,
      next_action_at: later,
    });
    await worker.stop();
    await place.close();
    await second.stop();
  });
});

describe('the workflow of a claim', () => {
  let place: ClaimsPlace;
  beforeAll(async () => {
    place = await startClaimsPlace({ engine: SWEEP, asksAgain: true });
  }, 300_000);
  afterAll(() => place?.close());

  const timersOf = async (id: string) => {
    const { events } = await place.handleOf(id).fetchHistory();
    return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [Number(timer.startToFireTimeout?.seconds) / 86_400] : [],
    );
  };

  it('sleeps until the next deadline, until a snooze ends, or until the calendar changes', async () => {
    const worker = await place.engine.startWorker();
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    await place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(id) });
    await until(
      'the first timer',
      () => timersOf(id),
      ({ length }) => length > 0,
    );
    const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
    expect((await snooze(place, id, days(300))).status).toBe(200);
    const snoozed = await until(
      'the second',
      () => timersOf(id),
      (all) => (all.at(-1) ?? 0) > 200,
    );
    expect(snoozed.at(-1)).toBeGreaterThan(299);
    expect((await snooze(place, id, null)).status).toBe(200);
    await until(
      'the third',
      () => timersOf(id),
      (all) => (all.at(-1) ?? 300) < 10,
    );
    const holidays = Array.from({ length: 50 }, (_, day) => days(day + 1).slice(0, 10));
    const settings = await send(place.api, {
      ...{ method: 'PATCH', path: '/api/v1/organization/settings', key: place.api.adminKey },
      ...{ headers: { 'content-type': 'application/json' }, body: JSON.stringify({ holidays }) },
    });
    expect(settings.status).toBe(200);
    await until(
      'the fourth',
      () => timersOf(id),
      (all) => (all.at(-1) ?? 0) > 40,
    );
    expect(await toldOf(place, id)).toEqual([]);
    await worker.stop();
  });

  it('starts again after Temporal lost it, though nothing is due for weeks: all claims are compared at the start', async () => {
    const [lost, kept] = [await place.aClaim(), await place.aClaim()];
    const over = await place.aClaim({ status: 'denied' });
    await place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(kept) });
    await until(
      'what runs, as the engine lists it',
      () => place.engine.orchestrator.listClaimWorkflows(),
      (ids) => ids.has(place.handleOf(kept).workflowId),
    );
    await place.engine.sweeper.sweep();
    await until('its workflow', () => isRunning(place, lost), Boolean);
    await place.engine.sweeper.sweep();
    const { rows } = await place.api.database.superuser.query(
      `select subject_id from outbox where kind = 'claim.wake' and subject_id = any($1)`,
      [[lost, kept, over].map(uuidOf)],
    );
    expect(rows).toEqual([{ subject_id: uuidOf(lost) }]);
  });

  it('collects no further wake-ups while no worker sends its notice', async () => {
    const other = await startClaimsPlace({
      engine: { sweep: { queuedSeconds: 60, silentSeconds: 60 } },
      asksAgain: true,
    });
    const id = await other.aClaim({ status: 'escalated' });
    await age(other, id, 12);
    await other.api.database.superuser.query(
      `update claims set next_action_at = now() - interval '2 minutes' where id = $1`,
      [uuidOf(id)],
    );
    const wakes = async () =>
      (
        await other.api.database.superuser.query(
          `select dispatched_at is not null as sent from outbox where kind = 'claim.wake' and subject_id = $1`,
          [uuidOf(id)],
        )
      ).rows;
    await other.engine.sweeper.sweep();
    await until('delivery', wakes, (all) => all.length > 0 && all.every(({ sent }) => sent));
    const { length } = await wakes();
    await other.engine.sweeper.sweep();
    expect(await wakes()).toHaveLength(length);
    const worker = await other.engine.startWorker();
    await until(
      'the notice',
      () => toldOf(other, id),
      (told) => told.length > 0,
    );
    expect(await toldOf(other, id)).toEqual(['remind']);
    await worker.stop();
    await other.close();
  });
});
