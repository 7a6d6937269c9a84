import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { assertDeclaredAccess, type Endpoint } from '../../../api/endpoint.js';
import { composeKey, ROLE_SCOPES, ROLES, type Role } from '../../../domain/access/keyRules.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { anEvent, aTime, ingest, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const PATH = '/api/v1/events';
const idOf = (key: string) => `key_${key.split('_')[2]}`;

async function expectUnauthenticated(header: string | undefined, path = PATH): Promise<unknown> {
  const answer = await send(api, {
    path,
    key: null,
    ...(header === undefined ? {} : { headers: { authorization: header } }),
  });
  expect(answer.status, `${header}`).toBe(401);
  expect(answer.headers['www-authenticate']).toBe('Bearer realm="api", error="invalid_token"');
  const { request_id, instance, ...problem } = answer.body;
  expect(instance).toBe(`urn:request:${request_id}`);
  return problem;
}

describe('a request without a valid key', () => {
  it('is refused by one and the same answer, whatever is wrong with its key', async () => {
    const [, , id = '', rest = ''] = api.adminKey.split('_');
    const unknown = composeKey('abcdefghij', 'S'.repeat(43));
    const wrongSecret = composeKey(id, 'S'.repeat(43));
    const typingError = `tu_live_${id}_${rest.slice(0, -1)}${rest.endsWith('0') ? '1' : '0'}`;
    const answers = [];
    for (const key of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Bearer x',
      `Bearer ${unknown}`,
      `Bearer ${wrongSecret}`,
    ])
      answers.push(await expectUnauthenticated(key));
    for (const key of [
      `Bearer ${typingError}`,
      `Token ${api.adminKey}`,
      api.adminKey,
      `Bearer ${api.adminKey} x`,
    ])
      answers.push(await expectUnauthenticated(key));
    answers.push(await expectUnauthenticated(`Bearer ${'x'.repeat(5_000)}`));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({
      type: 'urn:problem:unauthenticated',
      status: 401,
      code: 'unauthenticated',
    });
  });

  it('is refused on every endpoint that is not public, before anything else of it is checked', async () => {
    for (const endpoint of ENDPOINTS) {
      const path = endpoint.path.replace(/\{\w+\}/g, 'x');
      const answer = await send(api, {
        method: endpoint.method.toUpperCase(),
        path: `${path}?limit=wrong&limit=twice`,
        key: null,
        ...(endpoint.method === 'get' ? {} : { body: 'not json' }),
      });
      if ('public' in endpoint.access) expect(answer.status, path).not.toBe(401);
      else expect(answer.status, path).toBe(401);
    }
  });

  it('is refused with an expired key, a revoked one, and one that expires while it is remembered', async () => {
    const change = async (set: string) => {
      const key = await api.addKey(api.orgId, 'member');
      await api.database.superuser.query(`update api_keys set ${set} where id = $1`, [idOf(key)]);
      return key;
    };
    await expectUnauthenticated(`Bearer ${await change(`expires_at = now() - interval '1 second'`)}`);
    await expectUnauthenticated(`Bearer ${await change('revoked_at = now()')}`);
    // The key must be cached as valid; on a slow machine it may expire first, and then a longer-lived one is tried.
    let soon = '';
    for (let millis = 700, status = 401; status !== 200; millis *= 2) {
      soon = await change(`expires_at = now() + interval '${millis} milliseconds'`);
      ({ status } = await api.get(PATH, soon));
    }
    await expect.poll(async () => (await api.get(PATH, soon)).status).toBe(401);
    await expectUnauthenticated(`Bearer ${soon}`);
    const later = await change(`expires_at = now() + interval '1 hour'`);
    expect((await api.get(PATH, later)).status).toBe(200);
  });
});

