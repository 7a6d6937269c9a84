import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseKey, SCOPES, type Scope } from '../../../domain/access/keyRules.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { type RawAnswer, send, sendJson } from '../support/requests.js';

const KEYS = '/api/v1/keys';
const EVENTS = '/api/v1/events?limit=1';

let api: TestApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

function ask(
  method: string,
  path: string,
  body?: unknown,
  key: string | null = org.adminKey,
): Promise<RawAnswer> {
  return sendJson(api, { method, path, key, json: body });
}

async function make(body: Record<string, unknown>, key?: string): Promise<RawAnswer['body']> {
  const answer = await ask('POST', KEYS, { name: 'n', role: 'member', ...body }, key);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

const idOf = (key: string) => `key_${key.split('_')[2]}`;
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();
const statusWith = async (key: string) => (await ask('GET', EVENTS, undefined, key)).status;
/** Waits until the change reaches the process: within a second, as revocation.test.ts proves. */
const expectSoon = (key: string, status: number) => expect.poll(() => statusWith(key)).toBe(status);
const rest = ({ request_id: _r, instance: _i, ...problem }: Record<string, unknown>) => problem;

beforeAll(async () => {
  org = await api.addOrganization();
});

describe('a new key', () => {
  it('is shown once, with everything about it, and works at once', async () => {
    const answer = await ask('POST', KEYS, {
      name: '  CI of billing ',
      role: 'member',
      scopes: ['usage:read', 'events:read', 'events:read'],
      expires_at: '2099-01-01',
    });
    const { key, ...shown } = answer.body;
    expect(answer.status).toBe(201);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers.location).toBe(`${KEYS}/${shown.id}`);
    expect(parseKey(key)?.keyId).toBe(shown.id);
    expect(shown).toEqual({
      id: idOf(key),
      name: 'CI of billing',
      role: 'member',
      scopes: ['events:read', 'usage:read'],
      workspace_id: null,
      last4: key.slice(-4),
      status: 'active',
      created_at: expect.any(String),
      created_by: idOf(org.adminKey),
      last_used_at: null,
      expires_at: '2099-01-01T00:00:00Z',
      revoked_at: null,
      revoked_by: null,
      previous_valid_until: null,
    });
    expect(await statusWith(key)).toBe(200);
    const read = await ask('GET', `${KEYS}/${shown.id}`);
    expect({ ...read.body, last_used_at: null }).toEqual(shown);
    const stored = await api.database.superuser.query('select * from api_keys where id = $1', [shown.id]);
    const { secret_hash: digest, ...others } = stored.rows[0];
    expect(digest.length).toBe(32);
    expect(JSON.stringify(others)).not.toContain(parseKey(key)?.secret);
  });

  it('cannot hold what its role cannot: 400 names the scope and the role', async () => {
    const answer = await ask('POST', KEYS, {
      name: 'n',
      role: 'auditor',
      scopes: ['events:read', 'claims:write'],
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'invalid_body', errors: [{ in: 'body', field: 'scopes' }] });
    expect(answer.body.message).toContain('the role auditor cannot hold claims:write');
  });

  it.each([
    ['a role that there is not', { role: 'owner' }, /role: must be one of admin, member/],
    ['a scope that there is not', { scopes: ['events:delete'] }, /^scopes\.0: must be one of ingest, /],
    ['no scope at all', { scopes: [] }, /scopes: must name at least one/],
    ['no name', { name: ' ' }, /name: must not be empty/],
    ['a longer name', { name: 'x'.repeat(257) }, /at most 256 characters/],
    ['an end in the past', { expires_at: '2020-01-01' }, /expires_at: must lie in the future/],
    ['an end that is no time', { expires_at: 'tomorrow' }, /expires_at: must be an ISO 8601 time/],
    [
      'an id that is no workspace’s',
      { workspace_id: 'wsp_1' },
      /workspace_id: must be the id of a workspace/,
    ],
    ['an id of its own', { id: 'key_0123456789' }, /is not known here/],
    ['an organization', { org_id: 'org_1' }, /is not known here/],
  ])('with %s is refused with 400', async (_what, body, message) => {
    const answer = await ask('POST', KEYS, { name: 'n', role: 'member', ...body });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_body']);
    expect(answer.body.message).toMatch(message);
  });

  it('of a workspace belongs to one of the organization that is not archived, and is no admin’s', async () => {
    const own = `wsp_${(await api.addWorkspace(org.orgId, 'p1')).replaceAll('-', '')}`;
    const foreign = `wsp_${(await api.addWorkspace((await api.addOrganization()).orgId, 'p1')).replaceAll('-', '')}`;
    const unknown = `wsp_${'0'.repeat(32)}`;
    expect((await make({ workspace_id: own })).workspace_id).toBe(own);
    const body = { name: 'n', role: 'member' };
    const refused = await ask('POST', KEYS, { ...body, workspace_id: foreign });
    expect(refused.status).toBe(400);
    expect(rest(refused.body)).toEqual(
      rest((await ask('POST', KEYS, { ...body, workspace_id: unknown })).body),
    );
    expect((await ask('POST', KEYS, { ...body, role: 'admin', workspace_id: own })).status).toBe(400);
    await ask('DELETE', `/api/v1/workspaces/${own}`);
    const archived = await ask('POST', KEYS, { ...body, workspace_id: own });
    expect([archived.status, archived.body.code]).toEqual([409, 'workspace_archived']);
  });

  it('is refused beyond a thousand that are not revoked', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    await api.database.superuser.query(
      `insert into api_keys (id, org_id, name, role, secret_hash, last4)
       select 'key_' || lpad(n::text, 5, '0') || $2, $1, 'n', 'ingest', sha256(n::text::bytea), '0000' from generate_series(1, 998) n`,
      [orgId, idOf(adminKey).slice(-5)],
    );
    const full = await ask('POST', KEYS, { name: 'n', role: 'ingest' }, adminKey);
    expect([full.status, full.body.code]).toEqual([413, 'too_many_items']);
    const [spare] = (await ask('GET', `${KEYS}?role=ingest&limit=1`, undefined, adminKey)).body.keys;
    await ask('DELETE', `${KEYS}/${spare.id}`, undefined, adminKey);
    expect((await ask('POST', KEYS, { name: 'n', role: 'ingest' }, adminKey)).status).toBe(201);
  });
});

