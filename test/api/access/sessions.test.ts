import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSignInLink } from '../../../usecases/access/sessions.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { send } from '../support/requests.js';

let api: TestApi;
let owner: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
  owner = await api.addOrganization('Owner');
});
afterAll(() => api?.close());

const SESSION = '/api/v1/session';
const WORKSPACES = '/api/v1/workspaces';
const JSON_TYPE = { 'content-type': 'application/json' };
/** The headers of a request of the dashboard's own page. */
const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'x-requested-with': 'dashboard' };

const signInBy = (body: object, headers: Record<string, string> = {}) =>
  send(api, {
    method: 'POST',
    path: SESSION,
    key: null,
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });

/** The pair name=value of the answer's only cookie. */
function cookieOf(answer: { headers: { 'set-cookie'?: string[] | undefined } }): string {
  const [cookie = '', ...more] = answer.headers['set-cookie'] ?? [];
  expect(more).toEqual([]);
  return cookie.split(';')[0] ?? '';
}

async function signIn(key = owner.adminKey): Promise<string> {
  const answer = await signInBy({ api_key: key });
  expect(answer.status).toBe(204);
  return cookieOf(answer);
}

const get = (path: string, cookie: string, headers: Record<string, string> = {}) =>
  send(api, { path, key: null, headers: { cookie, ...headers } });

const change = (method: string, path: string, cookie: string, body?: object, headers = {}) =>
  send(api, {
    method,
    path,
    key: null,
    headers: { cookie, ...OWN_PAGE, ...(body ? JSON_TYPE : {}), ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });

const idOfKey = (key: string) => `key_${key.split('_')[2]}`;
const sql = (text: string, values: unknown[] = []) => api.database.superuser.query(text, values);
/** The row of the session that a cookie holds. */
const rowOf = (cookie: string) =>
  `org_id = '${owner.orgId}' and secret_hash = sha256('${cookie.split('=')[1]}')`;
const makeLink = (organization = owner, role: 'admin' | 'auditor' = 'auditor') =>
  createSignInLink(
    organization.orgDb,
    { role, scopes: null, workspaceId: null },
    { actor: { kind: 'command', id: 'test' }, requestId: null, nowMicros: BigInt(Date.now()) * 1_000n },
  );

describe('a sign-in with a key', () => {
  it('answers with a cookie that scripts cannot read and other sites do not send', async () => {
    const answer = await signInBy({ api_key: owner.adminKey });
    expect(answer.status).toBe(204);
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^session=tus_[0-9A-Za-z]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
      ),
    ]);
    const stored = JSON.stringify((await sql('select s.*::text from sessions s')).rows);
    expect(stored).not.toContain(cookieOf(answer).split('=')[1]);
  });

  it('shows who is signed in', async () => {
    const cookie = await signIn();
    const { body } = await get(SESSION, cookie);
    expect(body).toMatchObject({
      id: expect.stringMatching(/^ses_[0-9a-f]{32}$/),
      sign_in: 'key',
      role: 'admin',
      organization: { name: 'Owner' },
      workspace: null,
      key: { id: idOfKey(owner.adminKey), name: 'admin' },
      person: null,
    });
    const hours = (iso: string) => Math.round((Date.parse(iso) - Date.now()) / 3_600_000);
    expect([hours(body.expires_at), hours(body.idle_expires_at)]).toEqual([7 * 24, 12]);
    const byKey = await send(api, { path: SESSION, key: owner.ingestKey });
    expect(byKey.body).toMatchObject({ id: null, role: 'ingest', scopes: ['ingest'], expires_at: null });
  });

  it('is refused with a wrong key, and counted as a refused key is', async () => {
    const wrong = `${owner.adminKey.slice(0, 20)}${'S'.repeat(20)}`;
    for (const body of [{ api_key: wrong }, { token: 'S'.repeat(43) }, { token: 'no token' }]) {
      const answer = await signInBy(body);
      expect([answer.status, answer.body.code, answer.headers['set-cookie']]).toEqual([
        401,
        'unauthenticated',
        undefined,
      ]);
    }
    const revoked = await api.addKey(owner.orgId, 'member');
    await sql('update api_keys set revoked_at = now() where id = $1', [idOfKey(revoked)]);
    expect((await signInBy({ api_key: revoked })).status).toBe(401);
    await expect
      .poll(async () => {
        const { rows } = await sql(
          `select details from audit_log where action = 'auth.failed' and subject_id = $1`,
          [idOfKey(revoked)],
        );
        return rows.length;
      })
      .toBe(1);
    for (const body of [{}, { api_key: 'a', token: 'b' }, { api_key: 1 }, { api_key: 'a', role: 'admin' }])
      expect((await signInBy(body)).status).toBe(400);
  });

  it('gets the rights of the key: role, scopes, workspace', async () => {
    const workspaceId = await api.addWorkspace(owner.orgId, 'a-project');
    const cookie = await signIn(await api.addKey(owner.orgId, 'member', { workspaceId }));
    expect((await get('/api/v1/events', cookie)).status).toBe(200);
    expect((await get('/api/v1/financial/summary', cookie)).status).toBe(403);
    expect((await get(SESSION, cookie)).body.workspace).toMatchObject({ project_id: 'a-project' });
    const auditor = await signIn(await api.addKey(owner.orgId, 'auditor'));
    const refused = await change('POST', WORKSPACES, auditor, { name: 'x' });
    expect([refused.status, refused.body.message]).toEqual([403, 'admin role required']);
    const narrow = await signIn(await api.addKey(owner.orgId, 'admin', { scopes: ['usage:read'] }));
    expect((await get(SESSION, narrow)).body.scopes).toEqual(['usage:read']);
  });

  it('does not authenticate calls, and gives way to a key in the header', async () => {
    const cookie = await signIn();
    const ingest = await change('POST', '/api/v1/ingest/events', cookie, { events: [] });
    expect(ingest.status).toBe(401);
    const both = await send(api, { path: SESSION, key: owner.ingestKey, headers: { cookie } });
    expect(both.body.role).toBe('ingest');
    const wrong = await send(api, { path: SESSION, key: 'sesame', headers: { cookie } });
    expect(wrong.status).toBe(401);
  });
});

