import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { defineEndpoint } from '../../../api/endpoint.js';
import { updateOrganizationName } from '../../../db/installation/organizations.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { until } from '../../support/engine.js';
import type { Operation, OperationRequest, OperationsPlace } from '../support/operations/operation.js';
import { OPERATIONS } from '../support/operations.js';
import type { ProviderGate } from '../support/providerGate.js';
import { aKey, perform, type RepeatsPlace, startRepeatsPlace, startRun } from '../support/repeats.js';
import { type RawAnswer, send } from '../support/requests.js';
import { readTenantDigest } from '../support/tenantDigest.js';

/** An advisory lock of this test. */
const HELD = 15_001;

let at: RepeatsPlace;
let place: OperationsPlace;
let gate: ProviderGate;
let one: TestApi;
let other: TestApi;

beforeAll(async () => {
  at = await startRepeatsPlace();
  ({ place, gate, one, other } = at);
});
afterAll(() => at?.close());

/** Sends the same request many times at once, to two processes. */
function repeatAtOnce(
  operation: Pick<Operation, 'method' | 'path'>,
  request: OperationRequest,
  owner: TestOrganization,
  times: number,
): Promise<RawAnswer[]> {
  const key = aKey();
  return Promise.all(
    Array.from({ length: times }, (_, index) =>
      perform(operation, request, { owner, key, api: index % 2 === 0 ? one : other }),
    ),
  );
}

const operationOf = (name: string): Operation => OPERATIONS[name] as Operation;

