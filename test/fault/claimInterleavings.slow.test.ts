import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../api/support/requests.js';
import { startTestApi } from '../support/api.js';
import { CLAIMS, uuidOf } from '../support/claimsPlace.js';
import { type RunningWorker, until, writeWorkflowBundle } from '../support/engine.js';
import { makeTestFolder } from '../support/testFolder.js';
import { ClaimSystem } from './support/claimSystem.js';

const folder = makeTestFolder('claim-interleavings');
let system: ClaimSystem;
let worker: RunningWorker | undefined;
beforeAll(async () => {
  system = await ClaimSystem.start(await writeWorkflowBundle(folder));
});
afterEach(async () => {
  system.mendLine();
  await worker?.stop();
  worker = undefined;
});
afterAll(async () => {
  await system?.close();
  rmSync(folder, { recursive: true, force: true });
});

const work = async () => {
  worker = await system.place.engine.startWorker();
};
const SUBMIT = { call: 'submit' } as const;
const MADE = ['draft', 'submitted_to_provider'];

/** Locks a claim's row, so that a move stops in the middle; returns the release. */
async function hold(id: string): Promise<() => Promise<void>> {
  const holder = await system.place.api.database.superuser.connect();
  await holder.query('begin');
  await holder.query('select from claims where id = $1 for update', [uuidOf(id)]);
  return async () => {
    await holder.query('commit');
    holder.release();
  };
}

/** Statements that wait for a row. */
const waiting = async (): Promise<number> => {
  const { rows } = await system.place.api.database.superuser.query(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%claims%'`,
  );
  return rows[0].count;
};
const untilWaiting = (count: number) =>
  until('the wait for the row', waiting, (found) => found >= count, 180_000);

/** The time of the database, microseconds. */
const clock = async (): Promise<number> => {
  const { rows } = await system.place.api.database.superuser.query(
    'select extract(epoch from clock_timestamp()) * 1e6 as micros',
  );
  return Number(rows[0].micros);
};

const repeatUntilAnswered = (id: string, once: string) =>
  until(
    'the answer',
    () => system.ask(id, SUBMIT, once),
    ({ status }) => status !== 503,
    180_000,
  );

/** The repeat is carried out, once. */
async function expectRepeatMoves(id: string, once: string): Promise<void> {
  const again = await repeatUntilAnswered(id, once);
  expect([again.status, again.body.status, again.body.version]).toEqual([200, 'submitted_to_provider', 2]);
  expect(await system.place.historyOf(id)).toEqual(MADE);
  expect((await system.aside(id)).logged).toBe(1);
}

describe('a move that was answered with 503 is not made later', () => {
  it('though its effect waits for the row until its time is over', { timeout: 300_000 }, async () => {
    await work();
    const id = await system.aClaim();
    const once = randomUUID();
    const release = await hold(id);
    const asked = await clock();
    const moving = system.ask(id, SUBMIT, once);
    // The activity, and the API that checks its result after Temporal was silent.
    await untilWaiting(2);
    await until('the end of its time', clock, (now) => now > asked + 7_000_000, 180_000);
    await release();
    expect((await moving).status).toBe(503);
    // Every attempt of it has had its turn at the row.
    await until('the end of all attempts', waiting, (count) => count === 0);
    expect(await system.place.historyOf(id)).toEqual(['draft']);
    await expectRepeatMoves(id, once);
  });

  it('though the line to Temporal hung and then delivered what it held', {
    timeout: 300_000,
  }, async () => {
    await work();
    const [id, before] = [await system.aClaim(), await system.aClaim()];
    // The connection is open.
    expect((await repeatUntilAnswered(before, randomUUID())).status).toBe(200);
    const once = randomUUID();
    system.line.stall();
    expect((await system.ask(id, SUBMIT, once)).status).toBe(503);
    system.mendLine();
    // All earlier messages have arrived when a later request on the same connection is answered.
    expect((await repeatUntilAnswered(await system.aClaim(), randomUUID())).status).toBe(200);
    expect(await system.place.historyOf(id)).toEqual(['draft']);
    await expectRepeatMoves(id, once);
  });

  it('though a worker begins long after, with Temporal cut off and back again', {
    timeout: 300_000,
  }, async () => {
    const id = await system.aClaim();
    const once = randomUUID();
    // Temporal has taken it, and no worker runs.
    const moving = system.ask(id, SUBMIT, once);
    await until(
      'the workflow',
      () =>
        system.place
          .handleOf(id)
          .describe()
          .then(() => true)
          .catch(() => false),
      Boolean,
    );
    system.line.cut();
    expect((await moving).status).toBe(503);
    system.mendLine();
    await work();
    await system.place.engine.orchestrator.wakeClaim({ orgId: system.place.api.orgId, claimId: uuidOf(id) });
    await until(
      'the first look of the workflow',
      async () => (await system.place.handleOf(id).fetchHistory()).events ?? [],
      (events) => events.some((event) => event.activityTaskCompletedEventAttributes),
      180_000,
    );
    expect(await system.place.historyOf(id)).toEqual(['draft']);
    await expectRepeatMoves(id, once);
  });
});