describe('S-19: a session', () => {
  it('has a new secret at each sign-in, and the one before ends', async () => {
    const first = await signIn();
    const second = cookieOf(await signInBy({ api_key: owner.adminKey }, { cookie: first }));
    expect(second).not.toBe(first);
    expect((await get(SESSION, first)).status).toBe(401);
    expect((await get(SESSION, second)).status).toBe(200);
  });

  it('is not begun by a secret that the browser brings along', async () => {
    const planted = `session=tus_${'P'.repeat(43)}`;
    const given = cookieOf(await signInBy({ api_key: owner.adminKey }, { cookie: planted }));
    expect(given).not.toBe(planted);
    expect((await get(SESSION, planted)).status).toBe(401);
  });

  it('ends by signing out, for everybody who holds it', async () => {
    const cookie = await signIn();
    const out = await change('DELETE', SESSION, cookie);
    expect([out.status, cookieOf(out)]).toEqual([204, 'session=']);
    const after = await get(SESSION, cookie);
    expect([after.status, after.body.code]).toEqual([401, 'unauthenticated']);
    const { rows } = await sql(
      `select action, actor_id from audit_log where org_id = $1 and subject_type = 'session' order by seq desc limit 1`,
      [owner.orgId],
    );
    expect(rows).toEqual([{ action: 'session.ended', actor_id: idOfKey(owner.adminKey) }]);
  });

  it.each([
    ['after 12 hours without a request', `last_seen_at = now() - interval '12 hours 1 second'`],
    ['after 7 days', `expires_at = now() - interval '1 second'`],
  ])('ends %s', async (_when, set) => {
    const cookie = await signIn();
    expect((await get(SESSION, cookie)).status).toBe(200);
    await sql(`update sessions set ${set} where ${rowOf(cookie)}`);
    expect((await get(SESSION, cookie)).status).toBe(401);
  });

  it('ends with its key at once: revoked, expired, or given another secret without a grace period', async () => {
    for (const set of [
      'revoked_at = now()',
      `expires_at = now() - interval '1 second'`,
      `secret_hash = sha256('another')`,
    ]) {
      const key = await api.addKey(owner.orgId, 'member');
      const cookie = await signIn(key);
      expect((await get(SESSION, cookie)).status).toBe(200);
      await sql(`update api_keys set ${set} where id = $1`, [idOfKey(key)]);
      expect((await get(SESSION, cookie)).status, set).toBe(401);
    }
  });

  it('ends in the middle of a request whose body is still being sent', async () => {
    const cookie = await signIn();
    const encoder = new TextEncoder();
    const parts = ['{"name":', '"late"}'];
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const part = parts.shift();
        if (part === undefined) return controller.close();
        if (parts.length === 0) {
          await sql(`update sessions set ended_at = now(), ended_by = 'test' where ${rowOf(cookie)}`);
          await new Promise((resolve) => setTimeout(resolve, 700));
        }
        controller.enqueue(encoder.encode(part));
      },
    });
    const answer = await fetch(api.baseUrl + WORKSPACES, {
      method: 'POST',
      headers: { cookie, ...JSON_TYPE, 'x-requested-with': 'dashboard', origin: api.baseUrl },
      body,
      duplex: 'half',
    } as RequestInit);
    expect(answer.status).toBe(401);
  });

  it('records its last request at most once a minute', async () => {
    const cookie = await signIn();
    const seen = async () =>
      (await sql(`select last_seen_at::text from sessions where ${rowOf(cookie)}`)).rows[0].last_seen_at;
    const begun = await seen();
    await get(SESSION, cookie);
    expect(await seen()).toBe(begun);
    await sql(`update sessions set last_seen_at = now() - interval '61 seconds' where ${rowOf(cookie)}`);
    const before = await seen();
    await get(SESSION, cookie);
    await expect.poll(seen).not.toBe(before);
  });

  it('is listed to its owner and to admins, who can end it', async () => {
    const key = await api.addKey(owner.orgId, 'member');
    const mine = await signIn(key);
    const other = await signIn(key);
    const listed = (await get('/api/v1/sessions', mine)).body.sessions;
    expect(listed).toHaveLength(2);
    expect(listed.map((one: { is_current: boolean }) => one.is_current)).toEqual([false, true]);
    const all = (await send(api, { path: '/api/v1/sessions', key: owner.adminKey })).body.sessions;
    expect(all.length).toBeGreaterThan(2);
    const foreign = all.find((one: { principal: string }) => one.principal === idOfKey(owner.adminKey)).id;
    expect((await change('DELETE', `/api/v1/sessions/${foreign}`, mine)).status).toBe(404);
    expect((await change('DELETE', `/api/v1/sessions/${listed[0].id}`, mine)).status).toBe(204);
    expect((await get(SESSION, other)).status).toBe(401);
    expect((await change('DELETE', `/api/v1/sessions/${listed[0].id}`, mine)).status).toBe(404);
    const third = await signIn(key);
    expect((await change('DELETE', '/api/v1/sessions', mine)).status).toBe(204);
    for (const cookie of [mine, third]) expect((await get(SESSION, cookie)).status).toBe(401);
  });

  it('of one key there are 20: a further sign-in ends the oldest', async () => {
    const key = await api.addKey(owner.orgId, 'member');
    const cookies: string[] = [];
    for (let count = 0; count < 21; count += 1) cookies.push(await signIn(key));
    expect((await get(SESSION, cookies[0] ?? '')).status).toBe(401);
    expect((await get(SESSION, cookies[1] ?? '')).status).toBe(200);
    expect((await get('/api/v1/sessions', cookies[20] ?? '')).body.sessions).toHaveLength(20);
  });

  it('never reads another organization', async () => {
    const other = await api.addOrganization('Other');
    const cookie = await signIn(other.adminKey);
    expect((await get(SESSION, cookie)).body.organization.name).toBe('Other');
    await signIn();
    const { sessions } = (await get('/api/v1/sessions', cookie)).body;
    expect(sessions).toHaveLength(1);
    const theirs = (await send(api, { path: '/api/v1/sessions', key: owner.adminKey })).body.sessions[0].id;
    expect((await change('DELETE', `/api/v1/sessions/${theirs}`, cookie)).status).toBe(404);
    const keys = (await get('/api/v1/keys', cookie)).body.keys.map((key: { id: string }) => key.id);
    expect(keys).not.toContain(idOfKey(owner.adminKey));
  });
});

