import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClaimActivities } from '../../../activities/claims.js';
import type { MoveAnswer } from '../../../adapters/orchestrator.js';
import type { ClaimCommand } from '../../../domain/claims/lifecycle.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { type ClaimsPlace, startClaimsPlace, untilMoved, uuidOf } from '../../support/claimsPlace.js';
import { type RunningWorker, until } from '../../support/engine.js';

let place: ClaimsPlace;
/** The answers of Temporal to the API; those of the real one where nothing is set. */
let engine: ((command: ClaimCommand) => Promise<MoveAnswer>) | undefined;
let workers: RunningWorker[] = [];
beforeAll(async () => {
  place = await startClaimsPlace({
    moveClaim: (input, command) =>
      engine ? engine(command) : place.engine.orchestrator.moveClaim(input, command),
  });
}, 300_000);
afterEach(async () => {
  engine = undefined;
  for (const worker of workers) await worker.stop();
  workers = [];
});
afterAll(() => place?.close());

const work: ClaimsPlace['engine']['startWorker'] = async (replace) => {
  const worker = await place.engine.startWorker(replace);
  workers.push(worker);
  return worker;
};
const record = (command: ClaimCommand) =>
  place.api.orgDb.transaction((inside) => recordClaimMove(inside, command));
const AWAY = {
  status: 503,
  code: 'workflow_engine_unavailable',
  message: expect.stringContaining('The claim is as it was'),
};

describe('while Temporal is away', () => {
  it('a legal move is 503 and changes nothing; everything else is answered as usual; a repeat is carried out', async () => {
    const id = await place.aClaim();
    const before = await place.get(id);
    const once = randomUUID();
    engine = async () => ({ kind: 'unsent' });
    const { status, body, headers } = await place.submit(id, { once });
    expect([status, body, headers['retry-after']]).toEqual([503, expect.objectContaining(AWAY), '5']);
    expect(headers['content-type']).toContain('application/problem+json');
    expect((await place.patch(id, { status: 'lost' })).status).toBe(400);
    expect((await place.patch(id, { status: 'under_review' })).status).toBe(409);
    expect((await place.submit(`clm_${'0'.repeat(32)}`)).status).toBe(404);
    expect(await place.get(id)).toEqual(before);
    engine = undefined;
    await work();
    const again = await untilMoved(() => place.submit(id, { once }));
    expect([again.status, again.body.status]).toEqual([200, 'submitted_to_provider']);
    engine = async () => ({ kind: 'unsent' });
    expect((await place.submit(id, { once })).body).toEqual(again.body);
  });

  it('a worker that comes later does not carry out what was answered with 503', {
    timeout: 300_000,
  }, async () => {
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    // No worker runs: Temporal takes the move and keeps it.
    const once = randomUUID();
    const { status } = await place.patch(id, { status: 'under_review' }, { once });
    expect(status).toBe(503);
    await work();
    const handle = place.handleOf(id);
    const events = await until(
      'the end of the move that came too late',
      async () => (await handle.fetchHistory()).events ?? [],
      (found) => found.some((event) => event.workflowExecutionUpdateCompletedEventAttributes),
      180_000,
    );
    expect(
      events.flatMap(({ workflowExecutionUpdateCompletedEventAttributes: ended }) =>
        ended ? [ended.outcome?.failure?.applicationFailureInfo?.type] : [],
      ),
    ).toEqual(['command_too_late']);
    expect(await place.historyOf(id)).toEqual(['draft', 'submitted_to_provider']);
    // The same request is sent again and is carried out now.
    const again = await untilMoved(() => place.patch(id, { status: 'under_review' }, { once }));
    expect([again.status, again.body.version]).toEqual([200, 3]);
  });
});

describe('when Temporal does not return the outcome of a move', () => {
  it('the row is read: the recorded move is the answer', async () => {
    const id = await place.aClaim();
    engine = async (command) => {
      await record(command);
      return { kind: 'unknown', cause: new Error('the line is cut') };
    };
    const { status, body } = await place.submit(id);
    expect([status, body.status]).toEqual([200, 'submitted_to_provider']);
  });

  it('a move that is under way is waited for while its row is locked', async () => {
    const id = await place.aClaim();
    let isRecorded = false;
    engine = async (command) => {
      const late = place.api.orgDb.transaction(async (inside) => {
        await recordClaimMove(inside, command);
        // Its time is over before it is committed.
        const { rows } = await place.api.database.superuser.query(
          'select extract(epoch from clock_timestamp()) * 1e6 as micros',
        );
        const leftMs = (command.notAfterMicros - Number(rows[0].micros)) / 1_000;
        await new Promise((resolve) => setTimeout(resolve, leftMs + 500));
        isRecorded = true;
      });
      late.catch(() => undefined);
      // Waits until the row is locked.
      await until(
        'the hold',
        () =>
          place.api.database.superuser.query('select from claims where id = $1 for update skip locked', [
            uuidOf(id),
          ]),
        ({ rowCount }) => rowCount === 0,
      );
      return { kind: 'unknown', cause: new Error('the line is cut') };
    };
    const { status, body } = await place.submit(id);
    expect(isRecorded).toBe(true);
    expect([status, body.status]).toEqual([200, 'submitted_to_provider']);
  });

  it('and another request has moved the claim, the answer is the conflict', async () => {
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    engine = async (command) => {
      await record({ ...command, commandId: randomUUID(), to: 'escalated' });
      return { kind: 'unknown', cause: new Error('the line is cut') };
    };
    const { status, body } = await place.patch(id, { status: 'under_review' });
    expect([status, body.code]).toEqual([409, 'claim_conflict']);
  });

  it('and it was not made, 503 comes once it can be made no more', async () => {
    const id = await place.aClaim();
    let asked: ClaimCommand | undefined;
    engine = async (command) => {
      asked = command;
      return { kind: 'unknown', cause: new Error('the line is cut') };
    };
    const answer = await place.submit(id);
    expect([answer.status, answer.body]).toEqual([503, expect.objectContaining(AWAY)]);
    if (!asked) throw new Error('the engine was asked');
    const { recordClaimMove: effect } = createClaimActivities({
      database: place.api.database.database,
    } as Parameters<typeof createClaimActivities>[0]);
    await expect(effect({ orgId: place.api.orgId, command: asked })).rejects.toMatchObject({
      type: 'command_too_late',
    });
    expect(await place.historyOf(id)).toEqual(['draft']);
  });
});

describe('a claim whose workflow is gone', () => {
  it('comes back with the next call', async () => {
    await work();
    const id = await place.aClaim();
    expect((await untilMoved(() => place.submit(id))).status).toBe(200);
    const before = await place.get(id);
    await place.handleOf(id).terminate('lost');
    const { status, body } = await untilMoved(() => place.patch(id, { status: 'provider_acknowledged' }));
    expect([status, body.status, body.submitted_at]).toEqual([
      200,
      'provider_acknowledged',
      before.submitted_at,
    ]);
    expect((await place.handleOf(id).describe()).status.name).toBe('RUNNING');
    expect(await place.historyOf(id)).toEqual(['draft', 'submitted_to_provider', 'provider_acknowledged']);
  });

  it('takes a move after another change of its row', async () => {
    await work();
    const id = await place.aClaim();
    expect((await untilMoved(() => place.submit(id))).status).toBe(200);
    // Simulates a restored backup, or another change of the row.
    await place.api.database.superuser.query('update claims set version = version + 5 where id = $1', [
      uuidOf(id),
    ]);
    const { status, body } = await untilMoved(() => place.patch(id, { status: 'escalated' }));
    expect([status, body.version]).toEqual([200, 8]);
  });
});
