import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Authenticator } from '../../api/pipeline/auth.js';
import { AuthFailures } from '../../api/pipeline/authFailures.js';
import { ChangeFeed, NO_CHANGES } from '../../db/changeFeed.js';
import { createLogger } from '../../platform/logger.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type RawAnswer, sendJson } from './support/requests.js';

const KEYS = '/api/v1/keys';
const EVENTS = '/api/v1/events?limit=1';
/** Within which a change holds on every instance, and within which it does while nothing is told. */
const TOLD_MS = 1_000;
const UNTOLD_MS = 6_000;

/** Who waits for somebody else's lock. */
const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

let database: TestDatabase;
let first: TestApi;
let second: TestApi;
/** Hears nothing of changes. */
let deaf: TestApi;

beforeAll(async () => {
  database = await createTestDatabase();
  first = await startTestApi({ database });
  second = await startTestApi({ database });
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

/** A key that every instance has at hand. */
async function aWarmKey(): Promise<string> {
  const key = await first.addKey(first.orgId, 'member');
  for (const api of [first, second, deaf]) expect(await statusOn(api, key)).toBe(200);
  return key;
}

/** Both hearing instances answer so within the time, and keep answering so. */
async function expectOnBoth(key: string, status: number, withinMs = TOLD_MS): Promise<void> {
  for (const api of [first, second]) {
    await expect.poll(() => statusOn(api, key), { timeout: withinMs, interval: 20 }).toBe(status);
    expect(await statusOn(api, key)).toBe(status);
  }
}

describe('with warm caches on two instances', () => {
  it('a revoked key is refused on both within a second', async () => {
    const key = await aWarmKey();
    expect((await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`)).status).toBe(200);
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

  it('the old secret of a rotated key works until the end of its grace, and then no more', async () => {
    const key = await aWarmKey();
    const rotated = await ask(second, 'POST', `${KEYS}/${idOf(key)}/rotate`, { grace_seconds: 2 });
    const end = Date.parse(rotated.body.previous_valid_until);
    for (const api of [first, second]) {
      const status = await statusOn(api, key);
      if (Date.now() < end) expect(status).toBe(200);
    }
    await new Promise((resolve) => setTimeout(resolve, end - Date.now() + 1));
    for (const api of [first, second]) {
      expect(await statusOn(api, key)).toBe(401);
      expect(await statusOn(api, rotated.body.key)).toBe(200);
    }
    await expect.poll(() => statusOn(deaf, key), { timeout: UNTOLD_MS, interval: 100 }).toBe(401);
  });

  it('a key that is narrowed, or given an end, is held to it on both within a second', async () => {
    const key = await aWarmKey();
    await ask(first, 'PATCH', `${KEYS}/${idOf(key)}`, { scopes: ['usage:read'] });
    await expectOnBoth(key, 403);
    const soon = await aWarmKey();
    await ask(second, 'PATCH', `${KEYS}/${idOf(soon)}`, {
      expires_at: new Date(Date.now() + 1_500).toISOString(),
    });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await expectOnBoth(soon, 401);
  });

  it('the keys of a workspace that is archived are refused on both within a second', async () => {
    const workspaceId = await first.addWorkspace(first.orgId, 'p');
    const key = await first.addKey(first.orgId, 'ingest', { workspaceId });
    const bring = async (api: TestApi) =>
      (await ask(api, 'POST', '/api/v1/ingest/events', { events: [] }, key)).status;
    for (const api of [first, second]) expect(await bring(api)).toBe(202);
    await ask(first, 'DELETE', `/api/v1/workspaces/wsp_${workspaceId.replaceAll('-', '')}`);
    for (const api of [first, second])
      await expect.poll(() => bring(api), { timeout: TOLD_MS, interval: 20 }).toBe(401);
  });

  it('a key that is looked up while its change is told is not remembered as it was', async () => {
    for (let round = 0; round < 20; round += 1) {
      const key = await first.addKey(first.orgId, 'member');
      const lookups = Array.from({ length: 4 }, () => statusOn(second, key));
      await database.superuser.query('update api_keys set revoked_at = now() where id = $1', [idOf(key)]);
      await Promise.all(lookups);
      await expect.poll(() => statusOn(second, key), { timeout: TOLD_MS, interval: 5 }).toBe(401);
    }
  });
});

describe('a request that is under way when its key is revoked', () => {
  /** Sends all of a request but the last byte of its body; `end` sends that and resolves with the status. */
  function begin(api: TestApi, path: string, body: string, key: string): { end(): Promise<number> } {
    const request = httpRequest(api.baseUrl + path, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
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
      begin(second, KEYS, wanted, key),
      begin(second, '/api/v1/ingest/events', '{"events":[]}', key),
    ];
    await new Promise((resolve) => setTimeout(resolve, 300));
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await new Promise((resolve) => setTimeout(resolve, TOLD_MS));
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
    'by %i seconds holds ends and graces to the time of the database',
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

describe('an instance that hears nothing of changes', () => {
  it('refuses a revoked key once what it remembers is too old', async () => {
    const key = await aWarmKey();
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await expect.poll(() => statusOn(deaf, key), { timeout: UNTOLD_MS, interval: 100 }).toBe(401);
  });
});

describe('a feed whose connection is cut', () => {
  const cut = () =>
    database.superuser.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'trueup-changes'`,
    );

  it('comes back, and meanwhile what is remembered gets too old: a revocation holds all the same', async () => {
    const key = await aWarmKey();
    await cut();
    await ask(first, 'DELETE', `${KEYS}/${idOf(key)}`);
    await expectOnBoth(key, 401, UNTOLD_MS);
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

  it('tells on its return that changes may have been missed, and then those that come', async () => {
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
  it('lets the process start, says so once, goes on trying and ends when it is told to', async () => {
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
    const after = tries;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([tries, lost.length]).toEqual([after, 1]);
    await new Promise((resolve) => nobody.close(resolve));
  });
});