describe('S-10: a change with a session', () => {
  const attempt = async (headers: Record<string, string>, type = 'application/json') => {
    const cookie = await signIn();
    const answer = await send(api, {
      method: 'POST',
      path: WORKSPACES,
      key: null,
      headers: { cookie, 'content-type': type, ...headers },
      body: type.includes('json') ? '{"name":"made"}' : 'name=made',
    });
    return [answer.status, answer.body.code];
  };
  const requested = { 'x-requested-with': 'dashboard' };

  it.each([
    ['of this origin', { ...requested, 'sec-fetch-site': 'same-origin' }],
    ['that a person typed', { ...requested, 'sec-fetch-site': 'none' }],
    ['with the Origin of BASE_URL', { ...requested, origin: 'http://trueup.test' }],
  ])('%s is made', async (_name, headers) => {
    expect((await attempt(headers))[0]).toBe(201);
  });

  it('with the Origin of the address that was asked is made', async () => {
    expect((await attempt({ ...requested, origin: api.baseUrl }))[0]).toBe(201);
  });

  it.each([
    ['of another site', { ...requested, 'sec-fetch-site': 'cross-site' }],
    ['of a sibling host', { ...requested, 'sec-fetch-site': 'same-site' }],
    ['with a foreign Origin and no Sec-Fetch-Site', { ...requested, origin: 'https://evil.example' }],
    ['with the Origin null', { ...requested, origin: 'null' }],
    [
      'of another site with an own Origin',
      { ...requested, 'sec-fetch-site': 'cross-site', origin: 'http://trueup.test' },
    ],
    ['with neither header', requested],
    ['without X-Requested-With', { 'sec-fetch-site': 'same-origin' }],
  ])('%s is refused', async (_name, headers) => {
    expect(await attempt(headers)).toEqual([403, 'cross_site_request']);
  });

  it('by the form of another site, or its JSON as plain text, is refused', async () => {
    const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (const type of ['application/x-www-form-urlencoded', 'text/plain'])
      expect(await attempt(foreign, type)).toEqual([403, 'cross_site_request']);
    const plain = { ...requested, 'sec-fetch-site': 'same-origin' };
    expect(await attempt(plain, 'text/plain; json')).toEqual([415, 'unsupported_media_type']);
  });

  it('by a key in the header is not affected', async () => {
    const answer = await send(api, {
      method: 'POST',
      path: WORKSPACES,
      key: owner.adminKey,
      headers: { ...JSON_TYPE, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      body: '{"name":"by a key"}',
    });
    expect(answer.status).toBe(201);
  });

  it('cannot sign a browser in from another site', async () => {
    const before = { api_key: owner.adminKey };
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    ])
      expect((await signInBy(before, headers)).body.code).toBe('cross_site_request');
    expect((await signInBy(before, { 'sec-fetch-site': 'same-origin' })).status).toBe(204);
  });

  it('is not needed to read', async () => {
    expect((await get(WORKSPACES, await signIn(), { 'sec-fetch-site': 'none' })).status).toBe(200);
  });
});

