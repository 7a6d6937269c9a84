import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NeedsOwnTransaction, SharedTransactionFailed } from '../../../db/client.js';
import { insertOrganization, updateSettings } from '../../../db/installation/organizations.js';
import { OrgDb, transactionForEach } from '../../../db/orgDb.js';
import { DEFAULT_SETTINGS } from '../../../domain/installation/settings.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import {
  PREPARATION_MS_MAX,
  SharingOrganizations,
  SINGLE_STATEMENTS_MIN,
} from '../../../usecases/events/sharingOrganizations.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { aBatch, aCall } from '../../support/aCall.js';
import { createTestDatabase, PATIENT, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';

let test: TestDatabase;
let prices: PriceBookHolder;
beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10, ...PATIENT });
  prices = await openTestPrices(test.database);
});
afterAll(() => test.close());

async function someOrganizations(count: number): Promise<string[]> {
  const orgIds = Array.from({ length: count }, () => randomUUID());
  for (const id of orgIds) await insertOrganization(test.database, { id, name: 'sharing' });
  return orgIds;
}

const STORE = `insert into ingest_rejections (org_id, hour, project_id, service_name, scope_name, reason, count)
  values ($1::uuid, date_trunc('hour', now()), '', '', '', $2, 1)`;
const SEEN = `select coalesce(jsonb_agg(org_id), '[]') as seen, current_setting('app.org_id') as org, current_user as role
  from ingest_rejections where $1 = 'all'`;
const LOCK_WAIT_MS = 100;

async function storedOf(orgIds: readonly string[], reason: string): Promise<number> {
  const { rows } = await test.superuser.query(
    'select count(*)::int as stored from ingest_rejections where org_id = any($1) and reason = $2',
    [orgIds, reason],
  );
  return rows[0].stored;
}

const reasonsOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof SharedTransactionFailed ? [...error.indexes] : error),
  );

describe('a transaction of several organizations', () => {
  it('runs each statement as its organization alone, so that none reads rows of another', async () => {
    const orgIds = await someOrganizations(3);
    await transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside) =>
      inside.run(STORE, [inside.orgId, 'read']),
    );
    const seen = await transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside) =>
      inside.rows(SEEN, ['all']),
    );
    expect(seen).toEqual(orgIds.map((org) => [{ seen: [org], org, role: 'app_rw' }]));
  });

  it('lets no organization write rows of another that shares it', async () => {
    const orgIds = await someOrganizations(2);
    const work = transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside, index) =>
      inside.run(STORE, [orgIds[1 - index] as string, 'foreign']),
    );
    await expect(work).rejects.toThrow(SharedTransactionFailed);
    expect(await storedOf(orgIds, 'foreign')).toBe(0);
  });

  it('stores nothing of any of them when one fails, and names that one', async () => {
    const orgIds = await someOrganizations(4);
    const work = transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside, index) =>
      inside.run(index === 1 ? STORE.replace('1)', '1 / ($2::int - 1))') : STORE, [inside.orgId, '1']),
    );
    expect(await reasonsOf(work)).toEqual([1]);
    expect(await storedOf(orgIds, '1')).toBe(0);
  });

  it('refuses a second statement, other commands and texts that may hold several commands', async () => {
    const orgIds = await someOrganizations(4);
    const work = transactionForEach(test.database, orgIds, LOCK_WAIT_MS, async (inside, index) => {
      if (index === 0) await inside.unscoped('may not leave its organization', async () => undefined);
      if (index === 1) await inside.rows('set local role app_system; select 1');
      if (index === 2) await inside.attempt(async () => undefined);
      await inside.run(STORE, [inside.orgId, 'second']);
      if (index === 3) await inside.run(STORE, [inside.orgId, 'third']);
    });
    expect(await reasonsOf(work)).toEqual([0, 1, 2, 3]);
    await expect(work).rejects.toMatchObject({ cause: expect.any(NeedsOwnTransaction) });
    expect(await storedOf(orgIds, 'second')).toBe(0);
  });

  it('waits only briefly for a lock, and names the organization that waits', async () => {
    const orgIds = await someOrganizations(3);
    const [locked] = orgIds as [string];
    const holder = await holdRow(locked);
    const started = performance.now();
    const work = transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside) =>
      inside.run(STORE, [inside.orgId, 'locked']),
    );
    expect(await reasonsOf(work)).toEqual([0]);
    expect(performance.now() - started).toBeLessThan(PATIENT.waitLimitMs / 3);
    await holder.end();
  });

  it('leaves nothing of its organizations to the next transaction on its connection', async () => {
    const orgIds = await someOrganizations(2);
    await transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside) =>
      inside.run(STORE, [inside.orgId, 'x']),
    );
    const [row] = await new OrgDb(test.database, orgIds[0] as string).rows(
      'select current_setting($1) as wait',
      ['lock_timeout'],
    );
    expect(row).toEqual({ wait: '30s' });
  });

  it('that reaches no database throws the reason to all, and names none', async () => {
    const orgIds = await someOrganizations(2);
    const slow = `select pg_sleep(10) where $1 = '${orgIds[0]}'`;
    const work = transactionForEach(test.database, orgIds, LOCK_WAIT_MS, (inside, index) =>
      index === 0 ? inside.run(slow, [inside.orgId]) : inside.run(STORE, [inside.orgId, 'lost']),
    );
    const failure = reasonsOf(work);
    const kill = 'select pg_terminate_backend(pid) as killed from pg_stat_activity where query = $1';
    await expect.poll(async () => (await test.superuser.query(kill, [slow])).rowCount).toBe(1);
    expect(await failure).toMatchObject({ code: 'service_unavailable' });
    expect(await storedOf(orgIds, 'lost')).toBe(0);
  });
});

