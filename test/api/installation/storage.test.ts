import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeStorage, storageStatus } from '../../../bin/wiring/storageStatus.js';
import { findFullStorage, STORAGE_PROBE } from '../../../db/health.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { anEvent, send } from '../support/requests.js';

const MEGABYTE = 1_048_576;

let database: TestDatabase;
let api: TestApi;
let clockMs = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({
    database,
    storageStatus: storageStatus({
      database: database.database,
      findFull: () => findFullStorage(database.database),
      findDirectory: () => undefined,
      nowMs: () => performance.now() + clockMs,
    }),
  });
});
afterAll(async () => {
  await api?.close();
  await database?.close();
});

const read = (path: string) => send(api, { path });
const ingest = (event: object) =>
  send(api, {
    path: '/api/v1/ingest/events',
    key: api.ingestKey,
    body: JSON.stringify({ events: [event] }),
    headers: { 'content-type': 'application/json' },
  });

describe('a database that answers 53100 to writes', () => {
  it('makes ingest answer storage_full, and readyz and metrics report it, until there is room', async () => {
    const event = anEvent();
    expect((await read('/readyz')).body.storage).toBe('ok');
    await database.superuser.query(`
      create function disk_full() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
      create trigger disk_full before insert on events for each row execute function disk_full()`);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const refused = await ingest(event);
      expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([
        503,
        'storage_full',
        '30',
      ]);
      expect(refused.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(refused.body.detail).not.toMatch(/extend file|\//);
    }
    clockMs += 3_000;
    const ready = await read('/readyz');
    expect([ready.status, ready.body]).toEqual([
      200,
      expect.objectContaining({
        status: 'degraded',
        postgres: 'up',
        storage: 'full',
        reasons: expect.arrayContaining([expect.stringMatching(/^The disk of the database is full: /)]),
      }),
    ]);
    expect((await read('/metrics')).bytes.toString()).toMatch(/^trueup_storage_full 1$/m);
    expect((await read('/healthz')).body).toEqual({ status: 'ok' });
    expect((await read('/api/v1/events')).status).toBe(200);

    await database.superuser.query('drop trigger disk_full on events');
    await expect.poll(async () => (await ingest(event)).status).toBe(202);
    clockMs += 60_000;
    expect((await read('/readyz')).body.storage).toBe('ok');
    expect((await read('/metrics')).bytes.toString()).toMatch(/^trueup_storage_full 0$/m);
    expect((await read('/api/v1/events')).body.events).toHaveLength(1);
  });

  it('does not try each call of a flood against a full disk', async () => {
    await database.superuser.query(`
      create sequence attempts;
      grant usage on sequence attempts to app_rw;
      create function disk_full_counted() returns trigger language plpgsql as
        $$ begin perform nextval('attempts'); raise exception 'full' using errcode = '53100'; end $$;
      create trigger disk_full before insert on events for each row execute function disk_full_counted()`);
    const began = performance.now();
    for (let call = 0; call < 40; call += 1) expect((await ingest(anEvent())).status).toBe(503);
    const { rows } = await database.superuser.query<{ last_value: string }>(
      'select last_value from attempts',
    );
    expect(Number(rows[0]?.last_value)).toBeLessThanOrEqual(1 + (performance.now() - began) / 2_000);
    await database.superuser.query('drop trigger disk_full on events');
  });
});

describe('the status of the storage', () => {
  it.each([
    [{ isFull: false, freeBytes: undefined }, 'ok'],
    [{ isFull: false, freeBytes: 64 * MEGABYTE }, 'ok'],
    [{ isFull: false, freeBytes: 64 * MEGABYTE - 1 }, 'low'],
    [{ isFull: false, freeBytes: 0 }, 'full'],
    [{ isFull: true, freeBytes: 64 * MEGABYTE }, 'full'],
    [{ isFull: true, freeBytes: undefined }, 'full'],
  ] as const)('of %o is %s', (seen, storage) => {
    expect(judgeStorage(seen).storage).toBe(storage);
  });

  it('is asked for every two seconds at most, and again after those', async () => {
    let asked = 0;
    let nowMs = 0;
    const status = storageStatus({
      database: { storageFullAtMs: undefined },
      findFull: async () => {
        asked += 1;
        return asked === 1 ? 'full' : 'ok';
      },
      findDirectory: () => undefined,
      nowMs: () => nowMs,
    });
    for (let time = 0; time < 10; time += 1) expect((await status()).storage).toBe('full');
    expect(asked).toBe(1);
    nowMs = 2_001;
    expect((await status()).storage).toBe('ok');
  });

  it('is detected by a write that reaches the disk', async () => {
    const client = await database.superuser.connect();
    await client.query('begin');
    await client.query(STORAGE_PROBE.memory);
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${STORAGE_PROBE.write}`);
    await client.query('rollback');
    client.release();
    expect(rows[0]['QUERY PLAN'][0].Plan['Temp Written Blocks']).toBeGreaterThan(32);
  });
});