describe('a one-time link', () => {
  it('begins a session with its own rights, once', async () => {
    const token = await makeLink();
    const answer = await signInBy({ token });
    expect(answer.status).toBe(204);
    const cookie = cookieOf(answer);
    expect((await get(SESSION, cookie)).body).toMatchObject({ sign_in: 'link', role: 'auditor', key: null });
    expect((await signInBy({ token })).status).toBe(401);
    expect((await change('POST', WORKSPACES, cookie, { name: 'x' })).status).toBe(403);
  });

  it('is used by one of many that send it at once', async () => {
    const token = await makeLink();
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => (await signInBy({ token })).status),
    );
    expect(statuses.sort()).toEqual([204, ...Array.from({ length: 7 }, () => 401)]);
  });

  it('holds for ten minutes, and is stored as a digest alone', async () => {
    const token = await makeLink();
    expect(JSON.stringify((await sql('select l.*::text from sign_in_links l')).rows)).not.toContain(token);
    const { rows } = await sql(
      'select extract(epoch from expires_at - created_at)::int as seconds from sign_in_links order by created_at desc limit 1',
    );
    expect(rows[0].seconds).toBe(600);
    await sql(`update sign_in_links set expires_at = now() - interval '1 second' where used_at is null`);
    expect((await signInBy({ token })).status).toBe(401);
  });

  it('acts in the log as a link, also where its session makes a key', async () => {
    const cookie = cookieOf(await signInBy({ token: await makeLink(owner, 'admin') }));
    const made = await change('POST', '/api/v1/keys', cookie, { name: 'by a link', role: 'member' });
    expect([made.status, made.body.created_by]).toEqual([201, expect.stringMatching(/^lnk_[0-9a-f]{32}$/)]);
    const { rows } = await sql(`select actor_kind, actor_id from audit_log where subject_id = $1`, [
      made.body.id,
    ]);
    expect(rows).toEqual([{ actor_kind: 'link', actor_id: made.body.created_by }]);
  });
});

describe('S-12: an answer to a browser', () => {
  it('cannot be framed, guessed at or stored, and over TLS has its own cookie and HSTS', async () => {
    const { headers } = await get(SESSION, await signIn(), { 'x-forwarded-proto': 'https' });
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'strict-transport-security': expect.stringMatching(/^max-age=\d+$/),
    });
    const secure = await startTestApi({ database: api.database, baseUrl: 'https://trueup.test' });
    try {
      const answer = await send(secure, {
        method: 'POST',
        path: SESSION,
        key: null,
        headers: JSON_TYPE,
        body: JSON.stringify({ api_key: owner.adminKey }),
      });
      expect(answer.headers['set-cookie']).toEqual([
        expect.stringMatching(
          /^__Host-session=tus_[0-9A-Za-z]{43}; Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/,
        ),
      ]);
      const cookie = cookieOf(answer);
      const read = (name: string) =>
        send(secure, {
          path: SESSION,
          key: null,
          headers: { cookie: name + cookie.slice(cookie.indexOf('=')) },
        });
      expect((await read('__Host-session')).status).toBe(200);
      expect((await read('session')).status).toBe(401);
    } finally {
      await secure.close();
    }
  });
});