/** Another session that has inserted the row of `STORE` for the organization and not committed it. */
async function holdRow(orgId: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  await client.query('begin');
  await client.query(STORE, [orgId, 'locked']);
  return client;
}

/** A writer whose batches are counted, and organizations that share its transactions. */
async function aSharingWriter(count: number) {
  const orgIds = await someOrganizations(count);
  const batches: number[] = [];
  const writer = new IngestWriter(test.database, prices, 4, {
    queueRows: () => undefined,
    batchRows: (rows) => batches.push(rows),
  });
  let micros = 1_700_000_000_000_000n;
  const send = (orgId: string, requestId = randomUUID()) => {
    micros += 1_000n;
    const call = aCall({ requestId, responseId: requestId, startMicros: micros });
    return writer.submit({
      orgId,
      keyId: `key_${'0'.repeat(10)}`,
      defaultProjectId: null,
      batch: aBatch([call]),
    });
  };
  for (const orgId of orgIds)
    for (let index = 0; index <= SINGLE_STATEMENTS_MIN; index += 1) await send(orgId);
  batches.length = 0;
  const sendAll = () => Promise.all(orgIds.flatMap((orgId) => [send(orgId), send(orgId), send(orgId)]));
  const stored = async (orgId: string) => {
    const { rows } = await test.superuser.query(
      'select count(*) filter (where superseded_by is null)::int as live, count(*)::int as stored from events where org_id = $1',
      [orgId],
    );
    return rows[0] as { live: number; stored: number };
  };
  return { orgIds, writer, batches, send, sendAll, stored };
}

const BEFORE = SINGLE_STATEMENTS_MIN + 1;
const ACCEPTED = { accepted: 1, duplicates: 0, leftOut: 0 };