describe('a key that manages keys', () => {
  let narrowed: string;
  beforeAll(async () => {
    narrowed = await api.addKey(org.orgId, 'admin', { scopes: ['keys:admin', 'usage:read'] });
  });

  it('makes only keys with scopes that it holds, when it is narrowed', async () => {
    for (const body of [{ role: 'admin' }, { role: 'member' }, { role: 'admin', scopes: ['org:admin'] }]) {
      const refused = await ask('POST', KEYS, { name: 'n', ...body }, narrowed);
      expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
      expect(refused.body.message).toMatch(/cannot grant more than it holds/);
    }
    const made = await make({ role: 'admin', scopes: ['keys:admin'] }, narrowed);
    expect(made.scopes).toEqual(['keys:admin']);
    expect((await make({ role: 'auditor', scopes: ['usage:read'] }, narrowed)).scopes).toEqual([
      'usage:read',
    ]);
  });

  it('neither widens nor prolongs a key when it is narrowed, nor gets a more powerful secret; it may rename, narrow and revoke', async () => {
    const soon = inSeconds(3_600);
    const other = await make({ role: 'admin', expires_at: soon });
    const path = `${KEYS}/${other.id}`;
    for (const change of [{ expires_at: null }, { expires_at: inSeconds(7_200) }])
      expect((await ask('PATCH', path, change, narrowed)).status).toBe(403);
    expect((await ask('POST', `${path}/rotate`, {}, narrowed)).status).toBe(403);
    for (const change of [{ name: 'renamed' }, { expires_at: inSeconds(1_800) }, { scopes: ['org:admin'] }])
      expect((await ask('PATCH', path, change, narrowed)).status).toBe(200);
    expect((await ask('PATCH', path, { scopes: null }, narrowed)).status).toBe(403);
    expect((await ask('PATCH', path, { scopes: ['usage:read'] }, narrowed)).status).toBe(200);
    expect((await ask('DELETE', path, undefined, narrowed)).status).toBe(204);
  });

  it('cannot widen itself', async () => {
    const path = `${KEYS}/${idOf(narrowed)}`;
    expect((await ask('PATCH', path, { scopes: null }, narrowed)).status).toBe(403);
    expect((await ask('PATCH', path, { scopes: ['keys:admin', 'org:admin'] }, narrowed)).status).toBe(403);
  });

  it('needs the scope keys:admin', async () => {
    const others = [
      await api.addKey(org.orgId, 'member'),
      await api.addKey(org.orgId, 'auditor'),
      await api.addKey(org.orgId, 'ingest'),
      await api.addKey(org.orgId, 'admin', {
        scopes: SCOPES.filter((one): one is Scope => one !== 'keys:admin'),
      }),
    ];
    for (const key of others) {
      for (const [method, path, body] of [
        ['GET', KEYS],
        ['POST', KEYS, { name: 'n', role: 'ingest' }],
        ['GET', `${KEYS}/${idOf(org.ingestKey)}`],
        ['PATCH', `${KEYS}/${idOf(org.ingestKey)}`, { name: 'x' }],
        ['DELETE', `${KEYS}/${idOf(org.ingestKey)}`],
        ['POST', `${KEYS}/${idOf(org.ingestKey)}/rotate`, {}],
      ] as const) {
        const answer = await ask(method, path, body, key);
        expect([answer.status, answer.body.message]).toEqual([403, 'admin role required']);
      }
    }
  });
});