describe('a key', () => {
  it('may do what its role may, and is refused with the name of the missing scope, on every endpoint', async () => {
    const keys = new Map<Role, string>();
    for (const role of ROLES) keys.set(role, await api.addKey(api.orgId, role));
    for (const endpoint of ENDPOINTS) {
      if ('public' in endpoint.access) continue;
      const { scope, role: needed } = endpoint.access;
      for (const [role, key] of keys) {
        const answer = await send(api, {
          method: endpoint.method.toUpperCase(),
          path: endpoint.path.replace(/\{\w+\}/g, 'x'),
          key,
          ...(endpoint.method === 'get'
            ? {}
            : { body: '{}', headers: { 'content-type': 'application/json' } }),
        });
        const place = `${role}: ${endpoint.method} ${endpoint.path}`;
        expect(answer.status, place).not.toBe(401);
        expect(answer.status < 500, `${place}: ${answer.status} ${answer.bytes}`).toBe(true);
        const isScoped = scope === 'any' || ROLE_SCOPES[role].has(scope);
        if (isScoped && (needed === undefined || needed === role)) expect(answer.status, place).not.toBe(403);
        else {
          expect(answer.status, place).toBe(403);
          expect(answer.body.code).toBe('forbidden');
          const isAdminOnly =
            needed !== undefined ||
            (scope !== 'any' && ROLES.every((other) => other === 'admin' || !ROLE_SCOPES[other].has(scope)));
          expect(answer.body.message).toBe(
            isAdminOnly ? 'admin role required' : `the key lacks the scope ${scope}`,
          );
        }
      }
    }
  });

  it('that is narrowed to scopes may do no more than these', async () => {
    const key = await api.addKey(api.orgId, 'admin');
    await api.database.superuser.query(`update api_keys set scopes = '{usage:read}' where id = $1`, [
      idOf(key),
    ]);
    expect((await api.get('/api/v1/usage/summary', key)).status).toBe(200);
    expect((await api.get(PATH, key)).status).toBe(403);
    const ingested = await api.post('/api/v1/ingest/events', { events: [anEvent()] }, key);
    expect([ingested.status, ingested.body.message]).toEqual([403, 'the key lacks the scope ingest']);
  });

  it('without the scope for payloads reads events, and none of their payloads', async () => {
    const key = await api.addKey(api.orgId, 'member');
    await api.database.superuser.query(`update api_keys set scopes = '{events:read}' where id = $1`, [
      idOf(key),
    ]);
    await ingest(api, [anEvent({ payload: { prompt: 'hello' }, timestamp: aTime(3) })]);
    const [event] = (await api.get(`${PATH}?limit=1`, key)).body.events;
    const window = `start=${aTime(10)}&end=${aTime(0)}`;
    for (const path of [`${PATH}?`, `${PATH}/${event.id}?`, `${PATH}/export?${window}&`]) {
      expect((await api.get(`${path}include_payload=false`, key)).status, path).toBe(200);
      const refused = await api.get(`${path}include_payload=true`, key);
      expect([refused.status, refused.body.message], path).toEqual([
        403,
        'the key lacks the scope payloads:read',
      ]);
      expect((await api.get(`${path}include_payload=true`)).status, path).toBe(200);
    }
  });

  it('is not accepted in other places: query, Basic and lower case', async () => {
    await expectUnauthenticated(undefined, `${PATH}?access_token=${api.adminKey}`);
    const basic = `Basic ${Buffer.from(`x:${api.adminKey}`).toString('base64')}`;
    await expectUnauthenticated(basic);
    await expectUnauthenticated(basic, '/api/v1/ingest/health');
    const scheme = await send(api, {
      path: PATH,
      key: null,
      headers: { authorization: `bearer ${api.adminKey}` },
    });
    expect(scheme.status).toBe(200);
  });

  it('notes when it was last used, at most once a minute', async () => {
    const key = await api.addKey(api.orgId, 'member');
    const lastUsed = async () =>
      (await api.database.superuser.query('select last_used_at from api_keys where id = $1', [idOf(key)]))
        .rows[0].last_used_at;
    expect(await lastUsed()).toBeNull();
    await api.get(PATH, key);
    await expect.poll(lastUsed).not.toBeNull();
    const first = await lastUsed();
    await api.get(PATH, key);
    await api.get(PATH, key);
    expect(await lastUsed()).toEqual(first);
  });
});

describe('an organization', () => {
  it('sees nothing of another one, neither in lists nor in sums nor by id', async () => {
    const a = await api.addOrganization();
    const b = await api.addOrganization();
    await ingest(api, [anEvent({ team_id: 'secret', session_id: 'secret' })], a.ingestKey);
    const [event] = (await api.get(PATH, a.adminKey)).body.events;
    expect(event.team_id).toBe('secret');
    expect((await api.get(PATH, b.adminKey)).body.events).toEqual([]);
    expect((await api.get(`${PATH}?team_id=secret`, b.adminKey)).body.events).toEqual([]);
    expect((await api.get('/api/v1/usage/summary', b.adminKey)).body.call_count).toBe(0);
    const own = await api.get(`${PATH}/${event.id}`, b.adminKey);
    const unknown = await api.get(
      `${PATH}/${event.id.slice(0, -1)}${event.id.endsWith('0') ? '1' : '0'}`,
      b.adminKey,
    );
    expect(own.status).toBe(404);
    const strip = ({ request_id: _r, instance: _i, ...problem }: Record<string, unknown>) => problem;
    expect(strip(own.body)).toEqual(strip(unknown.body));
  });
});

describe('an endpoint without an access rule', () => {
  const [sample] = ENDPOINTS;
  const undeclared = [
    undefined,
    {},
    { public: false },
    { scope: 'events:read' },
    { scope: 'everything', workspace: 'own' },
  ];

  it.each(undeclared)('keeps the service from starting: %j', (access) => {
    const endpoint = { ...sample, operationId: 'forgotten', access } as unknown as Endpoint;
    expect(() => assertDeclaredAccess([...ENDPOINTS, endpoint])).toThrow(
      /no access is declared for forgotten/,
    );
  });

  it('is not among those that there are', () => {
    expect(() => assertDeclaredAccess(ENDPOINTS)).not.toThrow();
  });
});