describe('a move that is under way when Temporal can no longer be asked', () => {
  it.each(['cut', 'silence', 'stall'] as const)(
    '(%s) is answered from its row: it was made',
    {
      timeout: 300_000,
    },
    async (how) => {
      await work();
      const id = await system.aClaim();
      const once = randomUUID();
      const release = await hold(id);
      const moving = system.ask(id, SUBMIT, once);
      await untilWaiting(1);
      // Accepted, and not completed.
      system.line[how]();
      await release();
      const answer = await moving;
      const made = await system.place.historyOf(id);
      expect([answer.status, made]).toEqual(answer.status === 200 ? [200, MADE] : [503, ['draft']]);
      system.mendLine();
      const again = await repeatUntilAnswered(id, once);
      expect([again.status, again.body.status]).toEqual([200, 'submitted_to_provider']);
      if (answer.status === 200) expect(again.body).toEqual(answer.body);
      expect(await system.place.historyOf(id)).toEqual(MADE);
    },
  );
});

describe('several instances of the API', () => {
  it('50 moves that exclude each other, over three of them: one is made, the others get 409', {
    timeout: 300_000,
  }, async () => {
    await work();
    const { api, engine } = system.place;
    const moveClaim = engine.orchestrator.moveClaim.bind(engine.orchestrator);
    const others = await Promise.all(
      [1, 2].map(() => startTestApi({ database: api.database, moveClaim, tellsChanges: false })),
    );
    const instances = [api, ...others];
    const id = await system.place.aClaim({ status: 'submitted_to_provider' });
    const bodies = [
      { status: 'credit_issued', credit_issued_cents: 12_345 },
      { status: 'partial', credit_issued_cents: 5 },
      { status: 'denied', denial_reason: 'no', violation_type: 'other' },
    ];
    const patch = (at: number) =>
      send(instances[at % 3] ?? api, {
        method: 'PATCH',
        path: `${CLAIMS}/${id}/status`,
        key: api.adminKey,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(bodies[(at >> 2) % 3]),
      });
    const first = await Promise.all(Array.from({ length: 50 }, (_, at) => patch(at)));
    // On an overloaded machine some are asked to retry, as clients do.
    const answers = await Promise.all(
      first.map((answer, at) =>
        answer.status === 503
          ? until(
              'the answer',
              () => patch(at),
              ({ status }) => status !== 503,
              180_000,
            )
          : answer,
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(49).fill(409)]);
    expect((await system.place.historyOf(id)).length).toBe(3);
    expect((await system.place.get(id)).outcomes.length).toBe(1);
    await Promise.all(others.map((other) => other.close()));
  });
});