describe('a change of a key', () => {
  it('keeps what is not named, and holds for its next request', async () => {
    const { id, key, ...made } = await make({});
    expect((await ask('PATCH', `${KEYS}/${id}`, {})).body).toEqual({ id, ...made });
    const renamed = await ask('PATCH', `${KEYS}/${id}`, { name: 'other' });
    expect(renamed.body).toEqual({ id, ...made, name: 'other' });
    expect(await statusWith(key)).toBe(200);
    await ask('PATCH', `${KEYS}/${id}`, { scopes: ['usage:read'] });
    await expectSoon(key, 403);
    const wide = await ask('PATCH', `${KEYS}/${id}`, { scopes: null, expires_at: '2099-01-01T00:00:00Z' });
    expect(wide.body).toMatchObject({ name: 'other', scopes: null, expires_at: '2099-01-01T00:00:00Z' });
    await expectSoon(key, 200);
  });

  it('never touches its role, its workspace or its id', async () => {
    const { id } = await make({});
    for (const field of ['role', 'workspace_id', 'id', 'status', 'org_id', 'key'])
      expect((await ask('PATCH', `${KEYS}/${id}`, { [field]: 'x' })).status, field).toBe(400);
  });

  it('is refused once it is revoked; an expired key can get a later end', async () => {
    const { id } = await make({});
    await ask('DELETE', `${KEYS}/${id}`);
    for (const [method, path, body] of [
      ['PATCH', `${KEYS}/${id}`, { name: 'x' }],
      ['POST', `${KEYS}/${id}/rotate`, {}],
    ] as const)
      expect((await ask(method, path, body)).body.code).toBe('key_not_active');
    const expired = await api.addKey(org.orgId, 'member', { expiresInMs: -1_000 });
    expect((await ask('GET', `${KEYS}/${idOf(expired)}`)).body.status).toBe('expired');
    expect(await statusWith(expired)).toBe(401);
    expect((await ask('POST', `${KEYS}/${idOf(expired)}/rotate`, {})).body.code).toBe('key_not_active');
    await ask('PATCH', `${KEYS}/${idOf(expired)}`, { name: 'still expired' });
    expect(await statusWith(expired)).toBe(401);
    await ask('PATCH', `${KEYS}/${idOf(expired)}`, { expires_at: null });
    await expectSoon(expired, 200);
  });
});

