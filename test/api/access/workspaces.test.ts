import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, ingest, type RawAnswer, sendJson } from '../support/requests.js';

const WORKSPACES = '/api/v1/workspaces';
const KEYS = '/api/v1/keys';

let api: TestApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
  org = await api.addOrganization();
});
afterAll(() => api.close());

function ask(method: string, path: string, body?: unknown, key = org.adminKey): Promise<RawAnswer> {
  return sendJson(api, { method, path, key, json: body });
}

async function make(body: Record<string, unknown> = {}, key = org.adminKey): Promise<RawAnswer['body']> {
  const answer = await ask('POST', WORKSPACES, { name: 'n', ...body }, key);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

const idOf = (key: string) => `key_${key.split('_')[2]}`;
const rest = ({ request_id: _r, instance: _i, ...problem }: Record<string, unknown>) => problem;

describe('a new workspace', () => {
  it('has its own id as its project, unless another is named', async () => {
    const answer = await ask('POST', WORKSPACES, { name: ' Search team ' });
    const { id } = answer.body;
    expect(answer.status).toBe(201);
    expect(id).toMatch(/^wsp_[0-9a-f]{32}$/);
    expect(answer.headers.location).toBe(`${WORKSPACES}/${id}`);
    expect(answer.body).toEqual({
      id,
      name: 'Search team',
      project_id: id,
      created_at: expect.any(String),
      created_by: idOf(org.adminKey),
      archived_at: null,
    });
    expect((await ask('GET', `${WORKSPACES}/${id}`)).body).toEqual(answer.body);
    expect((await make({ project_id: 'proj search' })).project_id).toBe('proj search');
  });

  it('may take a project that calls carry already', async () => {
    await ingest(api, [anEvent({ project_id: 'known' })], org.ingestKey);
    expect((await make({ project_id: 'known' })).project_id).toBe('known');
  });

  it('cannot have the project of another one that is not archived', async () => {
    const first = await make({ project_id: 'taken' });
    const refused = await ask('POST', WORKSPACES, { name: 'n', project_id: 'taken' });
    expect([refused.status, refused.body.code]).toEqual([409, 'project_taken']);
    const others = await api.addOrganization();
    expect((await make({ project_id: 'taken' }, others.adminKey)).project_id).toBe('taken');
    await ask('DELETE', `${WORKSPACES}/${first.id}`);
    expect((await make({ project_id: 'taken' })).id).not.toBe(first.id);
  });

  it('is one of two that are made at once with one project', async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((index) => ask('POST', WORKSPACES, { name: `n${index}`, project_id: 'at once' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  it.each([
    ['no name', { name: '' }, /name: must not be empty/],
    ['an empty project', { name: 'n', project_id: '' }, /project_id: must not be empty/],
    ['a project that ingest would change', { name: 'n', project_id: 'größe' }, /must be printable ASCII/],
    ['a longer project', { name: 'n', project_id: 'x'.repeat(513) }, /at most 512 characters/],
    ['a field that there is not', { name: 'n', org_id: 'x' }, /is not known here/],
  ])('with %s is refused with 400', async (_what, body, message) => {
    const answer = await ask('POST', WORKSPACES, body);
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_body']);
    expect(answer.body.message).toMatch(message);
  });

  it('is refused beyond a thousand that are not archived', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    await api.database.superuser.query(
      `insert into workspaces (org_id, id, name, project_id, created_by)
       select $1, gen_random_uuid(), 'n', n::text, 'test' from generate_series(1, 1000) n`,
      [orgId],
    );
    const full = await ask('POST', WORKSPACES, { name: 'n' }, adminKey);
    expect([full.status, full.body.code]).toEqual([413, 'too_many_items']);
  });
});

describe('a workspace', () => {
  it('is renamed, and its project never changes', async () => {
    const made = await make();
    const path = `${WORKSPACES}/${made.id}`;
    expect((await ask('PATCH', path, { name: 'other' })).body).toEqual({ ...made, name: 'other' });
    expect((await ask('PATCH', path, {})).body).toEqual({ ...made, name: 'other' });
    expect((await ask('PATCH', path, { project_id: 'x' })).status).toBe(400);
    expect((await ask('GET', path)).body).toEqual({ ...made, name: 'other' });
  });

  it('that is archived has no keys any more and changes no more; a second time changes nothing', async () => {
    const made = await make();
    const path = `${WORKSPACES}/${made.id}`;
    const bound = await ask('POST', KEYS, { name: 'n', role: 'member', workspace_id: made.id });
    const { id: keyId, key } = bound.body;
    expect((await ask('POST', '/api/v1/ingest/events', { events: [] }, key)).status).toBe(202);
    expect((await ask('DELETE', path)).status).toBe(204);
    const archived = await ask('GET', path);
    expect(archived.body).toEqual({ ...made, archived_at: expect.any(String) });
    await expect
      .poll(async () => (await ask('POST', '/api/v1/ingest/events', { events: [] }, key)).status)
      .toBe(401);
    expect((await ask('GET', `${KEYS}/${keyId}`)).body).toMatchObject({
      status: 'revoked',
      revoked_by: idOf(org.adminKey),
      workspace_id: made.id,
    });
    expect((await ask('DELETE', path)).status).toBe(404);
    expect((await ask('GET', path)).body).toEqual(archived.body);
    const renamed = await ask('PATCH', path, { name: 'x' });
    expect([renamed.status, renamed.body.code]).toEqual([409, 'workspace_archived']);
  });

  it('leaves no key behind that was made while it was archived', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await make();
      const [made, archived] = await Promise.all([
        ask('POST', KEYS, { name: 'n', role: 'member', workspace_id: id }),
        ask('DELETE', `${WORKSPACES}/${id}`),
      ]);
      expect([201, 409]).toContain(made.status);
      expect(archived.status).toBe(204);
      const live = await ask('GET', `${KEYS}?workspace_id=${id}&status=active`);
      expect(live.body.keys).toEqual([]);
    }
  });

  it('is listed newest first, by cursor or offset, archived ones on demand', async () => {
    const { adminKey } = await api.addOrganization();
    const made = [];
    for (let index = 0; index < 5; index += 1) made.push(await make({ project_id: `p${index}` }, adminKey));
    await ask('DELETE', `${WORKSPACES}/${made[0].id}`, undefined, adminKey);
    const list = async (query: string) =>
      (await ask('GET', `${WORKSPACES}?${query}`, undefined, adminKey)).body;
    const projects = (body: RawAnswer['body']) =>
      body.workspaces.map((one: { project_id: string }) => one.project_id);
    const first = await list('limit=3');
    expect([projects(first), first.has_more]).toEqual([['p4', 'p3', 'p2'], true]);
    const second = await list(`limit=3&cursor=${first.next_cursor}`);
    expect([projects(second), second.has_more, second.next_cursor]).toEqual([['p1', 'p0'], false, null]);
    expect(projects(await list('limit=2&offset=1'))).toEqual(['p3', 'p2']);
    expect(projects(await list('archived=true'))).toEqual(['p0']);
    expect(projects(await list('archived=false&limit=9'))).toEqual(['p4', 'p3', 'p2', 'p1']);
    expect(projects(await list('project_id=p3'))).toEqual(['p3']);
    expect((await ask('GET', `${WORKSPACES}?cursor=x`, undefined, adminKey)).status).toBe(400);
  });

  it('is read by every key that reads everything, and changed by admins alone', async () => {
    const { id } = await make();
    const path = `${WORKSPACES}/${id}`;
    for (const role of ['member', 'auditor'] as const) {
      const key = await api.addKey(org.orgId, role);
      expect((await ask('GET', WORKSPACES, undefined, key)).status).toBe(200);
      expect((await ask('GET', path, undefined, key)).status).toBe(200);
      for (const [method, where, body] of [
        ['POST', WORKSPACES, { name: 'n' }],
        ['PATCH', path, { name: 'x' }],
        ['DELETE', path],
      ] as const) {
        const refused = await ask(method, where, body, key);
        expect([refused.status, refused.body.message]).toEqual([403, 'admin role required']);
      }
    }
  });

  it('of another organization is answered like a missing one, and stays unchanged', async () => {
    const other = await api.addOrganization();
    const foreign = await make({}, other.adminKey);
    for (const [method, body] of [['GET'], ['PATCH', { name: 'mine' }], ['DELETE']] as const) {
      const refused = await ask(method, `${WORKSPACES}/${foreign.id}`, body);
      expect(refused.status, method).toBe(404);
      for (const none of [`wsp_${'0'.repeat(32)}`, 'wsp_1', 'x', '%00'])
        expect(rest((await ask(method, `${WORKSPACES}/${none}`, body)).body), none).toEqual(
          rest(refused.body),
        );
    }
    expect((await ask('GET', `${WORKSPACES}/${foreign.id}`, undefined, other.adminKey)).body).toEqual(
      foreign,
    );
  });
});

describe('the audit log', () => {
  it('records each change of a workspace, and each key that an archiving revokes', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const { id } = await make({}, adminKey);
    await ask('PATCH', `${WORKSPACES}/${id}`, { name: 'x' }, adminKey);
    const keys = [];
    for (const role of ['member', 'ingest'])
      keys.push((await ask('POST', KEYS, { name: 'n', role, workspace_id: id }, adminKey)).body.id);
    await ask('DELETE', `${WORKSPACES}/${id}`, undefined, adminKey);
    await ask('DELETE', `${WORKSPACES}/${id}`, undefined, adminKey);
    const { rows } = await api.database.superuser.query(
      'select action, actor_id, subject_id from audit_log where org_id = $1 order by seq',
      [orgId],
    );
    const told = rows.map(({ action, subject_id }) => [action, subject_id]);
    expect(told).toEqual([
      ['workspace.created', id],
      ['workspace.changed', id],
      ['key.created', keys[0]],
      ['key.created', keys[1]],
      ['workspace.archived', id],
      ...keys.sort().map((key) => ['key.revoked', key]),
    ]);
    expect(new Set(rows.map((row) => row.actor_id))).toEqual(new Set([idOf(adminKey)]));
  });
});
