import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Authenticator } from '../../../api/pipeline/auth.js';
import { ChangeFeed, NO_CHANGES } from '../../../db/changeFeed.js';
import { createLogger } from '../../../platform/logger.js';
import { AuthFailures } from '../../../usecases/access/keyUses.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { type RawAnswer, sendJson } from '../support/requests.js';

const KEYS = '/api/v1/keys';
const EVENTS = '/api/v1/events?limit=1';
/** The listening process caches keys for longer than any test, so that only a notification makes it read again. */
const keyCacheMs = 3_600_000;

/** Sessions that wait for a lock of another session. */
const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

let database: TestDatabase;
let first: TestApi;
let second: TestApi;
/** Hears nothing of changes, and remembers a key for a few seconds. */
let deaf: TestApi;

beforeAll(async () => {
  database = await createTestDatabase();
  first = await startTestApi({ database, keyCacheMs });
  second = await startTestApi({ database, keyCacheMs });
  deaf = await startTestApi({ database, tellsChanges: false });
});
afterAll(async () => {
  for (const api of [first, second, deaf]) await api?.close();
  await database?.close();
});

function ask(
  api: TestApi,
  method: string,
  path: string,
  body?: unknown,
  key = first.adminKey,
): Promise<RawAnswer> {
  return sendJson(api, { method, path, key, json: body });
}

const idOf = (key: string) => `key_${key.split('_')[2]}`;
const statusOn = async (api: TestApi, key: string) => (await ask(api, 'GET', EVENTS, undefined, key)).status;

/** A key that every instance has cached. */
async function aWarmKey(): Promise<string> {
  const key = await first.addKey(first.orgId, 'member');
  for (const api of [first, second, deaf]) expect(await statusOn(api, key)).toBe(200);
  return key;
}

/** Waits until both listening instances answer with this status, and checks that they keep doing so. */
async function expectOnBoth(key: string, status: number): Promise<void> {
  for (const api of [first, second]) {
    await expect.poll(() => statusOn(api, key), { interval: 20 }).toBe(status);
    expect(await statusOn(api, key)).toBe(status);
  }
}