describe('a rotation', () => {
  it('issues another secret under the same id, and the old one works for the grace period', async () => {
    const { id, key: first } = await make({});
    const before = Date.now();
    const rotated = await ask('POST', `${KEYS}/${id}/rotate`, {});
    const { key: second, ...shown } = rotated.body;
    expect(rotated.status).toBe(200);
    expect(shown).toMatchObject({ id, status: 'rotating', last4: second.slice(-4) });
    expect(parseKey(second)?.keyId).toBe(id);
    const graceMs = Date.parse(shown.previous_valid_until) - before;
    expect(Math.round(graceMs / 60_000)).toBe(24 * 60);
    expect([await statusWith(first), await statusWith(second)]).toEqual([200, 200]);
    const { key: third } = (await ask('POST', `${KEYS}/${id}/rotate`, { grace_seconds: 60 })).body;
    await expectSoon(first, 401);
    expect([await statusWith(second), await statusWith(third)]).toEqual([200, 200]);
  });

  it('needs no body; a body that is no JSON is refused all the same', async () => {
    const { id, key } = await make({});
    expect(await ask('POST', `${KEYS}/${id}/rotate`)).toMatchObject({
      status: 200,
      body: { id, status: 'rotating' },
    });
    expect(await statusWith(key)).toBe(200);
    const rotation = { method: 'POST', path: `${KEYS}/${id}/rotate`, key: org.adminKey };
    const answer = await send(api, {
      ...rotation,
      body: 'x',
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.body.code).toBe('invalid_json');
  });

  it('without a grace period ends the old secret at once', async () => {
    const { id, key: first } = await make({});
    const { key: second, ...shown } = (await ask('POST', `${KEYS}/${id}/rotate`, { grace_seconds: 0 })).body;
    expect(shown).toMatchObject({ status: 'active', previous_valid_until: null });
    await expectSoon(first, 401);
    expect(await statusWith(second)).toBe(200);
  });

  it('can be asked for by the key itself, and changes nothing of what it may', async () => {
    const { id, key, scopes } = await make({ role: 'admin', scopes: ['keys:admin', 'events:read'] });
    const rotated = await ask('POST', `${KEYS}/${id}/rotate`, { grace_seconds: 0 }, key);
    expect(rotated.body).toMatchObject({ scopes, role: 'admin' });
    expect(await statusWith(rotated.body.key)).toBe(200);
  });

  it.each([-1, 604_801, 1.5, '60', null])(
    'with a grace period of %j seconds is refused with 400',
    async (grace) => {
      const { id } = await make({});
      const answer = await ask('POST', `${KEYS}/${id}/rotate`, { grace_seconds: grace });
      expect([answer.status, answer.body.errors?.[0]?.field]).toEqual([400, 'grace_seconds']);
    },
  );
});

describe('a revocation', () => {
  it('ends the key for ever, keeps it in the list, and a second one changes nothing', async () => {
    const { id, key } = await make({});
    expect((await ask('DELETE', `${KEYS}/${id}`)).status).toBe(204);
    const revoked = await ask('GET', `${KEYS}/${id}`);
    expect(revoked.body).toMatchObject({ id, status: 'revoked', revoked_by: idOf(org.adminKey) });
    await expectSoon(key, 401);
    expect((await ask('DELETE', `${KEYS}/${id}`)).status).toBe(404);
    expect((await ask('GET', `${KEYS}/${id}`)).body).toEqual(revoked.body);
  });

  it('ends both secrets of a key in its grace period', async () => {
    const { id, key: first } = await make({});
    const { key: second } = (await ask('POST', `${KEYS}/${id}/rotate`, {})).body;
    await ask('DELETE', `${KEYS}/${id}`);
    expect((await ask('GET', `${KEYS}/${id}`)).body.previous_valid_until).toBeNull();
    await expectSoon(first, 401);
    await expectSoon(second, 401);
  });
});

describe('the last admin key that is neither narrowed nor expires', () => {
  it('cannot be revoked, narrowed, limited to an end or rotated without a grace period', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    await api.addKey(orgId, 'admin', { expiresInMs: 3_600_000 });
    await api.addKey(orgId, 'admin', { scopes: ['keys:admin', 'org:admin'] });
    const path = `${KEYS}/${idOf(adminKey)}`;
    for (const [method, where, body] of [
      ['DELETE', path],
      ['PATCH', path, { scopes: ['keys:admin'] }],
      ['PATCH', path, { expires_at: '2099-01-01' }],
      ['POST', `${path}/rotate`, { grace_seconds: 0 }],
    ] as const) {
      const refused = await ask(method, where, body, adminKey);
      expect([refused.status, refused.body.code], `${method} ${JSON.stringify(body)}`).toEqual([
        409,
        'last_admin_key',
      ]);
    }
    expect((await ask('PATCH', path, { name: 'kept' }, adminKey)).status).toBe(200);
    const { key } = (await ask('POST', `${path}/rotate`, {}, adminKey)).body;
    const another = await make({ role: 'admin' }, key);
    expect((await ask('DELETE', path, undefined, another.key)).status).toBe(204);
  });

  it('is left when two revoke the last two at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { orgId, adminKey } = await api.addOrganization();
      const other = await api.addKey(orgId, 'admin');
      const answers = await Promise.all([
        ask('DELETE', `${KEYS}/${idOf(other)}`, undefined, adminKey),
        ask('DELETE', `${KEYS}/${idOf(adminKey)}`, undefined, other),
        ask('PATCH', `${KEYS}/${idOf(adminKey)}`, { expires_at: '2099-01-01' }, other),
      ]);
      // The last caller may find its own key revoked already.
      for (const { status } of answers) expect([200, 204, 401, 409]).toContain(status);
      const left = await api.database.superuser.query(
        `select from api_keys where org_id = $1 and role = 'admin' and scopes is null and revoked_at is null and expires_at is null`,
        [orgId],
      );
      expect(left.rowCount).toBe(1);
    }
  });
});

