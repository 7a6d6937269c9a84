import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listClaimEvents } from '../../db/claims/claims.js';
import { publicId } from '../../domain/ids.js';
import { type RawAnswer, send } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { storeClaim } from '../support/claims.js';
import { CLAIMS } from '../support/claimsPlace.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { type KillablePostgres, startKillablePostgres } from './support/killablePostgres.js';

/** Commits on the way of a move, of the API and of the effect together; more are lost after nothing. */
const COMMITS = 5;

/** API and worker run in this process and are never restarted. */
let postgres: KillablePostgres;
let api: TestApi;
let engine: TestEngine;

beforeAll(async () => {
  postgres = await startKillablePostgres('postgres-killed-in-moves', {
    poolMax: 12,
    statementTimeoutMs: 20_000,
  });
  engine = await startTestEngine(postgres.database.database);
  // Its polls would take the losses that are meant for the move.
  await engine.dispatcher.stop();
  await engine.startWorker();
  api = await startTestApi({
    tellsChanges: false,
    moveClaim: (input, command) => engine.orchestrator.moveClaim(input, command),
    database: postgres.database,
  });
});
afterAll(async () => {
  await api?.close();
  await engine?.close();
  await postgres?.close();
});

const submit = (id: string, once: string): Promise<RawAnswer> =>
  send(api, {
    method: 'POST',
    path: `${CLAIMS}/${publicId('clm', id)}/submit`,
    headers: { 'idempotency-key': once },
  });

/** Retries as a client does, until the answer is the request's. */
const submitUntilAnswered = (id: string, once: string) =>
  until(
    'the answer',
    () => submit(id, once),
    ({ status, body }) => status !== 503 && body.code !== 'idempotency_in_progress',
    180_000,
  );

/** The moves in the history and in the log. */
async function movesOf(id: string): Promise<{ history: string[]; logged: number }> {
  const { rows } = await api.database.superuser.query(
    `select count(*)::int as logged from audit_log where org_id = $1 and subject_id = $2 and action = 'claim.submitted'`,
    [api.orgId, publicId('clm', id)],
  );
  const history = (await listClaimEvents(api.orgDb, id)).map(({ to }) => to);
  return { history, logged: rows[0].logged };
}
const MADE = { history: ['draft', 'submitted_to_provider'], logged: 1 };
const NOT_MADE = { history: ['draft'], logged: 0 };

describe('Postgres in the middle of a move', () => {
  it('killed with -9: nothing is lost, nothing is made twice, and the repeat is answered', {
    timeout: 300_000,
  }, async () => {
    const { id } = await storeClaim(api.orgDb);
    const once = randomUUID();
    const holder = await api.database.superuser.connect();
    holder.on('error', () => undefined);
    await holder.query('begin');
    await holder.query('select from claims where id = $1 for update', [id]);
    const moving = submit(id, once);
    await until(
      'the move at the row',
      async () =>
        (await api.database.superuser.query(`select from pg_stat_activity where wait_event_type = 'Lock'`))
          .rowCount ?? 0,
      (count) => count > 0,
    );
    await postgres.kill();
    holder.release(true);
    await postgres.restart();
    const first = await moving;
    expect([200, 503]).toContain(first.status);
    if (first.status === 503) expect(Number(first.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    const answer = await submitUntilAnswered(id, once);
    expect([answer.status, answer.body.status, answer.body.version]).toEqual([
      200,
      'submitted_to_provider',
      2,
    ]);
    if (first.status === 200) expect(answer.body).toEqual(first.body);
    expect(await movesOf(id)).toEqual(MADE);
    expect((await submit(id, once)).body).toEqual(answer.body);
  });

  it.each(Array.from({ length: COMMITS }, (_, at) => at))(
    'and the answer to commit %i is lost: it is made once, or not and then never',
    {
      timeout: 300_000,
    },
    async (commit) => {
      const { id } = await storeClaim(api.orgDb);
      const once = randomUUID();
      postgres.proxy.loseNextCommit({ after: commit });
      const first = await submit(id, once);
      postgres.proxy.spare();
      expect([200, 503], JSON.stringify(first.body)).toContain(first.status);
      // Once Postgres answers, a failure of Temporal is reported only if the move was certainly not made.
      if (first.body.code === 'workflow_engine_unavailable') expect(await movesOf(id)).toEqual(NOT_MADE);
      const answer = await submitUntilAnswered(id, once);
      expect([answer.status, answer.body.version]).toEqual([200, 2]);
      if (first.status === 200) expect(answer.body).toEqual(first.body);
      expect(await movesOf(id)).toEqual(MADE);
    },
  );
});