/** Checks that no request that begins after the key's end succeeds, and none that ends before it is refused. */
async function expectEndAt(api: TestApi, key: string, endMs: number): Promise<void> {
  for (;;) {
    const begunMs = Date.now();
    const status = await statusOn(api, key);
    if (status === 401) return expect(Date.now()).toBeGreaterThanOrEqual(endMs);
    expect(status).toBe(200);
    expect(begunMs).toBeLessThanOrEqual(endMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Sets a key's end to a near time; to a later one when a slow machine has passed it already. */
async function endSoon(api: TestApi, key: string): Promise<number> {
  for (let afterMs = 1_000; ; afterMs *= 2) {
    const body = { expires_at: new Date(Date.now() + afterMs).toISOString() };
    const answer = await ask(api, 'PATCH', `${KEYS}/${idOf(key)}`, body);
    if (answer.status === 200) return Date.parse(answer.body.expires_at);
    expect(answer.status).toBe(400);
  }
}

describe('with warm caches on two instances', () => {
  it('a revoked key is refused on both, long before what they remember is too old', async () => {
    const key = await aWarmKey();
    expect((await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`)).status).toBe(204);
    await expectOnBoth(key, 401);
  });

  it('so is one that is revoked by hand in SQL', async () => {
    const key = await aWarmKey();
    await database.superuser.query('update api_keys set revoked_at = now() where id = $1', [idOf(key)]);
    await expectOnBoth(key, 401);
  });

  it('a rotated key is refused with its old secret, and its new one works at once everywhere', async () => {
    const key = await aWarmKey();
    const rotated = await ask(first, 'POST', `${KEYS}/${idOf(key)}/rotate`, { grace_seconds: 0 });
    for (const api of [second, first, deaf]) expect(await statusOn(api, rotated.body.key)).toBe(200);
    await expectOnBoth(key, 401);
  });

  it('the old secret of a rotated key works until the end of its grace period, and then no more', async () => {
    const key = await aWarmKey();
    const long = await ask(second, 'POST', `${KEYS}/${idOf(key)}/rotate`, { grace_seconds: 3_600 });
    for (const api of [first, second])
      for (const secret of [key, long.body.key]) expect(await statusOn(api, secret)).toBe(200);
    const rotated = await ask(second, 'POST', `${KEYS}/${idOf(key)}/rotate`, { grace_seconds: 2 });
    const end = Date.parse(rotated.body.previous_valid_until);
    // An instance that receives the new secret knows of the rotation, with or without the message.
    for (const api of [first, second]) expect(await statusOn(api, rotated.body.key)).toBe(200);
    for (const api of [first, second]) {
      await expectEndAt(api, long.body.key, end);
      expect(await statusOn(api, rotated.body.key)).toBe(200);
    }
    await expect.poll(() => statusOn(deaf, long.body.key)).toBe(401);
  });

  it('a key that is narrowed, or gets an end, is held to it on both', async () => {
    const key = await aWarmKey();
    await ask(first, 'PATCH', `${KEYS}/${idOf(key)}`, { scopes: ['usage:read'] });
    await expectOnBoth(key, 403);
    const soon = await aWarmKey();
    await endSoon(second, soon);
    await expectOnBoth(soon, 401);
  });

  it('the keys of a workspace that is archived are refused on both', async () => {
    const workspaceId = await first.addWorkspace(first.orgId, 'p');
    const key = await first.addKey(first.orgId, 'ingest', { workspaceId });
    const bring = async (api: TestApi) =>
      (await ask(api, 'POST', '/api/v1/ingest/events', { events: [] }, key)).status;
    for (const api of [first, second]) expect(await bring(api)).toBe(202);
    await ask(first, 'DELETE', `/api/v1/workspaces/wsp_${workspaceId.replaceAll('-', '')}`);
    for (const api of [first, second]) await expect.poll(() => bring(api), { interval: 20 }).toBe(401);
  });

  it('a key that is looked up while its change is announced is not cached as it was', async () => {
    for (let round = 0; round < 20; round += 1) {
      const key = await first.addKey(first.orgId, 'member');
      const lookups = Array.from({ length: 4 }, () => statusOn(second, key));
      await database.superuser.query('update api_keys set revoked_at = now() where id = $1', [idOf(key)]);
      await Promise.all(lookups);
      await expect.poll(() => statusOn(second, key), { interval: 5 }).toBe(401);
    }
  });
});

describe('a request that is under way when its key is revoked', () => {
  /**
   * Sends all of a request but the last byte of its body, and resolves once the server has begun with it; `end` sends
   * that byte and resolves with the status.
   */
  async function begin(
    api: TestApi,
    path: string,
    body: string,
    key: string,
  ): Promise<{ end(): Promise<number> }> {
    const request = httpRequest(api.baseUrl + path, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        expect: '100-continue',
      },
    });
    await new Promise((resolve, reject) => request.once('continue', resolve).once('error', reject));
    request.write(body.slice(0, -1));
    return {
      end: () =>
        new Promise((resolve, reject) => {
          request.on('error', reject);
          request.on('response', (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          });
          request.end(body.slice(-1));
        }),
    };
  }

  it('is refused when the rest of its body comes: a slow body keeps no key alive', async () => {
    const key = await first.addKey(first.orgId, 'admin');
    expect(await statusOn(second, key)).toBe(200);
    const wanted = JSON.stringify({ name: 'stays', role: 'admin' });
    const slow = [
      await begin(second, KEYS, wanted, key),
      await begin(second, '/api/v1/ingest/events', '{"events":[]}', key),
    ];
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await expect.poll(() => statusOn(second, key), { interval: 20 }).toBe(401);
    // A body that takes less than half a second is judged by the key's state at its beginning.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (const request of slow) expect(await request.end()).toBe(401);
  });

  it('makes and changes no key after that, not even one that waited for the revocation to be committed', async () => {
    for (const narrowed of [false, true]) {
      const key = await first.addKey(first.orgId, 'admin');
      const target = await first.addKey(first.orgId, 'member');
      expect(await statusOn(second, key)).toBe(200);
      const revoker = await database.superuser.connect();
      await revoker.query('begin');
      await revoker.query('select from organizations where id = $1 for no key update', [first.orgId]);
      const attempts = [
        ask(second, 'POST', KEYS, { name: 'stays', role: 'admin' }, key),
        ask(second, 'POST', `${KEYS}/${idOf(target)}/rotate`, {}, key),
        ask(second, 'PATCH', `${KEYS}/${idOf(target)}`, { scopes: ['usage:read'] }, key),
        ask(second, 'DELETE', `${KEYS}/${idOf(target)}`, undefined, key),
      ];
      await expect
        .poll(async () => (await database.superuser.query(WAITING)).rowCount, { interval: 20 })
        .toBe(attempts.length);
      await revoker.query(
        narrowed
          ? `update api_keys set scopes = '{usage:read}' where id = $1`
          : 'update api_keys set revoked_at = now() where id = $1',
        [idOf(key)],
      );
      await revoker.query('commit');
      revoker.release();
      for (const answer of await Promise.all(attempts)) expect(answer.status).toBe(narrowed ? 403 : 401);
      expect((await ask(first, 'GET', `${KEYS}/${idOf(target)}`)).body.status).toBe('active');
    }
  });
});

describe('an instance whose clock is wrong', () => {
  it.each([-3_600, 3_600])(
    'by %i seconds applies ends and grace periods by the time of the database',
    async (seconds) => {
      const { logger, database: stored } = {
        logger: createLogger({ name: 'a', level: 'silent' }),
        ...database,
      };
      const wrong = () => BigInt(Date.now() + seconds * 1_000) * 1_000n;
      const failures = new AuthFailures(stored, logger);
      const authenticator = new Authenticator(stored, wrong, NO_CHANGES, failures);
      const holds = (key: string) =>
        authenticator.authenticate(`Bearer ${key}`, false).then(
          () => true,
          () => false,
        );
      const revoked = await first.addKey(first.orgId, 'member');
      await database.superuser.query('update api_keys set revoked_at = now() where id = $1', [idOf(revoked)]);
      expect(await holds(revoked)).toBe(false);
      expect(await holds(await first.addKey(first.orgId, 'member', { expiresInMs: -1_000 }))).toBe(false);
      expect(await holds(await first.addKey(first.orgId, 'member', { expiresInMs: 60_000 }))).toBe(true);
      const [within, over] = [
        await first.addKey(first.orgId, 'member'),
        await first.addKey(first.orgId, 'member'),
      ];
      for (const [key, grace] of [
        [within, '1 minute'],
        [over, '-1 minute'],
      ])
        await database.superuser.query(
          `update api_keys set previous_secret_hash = secret_hash, secret_hash = sha256('another'),
           previous_valid_until = now() + $2::interval where id = $1`,
          [idOf(key as string), grace],
        );
      expect(await holds(within)).toBe(true);
      expect(await holds(over)).toBe(false);
    },
  );
});

describe('an instance that receives no changes', () => {
  it('refuses a revoked key once its cache entry is too old', async () => {
    const key = await aWarmKey();
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await expect.poll(() => statusOn(deaf, key), { interval: 100 }).toBe(401);
  });
});

describe('a feed whose connection is cut', () => {
  const cut = () =>
    database.superuser.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'trueup-changes'`,
    );

  it('comes back, and then nothing is trusted that was remembered: a revocation meanwhile holds all the same', async () => {
    const key = await aWarmKey();
    await cut();
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await expectOnBoth(key, 401);
    const later = await aWarmKey();
    await expect
      .poll(
        async () =>
          (
            await database.superuser.query(
              `select from pg_stat_activity where datname = current_database() and application_name = 'trueup-changes' and state = 'idle'`,
            )
          ).rowCount,
      )
      .toBe(2);
    await ask(first, 'DELETE', `${KEYS}/${idOf(later)}`);
    await expectOnBoth(later, 401);
  });

  it('reports on its return that changes may have been missed, and then delivers those that come', async () => {
    const told: string[] = [];
    const states: string[] = [];
    const feed = new ChangeFeed({
      directUrl: database.url,
      onLost: () => states.push('lost'),
      onBack: () => states.push('back'),
    });
    feed.subscribe('key_changed', {
      changed: (id) => told.push(id),
      missed: () => told.push('missed'),
    });
    await feed.start();
    expect(told).toEqual(['missed']);
    await cut();
    await expect.poll(() => told).toEqual(['missed', 'missed']);
    expect(states).toEqual(['lost', 'back']);
    await database.superuser.query(
      `select pg_notify('key_changed', 'key_x'), pg_notify('settings_changed', 'o')`,
    );
    await expect.poll(() => told).toEqual(['missed', 'missed', 'key_x']);
    await feed.close();
    expect(feed.isListening).toBe(false);
  });
});

describe('a feed that finds no database', () => {
  it('lets the process start, logs it once, retries, and ends when it is stopped', async () => {
    let tries = 0;
    const nobody = createServer((socket) => {
      tries += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => nobody.listen(0, '127.0.0.1', resolve));
    const { port } = nobody.address() as AddressInfo;
    const lost: unknown[] = [];
    const feed = new ChangeFeed({
      directUrl: `postgres://nobody@127.0.0.1:${port}/none`,
      onLost: (error) => lost.push(error),
    });
    await feed.start();
    await expect.poll(() => tries).toBeGreaterThan(2);
    await feed.close();
    // A former attempt was counted by the time a later one is.
    const last = connect(port, '127.0.0.1');
    await new Promise((resolve) => last.once('close', resolve));
    const after = tries;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([tries, lost.length]).toEqual([after, 1]);
    await new Promise((resolve) => nobody.close(resolve));
  });
});