describe('the list of keys', () => {
  it('is paged by cursor or offset, newest first, and states when there are no more', async () => {
    const { orgId, adminKey, ingestKey } = await api.addOrganization();
    const made = [idOf(adminKey), idOf(ingestKey)];
    for (let index = 0; index < 3; index += 1) made.push(idOf(await api.addKey(orgId, 'member')));
    const expected = made.toReversed();
    const seen: string[] = [];
    let path = `${KEYS}?limit=2`;
    for (let page = 0; page < 3; page += 1) {
      const answer = await ask('GET', path, undefined, adminKey);
      seen.push(...answer.body.keys.map((key: { id: string }) => key.id));
      expect(answer.body.has_more).toBe(page < 2);
      if (page < 2)
        expect(answer.headers.link).toBe(`<${KEYS}?limit=2&cursor=${answer.body.next_cursor}>; rel="next"`);
      path = `${KEYS}?limit=2&cursor=${answer.body.next_cursor}`;
    }
    expect(seen).toEqual(expected);
    const skipped = await ask('GET', `${KEYS}?limit=2&offset=3`, undefined, adminKey);
    expect(skipped.body.keys.map((key: { id: string }) => key.id)).toEqual(expected.slice(3));
    for (const wrong of ['x', 'WyIxIiwieCJd', '']) {
      const answer = await ask('GET', `${KEYS}?cursor=${wrong}`, undefined, adminKey);
      expect([answer.status, answer.body.code], wrong).toEqual([400, 'invalid_parameter']);
    }
  });

  it('is narrowed by status, role and workspace, and never shows a secret', async () => {
    const { orgId, adminKey, ingestKey } = await api.addOrganization();
    const workspaceId = await api.addWorkspace(orgId, 'p');
    const bound = await api.addKey(orgId, 'member', { workspaceId });
    const expired = await api.addKey(orgId, 'member', { expiresInMs: -1 });
    const rotating = await api.addKey(orgId, 'auditor');
    const revoked = await api.addKey(orgId, 'auditor');
    await ask('POST', `${KEYS}/${idOf(rotating)}/rotate`, {}, adminKey);
    await ask('DELETE', `${KEYS}/${idOf(revoked)}`, undefined, adminKey);
    const found = async (query: string) =>
      (await ask('GET', `${KEYS}?${query}`, undefined, adminKey)).body.keys
        .map((key: { id: string }) => key.id)
        .sort();
    const ids = (...keys: string[]) => keys.map(idOf).sort();
    expect(await found('status=active')).toEqual(ids(adminKey, ingestKey, bound));
    expect(await found('status=expired')).toEqual(ids(expired));
    expect(await found('status=rotating')).toEqual(ids(rotating));
    expect(await found('status=revoked')).toEqual(ids(revoked));
    expect(await found('role=auditor')).toEqual(ids(rotating, revoked));
    expect(await found(`workspace_id=wsp_${workspaceId.replaceAll('-', '')}`)).toEqual(ids(bound));
    expect(await found('workspace_id=wsp_of-nobody')).toEqual([]);
    const all = await ask('GET', KEYS, undefined, adminKey);
    expect(all.bytes.toString()).not.toMatch(/tu_live_|secret|hash/);
  });
});