describe('repeats at the same time', () => {
  it.each(['startGapRun', 'createPriceOverride', 'createBillingImport', 'createBillingConnection'])(
    '%s: of 50 over two processes one is carried out; the others get its answer or a 409 that it is under way',
    async (name) => {
      const owner = await one.addOrganization();
      const operation = operationOf(name);
      const request = await operation.request(place, owner);
      const before = await readTenantDigest(one.database, owner.orgId);
      const answers = await repeatAtOnce(operation, request, owner, 50);
      const firsts = answers.filter(({ status }) => status === operation.status);
      const busy = answers.filter(({ body }) => body.code === 'idempotency_in_progress');
      expect(firsts.length + busy.length, answers.map(({ status }) => status).join()).toBe(50);
      expect(firsts.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length).toBe(1);
      expect(new Set(firsts.map(({ bytes }) => bytes.toString())).size).toBe(1);
      for (const { status, headers } of busy)
        expect([status, Number(headers['retry-after']) > 0]).toEqual([409, true]);
      const after = await readTenantDigest(one.database, owner.orgId);
      expect(after).not.toEqual(before);
      // The effect of exactly one request, as in an organization that sent the request once.
      const single = await one.addOrganization();
      await perform(operation, await operation.request(place, single), { owner: single, api: one });
      const counts = (lines: string[]) => lines.map((line) => line.replace(/ \w+$/, ''));
      expect(counts(after)).toEqual(counts(await readTenantDigest(one.database, single.orgId)));
    },
    180_000,
  );

  it('are answered at once, and do not wait for what the first one waits for', async () => {
    const owner = await one.addOrganization();
    const operation = operationOf('updateOrganization');
    const request = { json: { name: 'Another name' } };
    const key = aKey();
    const { superuser } = one.database;
    const holder = await superuser.connect();
    // Waits for as long as the test needs; a row lock would be given up after two seconds.
    await superuser.query(`
      create function hold_update() returns trigger language plpgsql as $$ begin
        while not pg_try_advisory_xact_lock_shared(${HELD}) loop perform pg_sleep(0.01); end loop;
        return new;
      end $$;
      create trigger hold_update before update on organizations for each row execute function hold_update()`);
    await holder.query('select pg_advisory_lock($1)', [HELD]);
    const first = perform(operation, request, { owner, key, api: one });
    await until(
      'the first to be held',
      () =>
        superuser.query(
          `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
        ),
      ({ rowCount }) => (rowCount ?? 0) > 0,
    );
    const again = await perform(operation, request, { owner, key, api: other });
    expect([again.status, again.body.code]).toEqual([409, 'idempotency_in_progress']);
    await holder.query('select pg_advisory_unlock($1)', [HELD]);
    holder.release();
    expect((await first).status).toBe(200);
    await superuser.query('drop trigger hold_update on organizations; drop function hold_update()');
    const repeat = await perform(operation, request, { owner, key, api: other });
    expect([repeat.status, repeat.headers['idempotency-replayed']]).toEqual([200, 'true']);
  });

  it('other keys and other organizations do not wait for them', async () => {
    const owners = await Promise.all(Array.from({ length: 6 }, () => one.addOrganization()));
    const key = aKey();
    const answers = await Promise.all(
      owners.map((owner) => perform(startRun, {}, { owner, key, api: other })),
    );
    expect(answers.map(({ status }) => status)).toEqual(owners.map(() => 202));
  });
});

describe('an attempt that asks others first', () => {
  const connect = () => operationOf('createBillingConnection');

  async function keyRow(owner: TestOrganization) {
    const { rows } = await one.database.superuser.query(
      'select status, attempt, lease_until > now() as is_leased from idempotency_keys where org_id = $1',
      [owner.orgId],
    );
    return rows[0];
  }

  it('is seen by others while it waits, and holds no transaction meanwhile', async () => {
    const owner = await one.addOrganization();
    const request = await connect().request(place, owner);
    const key = aKey();
    gate.shut();
    const first = perform(connect(), request, { owner, key, api: one });
    await gate.waiting(1);
    await until(
      'no transaction to be open',
      () =>
        one.database.superuser.query(
          `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
        ),
      ({ rowCount }) => rowCount === 0,
      3_000,
    );
    const again = await perform(connect(), request, { owner, key, api: other });
    expect([again.status, again.body.code]).toEqual([409, 'idempotency_in_progress']);
    const reused = await perform(connect(), request, { owner, key, query: 'other=1', api: one });
    expect(reused.status).toBe(422);
    gate.open();
    const answer = await first;
    expect(answer.status).toBe(201);
    expect((await perform(connect(), request, { owner, key, api: other })).bytes).toEqual(answer.bytes);
  });

  it('that died leaves its key to the next one when its lease has run out', async () => {
    const owner = await one.addOrganization();
    const request = await connect().request(place, owner);
    const key = aKey();
    gate.shut();
    const first = perform(connect(), request, { owner, key, api: one });
    await gate.waiting(1);
    await one.database.superuser.query(
      `update idempotency_keys set lease_until = now() - interval '1 second' where org_id = $1`,
      [owner.orgId],
    );
    const second = perform(connect(), request, { owner, key, api: other });
    await gate.waiting(2);
    gate.open();
    const answers = await Promise.all([first, second]);
    // The first attempt was slow and not dead: its work is rolled back, and only its successor's is stored.
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
    const { body } = await one.get('/api/v1/billing-connections', owner.adminKey);
    expect(body.count).toBe(1);
    const again = await perform(connect(), request, { owner, key, api: one });
    expect([again.status, again.body.id]).toEqual([201, body.connections[0].id]);
  });

  it('releases its key at once when the provider fails', async () => {
    const owner = await one.addOrganization();
    const request = await connect().request(place, owner);
    const key = aKey();
    place.openai.faults.inject({ kind: 'outage', status: 503 });
    const failed = await perform(connect(), request, { owner, key, api: one });
    place.openai.faults.clear();
    expect([failed.status, failed.body.code]).toEqual([503, 'provider_unavailable']);
    expect(await keyRow(owner)).toBeUndefined();
    expect((await perform(connect(), request, { owner, key, api: one })).status).toBe(201);
  });
});

describe('a step after a stored change', () => {
  it('costs the request nothing where it fails: it is carried out, and answered so', async () => {
    const failing = defineEndpoint({
      operationId: 'renameAndFail',
      method: 'post',
      path: '/rename-and-fail',
      tag: 'Test',
      summary: 'Renames the organization; what follows fails',
      access: { scope: 'org:admin', workspace: 'refused' },
      responses: { 204: { description: 'Renamed' } },
      problems: [],
      async handle({ orgDb, afterCommit }) {
        await updateOrganizationName(orgDb, 'Another name');
        afterCommit(() => Promise.reject(new Error('nobody is there to be told')));
        return { status: 204 };
      },
    });
    const api = await startTestApi({ endpoints: [...ENDPOINTS, failing] });
    for (const headers of [{}, { 'idempotency-key': 'once' }] as Record<string, string>[]) {
      const answer = await send(api, { method: 'POST', path: '/rename-and-fail', headers });
      expect(answer.status).toBe(204);
    }
    expect((await api.get('/api/v1/organization')).body.name).toBe('Another name');
    await api.close();
  });
});