describe('the writer of calls', () => {
  it('stores the calls of several organizations by few transactions, each for its organization', async () => {
    const { orgIds, batches, sendAll, stored } = await aSharingWriter(5);
    expect(await sendAll()).toEqual(Array(15).fill(ACCEPTED));
    expect(batches.length).toBeLessThan(5);
    expect(batches.reduce((sum, rows) => sum + rows, 0)).toBe(15);
    for (const orgId of orgIds) expect(await stored(orgId)).toEqual({ live: BEFORE + 3, stored: BEFORE + 3 });
  });

  it('stores the others at once, and a reported call once, where one organization reports a call again', async () => {
    const { orgIds, batches, send, sendAll, stored } = await aSharingWriter(3);
    const [again, ...others] = orgIds as [string, ...string[]];
    const responseId = randomUUID();
    await send(again, responseId);
    const outcomes = await Promise.all([send(again, responseId), ...others.map((orgId) => send(orgId))]);
    expect(outcomes).toEqual(Array(3).fill(ACCEPTED));
    expect(await stored(again)).toEqual({ live: BEFORE + 1, stored: BEFORE + 2 });
    for (const orgId of others) expect(await stored(orgId)).toEqual({ live: BEFORE + 1, stored: BEFORE + 1 });
    batches.length = 0;
    await sendAll();
    expect(batches.reduce((sum, rows) => sum + rows, 0)).toBe(9);
  });

  it('holds up no other organization while rows of one are locked', async () => {
    const { orgIds, send, stored } = await aSharingWriter(3);
    const [locked, ...others] = orgIds as [string, ...string[]];
    const responseId = randomUUID();
    const holder = new pg.Client({ connectionString: test.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query(
      `insert into call_spans (org_id, biller, response_id, event_id) values ($1, 'openai', $2, gen_random_uuid())`,
      [locked, responseId],
    );
    let isLocked = true;
    const waiting = send(locked, responseId).then((outcome) => {
      isLocked = false;
      return outcome;
    });
    expect(await Promise.all(others.map((orgId) => send(orgId)))).toEqual(Array(2).fill(ACCEPTED));
    for (let turn = 0; turn < 5; turn += 1) await Promise.all(others.map((orgId) => send(orgId)));
    await pause(LOCK_WAIT_MS);
    expect(isLocked).toBe(true);
    await holder.query('rollback');
    await holder.end();
    expect(await waiting).toEqual(ACCEPTED);
    for (const orgId of others) expect((await stored(orgId)).live).toBe(BEFORE + 6);
  });

  it('stores the calls of another organization while rows of many are locked', async () => {
    const { orgIds, send } = await aSharingWriter(4);
    const [free, ...locked] = orgIds as [string, ...string[]];
    const holder = new pg.Client({ connectionString: test.url });
    await holder.connect();
    await holder.query('begin');
    const responseId = randomUUID();
    for (const orgId of locked)
      await holder.query(
        `insert into call_spans (org_id, biller, response_id, event_id) values ($1, 'openai', $2, gen_random_uuid())`,
        [orgId, responseId],
      );
    const waiting = Promise.all(locked.map((orgId) => send(orgId, responseId)));
    for (let turn = 0; turn < 5; turn += 1) expect(await send(free)).toEqual(ACCEPTED);
    await holder.query('rollback');
    await holder.end();
    expect(await waiting).toEqual(Array(3).fill(ACCEPTED));
  });

  it('applies settings that changed since to the organization that changed them, and stores all', async () => {
    const { orgIds, sendAll, stored } = await aSharingWriter(3);
    const [changed] = orgIds as [string];
    await updateSettings(new OrgDb(test.database, changed), {
      ...DEFAULT_SETTINGS,
      countedScopes: [{ service: aCall().serviceName, scope: 'another' }],
    });
    const outcomes = await sendAll();
    expect(outcomes.slice(0, 3)).toEqual(Array(3).fill({ accepted: 0, duplicates: 0, leftOut: 1 }));
    expect(outcomes.slice(3)).toEqual(Array(6).fill(ACCEPTED));
    expect((await stored(changed)).live).toBe(BEFORE);
  });
});

describe('an organization', () => {
  const proved = (organizations: SharingOrganizations) => {
    for (let index = 0; index < SINGLE_STATEMENTS_MIN; index += 1) organizations.note('a', 1, 1);
  };

  it('shares transactions after a number of batches of one statement each, and not before', () => {
    const organizations = new SharingOrganizations();
    for (let index = 1; index < SINGLE_STATEMENTS_MIN; index += 1) organizations.note('a', 1, 1);
    expect(organizations.mayShare('a')).toBe(false);
    organizations.note('a', 1, 1);
    expect([organizations.mayShare('a'), organizations.mayShare('b')]).toEqual([true, false]);
  });

  it.each([
    ['a batch of two statements', (all: SharingOrganizations) => all.note('a', 2, 1)],
    [
      'a batch that was prepared slowly',
      (all: SharingOrganizations) => all.note('a', 1, PREPARATION_MS_MAX + 1),
    ],
    ['a failure', (all: SharingOrganizations) => all.leave('a')],
  ])('stores alone after %s, until it has met that again', (_, happens) => {
    const organizations = new SharingOrganizations();
    proved(organizations);
    happens(organizations);
    expect(organizations.mayShare('a')).toBe(false);
    proved(organizations);
    expect(organizations.mayShare('a')).toBe(true);
  });
});