describe('a key of another organization', () => {
  it('is answered like a missing key, and stays unchanged', async () => {
    const other = await api.addOrganization();
    const foreign = `${KEYS}/${idOf(other.ingestKey)}`;
    for (const [method, suffix, body] of [
      ['GET', ''],
      ['PATCH', '', { name: 'mine' }],
      ['DELETE', ''],
      ['POST', '/rotate', {}],
    ] as const) {
      const refused = await ask(method, foreign + suffix, body);
      expect(refused.status, method).toBe(404);
      for (const none of ['key_0000000000', 'key_1', 'x', '%00', 'key_0123456789%0A'])
        expect(rest((await ask(method, `${KEYS}/${none}${suffix}`, body)).body), none).toEqual(
          rest(refused.body),
        );
    }
    const kept = await ask('GET', foreign, undefined, other.adminKey);
    expect(kept.body).toMatchObject({ name: 'ingest', status: 'active' });
  });
});

describe('a request with an Idempotency-Key', () => {
  it('makes one key however often it is sent, and shows that same key each time', async () => {
    const { adminKey } = await api.addOrganization();
    const again = () =>
      send(api, {
        method: 'POST',
        path: KEYS,
        key: adminKey,
        body: JSON.stringify({ name: 'once', role: 'member' }),
        headers: { 'content-type': 'application/json', 'idempotency-key': 'made-once' },
      });
    const first = await again();
    const second = await again();
    expect([first.status, second.body]).toEqual([201, first.body]);
    expect(await statusWith(second.body.key)).toBe(200);
    const { keys } = (await ask('GET', `${KEYS}?role=member`, undefined, adminKey)).body;
    expect(keys.map((key: { id: string }) => key.id)).toEqual([first.body.id]);
  });
});

describe('the audit log', () => {
  it('records each change of a key with who made it, and holds no secret', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const made = await make({ name: 'logged', scopes: ['usage:read'] }, adminKey);
    const path = `${KEYS}/${made.id}`;
    await ask('PATCH', path, { name: 'renamed' }, adminKey);
    await ask('PATCH', path, { name: 'renamed' }, adminKey);
    const rotated = await ask('POST', `${path}/rotate`, { grace_seconds: 7 }, adminKey);
    await ask('DELETE', path, undefined, adminKey);
    await ask('DELETE', path, undefined, adminKey);
    await ask('DELETE', `${KEYS}/${idOf(adminKey)}`, undefined, adminKey);
    const { rows } = await api.database.superuser.query(
      `select action, actor_kind, actor_id, subject_type, subject_id, details from audit_log
       where org_id = $1 and subject_type = 'key' order by seq`,
      [orgId],
    );
    expect(rows.map((row) => row.action)).toEqual([
      'key.created',
      'key.changed',
      'key.rotated',
      'key.revoked',
    ]);
    for (const row of rows)
      expect(row).toMatchObject({ actor_kind: 'key', actor_id: idOf(adminKey), subject_id: made.id });
    const text = JSON.stringify(rows);
    for (const key of [made.key, rotated.body.key]) {
      expect(text).not.toContain(parseKey(key)?.secret);
      expect(text).not.toContain(key.slice(20));
    }
    expect(text).toContain('grace_seconds');
  });
});
