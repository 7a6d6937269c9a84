import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IdentityProvider } from '../../../adapters/identity/identityProvider.js';
import { publicId } from '../../../domain/ids.js';
import { type OpenIdProvider, startOpenIdProvider } from '../../fakes/openIdProvider.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { send } from '../support/requests.js';

const BASE_URL = 'http://trueup.test';
const CLIENT = {
  id: 'trueup',
  secret: 'a secret of the client, long enough',
  redirectUri: `${BASE_URL}/api/v1/session/oidc/callback`,
};
const PEOPLE = {
  jane: { email: 'jane@example.com', name: 'Jane Roe', groups: ['staff', 'finance'] },
  aud: { email: 'aud@example.com', groups: ['audit'] },
  other: { email: 'other@example.com', groups: ['catering'] },
  nobody: {},
};
const START = '/api/v1/session/oidc/start';
const SESSION = '/api/v1/session';

let database: TestDatabase;
let api: TestApi;
let provider: OpenIdProvider;

const identityAt = (issuer: string) => {
  const settings = { issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, roleClaim: 'groups' };
  const roles = new Map([
    ['finance', 'admin'],
    ['staff', 'member'],
    ['audit', 'auditor'],
  ] as const);
  return {
    provider: new IdentityProvider(settings, () => performance.now()),
    rules: { issuer, organization: undefined, roleClaim: 'groups', roles },
  };
};

beforeAll(async () => {
  database = await createTestDatabase();
  provider = await startOpenIdProvider(PEOPLE, CLIENT);
  api = await startTestApi({ database, baseUrl: BASE_URL, identity: identityAt(provider.issuer) });
});
afterAll(async () => {
  await api?.close();
  await provider?.close();
  await database?.close();
});

const cookiesOf = (answer: { headers: { 'set-cookie'?: string[] | undefined } }) =>
  (answer.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '');

const open = (path: string, cookie?: string) =>
  send(api, { path, key: null, headers: cookie === undefined ? {} : { cookie } });

/** The start of a sign-in: where it leads, and the cookie that it leaves. */
async function begin() {
  const answer = await open(START);
  expect(answer.status).toBe(302);
  return { address: String(answer.headers.location), cookie: cookiesOf(answer)[0] ?? '', answer };
}

/** Where the provider sends a person back to, as a path of this service. */
async function returnOf(address: string, login: string): Promise<string> {
  const returned = await provider.signIn(address, login);
  expect(returned.startsWith(`${CLIENT.redirectUri}?`)).toBe(true);
  return returned.slice(BASE_URL.length);
}

async function signIn(login: string) {
  const { address, cookie } = await begin();
  return open(await returnOf(address, login), cookie);
}

const auditRows = async (action: string) =>
  (
    await database.superuser.query(
      'select actor_kind, actor_id, details from audit_log where org_id = $1 and action = $2 order by seq',
      [api.orgId, action],
    )
  ).rows;

describe('a sign-in at the identity provider', () => {
  it('is offered where one is set', async () => {
    expect((await open(`${SESSION}/options`)).body).toEqual({ sign_ins: ['key', 'link', 'oidc'] });
  });

  it('begins with state, nonce and PKCE, kept in a short-lived cookie', async () => {
    const { address, answer } = await begin();
    const query = new URL(address).searchParams;
    expect(Object.fromEntries(query)).toMatchObject({
      client_id: CLIENT.id,
      redirect_uri: CLIENT.redirectUri,
      response_type: 'code',
      scope: 'openid profile email groups',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^.{43}$/),
      nonce: expect.stringMatching(/^.{43}$/),
      code_challenge: expect.stringMatching(/^.{43}$/),
    });
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^sign-in=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/),
    ]);
    expect((await begin()).address).not.toBe(address);
  });

  it('ends in a session with the strongest role of the person’s groups', async () => {
    const answer = await signIn('jane');
    expect([answer.status, answer.headers.location]).toEqual([302, '/']);
    const [pending, cookie] = cookiesOf(answer);
    expect([pending?.split('=')[0], cookie?.split('=')[0]]).toEqual(['sign-in', 'session']);
    const { body } = await open(SESSION, cookie);
    expect(body).toMatchObject({
      sign_in: 'oidc',
      role: 'admin',
      key: null,
      person: { name: 'Jane Roe', email: 'jane@example.com' },
    });
    const auditor = cookiesOf(await signIn('aud'))[1];
    expect((await open(SESSION, auditor)).body).toMatchObject({ role: 'auditor', person: { name: null } });
  });

  it('names the person in the log by sub and e-mail, also for what the session does', async () => {
    const cookie = cookiesOf(await signIn('jane'))[1] ?? '';
    const made = await send(api, {
      method: 'POST',
      path: '/api/v1/keys',
      key: null,
      headers: {
        cookie,
        'content-type': 'application/json',
        'sec-fetch-site': 'same-origin',
        'x-requested-with': 'dashboard',
      },
      body: JSON.stringify({ name: 'by Jane', role: 'auditor' }),
    });
    expect([made.status, made.body.created_by]).toEqual([201, 'jane jane@example.com']);
    const jane = { actor_kind: 'person', actor_id: 'jane jane@example.com' };
    expect((await auditRows('key.created')).at(-1)).toMatchObject(jane);
    expect((await auditRows('session.created')).at(-1)).toMatchObject(jane);
  });

  it('is one person at each sign-in', async () => {
    const cookies = [cookiesOf(await signIn('jane'))[1] ?? '', cookiesOf(await signIn('jane'))[1] ?? ''];
    const { sessions } = (await send(api, { path: '/api/v1/sessions' })).body;
    const ofJane = sessions.filter((one: { email: string }) => one.email === 'jane@example.com');
    expect(new Set(ofJane.map((one: { principal: string }) => one.principal)).size).toBe(1);
    expect(cookies[0]).not.toBe(cookies[1]);
  });

  it.each(['other', 'nobody'])('refuses %s, whose groups have no role', async (login) => {
    const answer = await signIn(login);
    expect([answer.status, answer.headers.location]).toEqual([302, '/#/sign-in?problem=no_role']);
    expect(cookiesOf(answer)).toHaveLength(1);
    expect((await auditRows('session.refused')).at(-1)).toMatchObject({
      actor_kind: 'person',
      actor_id: login === 'other' ? 'other other@example.com' : 'nobody',
    });
  });
});

describe('a return from the identity provider', () => {
  const problemOf = (answer: { status: number; headers: { location?: string | undefined } }) => {
    expect(answer.status).toBe(302);
    return answer.headers.location;
  };

  it('without the cookie of its start is refused, as one that took too long is', async () => {
    const { address } = await begin();
    const path = await returnOf(address, 'jane');
    for (const cookie of [
      undefined,
      'sign-in=nonsense',
      `sign-in=${Buffer.from('{}').toString('base64url')}`,
    ])
      expect(problemOf(await open(path, cookie))).toBe('/#/sign-in?problem=expired');
  });

  it('with the cookie of another start, another state or a used code is refused', async () => {
    const { address, cookie } = await begin();
    const path = await returnOf(address, 'jane');
    const invalid = '/#/sign-in?problem=invalid';
    expect(problemOf(await open(path, (await begin()).cookie))).toBe(invalid);
    expect(problemOf(await open(path.replace(/state=[^&]*/, 'state=another'), cookie))).toBe(invalid);
    expect(problemOf(await open(path, cookie))).toBe('/');
    const again = await open(path, cookie);
    expect([problemOf(again), cookiesOf(again)]).toEqual([invalid, [expect.stringMatching(/^sign-in=/)]]);
  });

  it('with a refusal of the provider is refused', async () => {
    const { address, cookie } = await begin();
    const state = new URL(address).searchParams.get('state');
    const query = new URLSearchParams({ error: 'access_denied', state: String(state), iss: provider.issuer });
    const answer = await open(`/api/v1/session/oidc/callback?${query}`, cookie);
    expect(problemOf(answer)).toBe('/#/sign-in?problem=denied');
  });
});

describe('an identity provider', () => {
  it('that does not answer is reported to the person, and asked again at the next sign-in', async () => {
    const short = await startOpenIdProvider(PEOPLE, CLIENT);
    const down = await startTestApi({ database, baseUrl: BASE_URL, identity: identityAt(short.issuer) });
    try {
      const start = () => send(down, { path: START, key: null });
      await short.close();
      const answer = await start();
      expect([answer.status, answer.headers.location]).toEqual([302, '/#/sign-in?problem=unavailable']);
      expect((await start()).headers.location).toBe('/#/sign-in?problem=unavailable');
    } finally {
      await down.close();
    }
  });

  it('that is not set has no addresses', async () => {
    const without = await startTestApi({ database });
    try {
      expect((await send(without, { path: START, key: null })).status).toBe(404);
      expect((await send(without, { path: `${SESSION}/options`, key: null })).body.sign_ins).toEqual([
        'key',
        'link',
      ]);
    } finally {
      await without.close();
    }
  });

  it('leads to the organization of the settings, by id or name, or to none', async () => {
    const named = await api.addOrganization('Named');
    for (const [organization, expected] of [
      ['Named', '/'],
      [publicId('org', named.orgId), '/'],
      ['Nowhere', '/#/sign-in?problem=failed'],
    ] as const) {
      const { rules, provider: at } = identityAt(provider.issuer);
      const identity = { provider: at, rules: { ...rules, organization } };
      const other = await startTestApi({ database, baseUrl: BASE_URL, identity });
      try {
        const start = await send(other, { path: START, key: null });
        const path = await returnOf(String(start.headers.location), 'jane');
        const headers = { cookie: cookiesOf(start)[0] ?? '' };
        const answer = await send(other, { path, key: null, headers });
        expect(answer.headers.location).toBe(expected);
        if (expected !== '/') continue;
        const session = await send(other, {
          path: SESSION,
          key: null,
          headers: { cookie: cookiesOf(answer)[1] ?? '' },
        });
        expect(session.body.organization.id).toBe(publicId('org', named.orgId));
      } finally {
        await other.close();
      }
    }
  });
});
