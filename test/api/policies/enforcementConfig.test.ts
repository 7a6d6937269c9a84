import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { send, sendJson } from '../support/requests.js';

let api: TestApi;
let other: TestApi;

beforeAll(async () => {
  api = await startTestApi();
  // Another instance on the same database.
  other = await startTestApi({ database: api.database });
});
afterAll(async () => {
  await other?.close();
  await api?.close();
});

const RULES = '/api/v1/enforcement-rules';
const CONFIG = '/api/v1/enforcement/config';

const poll = (org: TestOrganization, headers: Record<string, string> = {}, at = api, key = org.ingestKey) =>
  send(at, { path: CONFIG, key, headers });

async function make(org: TestOrganization, json: object): Promise<string> {
  const { status, body } = await sendJson(api, { method: 'POST', path: RULES, key: org.adminKey, json });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.id;
}

const change = (org: TestOrganization, id: string, json: object) =>
  sendJson(api, { method: 'PATCH', path: `${RULES}/${id}`, key: org.adminKey, json });

const CEILING = { type: 'token_ceiling', config: { max_tokens: 9_000 }, name: 'ceiling' };
const BUDGET = {
  type: 'session_budget_usd',
  config: { budget_usd: 2.5 },
  scope: { team_id: 'growth' },
  mode: 'observe',
};

describe('the configuration of wrappers', () => {
  it('is the enabled rules of both modes in their order, and what is needed of each', async () => {
    const org = await api.addOrganization();
    const ids = [
      await make(org, CEILING),
      await make(org, { ...CEILING, enabled: false }),
      await make(org, BUDGET),
    ];
    const { status, body, headers } = await poll(org);
    expect(status).toBe(200);
    expect(body).toEqual({
      version: expect.stringMatching(/^[0-9a-f]{32}$/),
      poll_seconds: 60,
      rules: [
        {
          id: ids[0],
          name: 'ceiling',
          type: 'token_ceiling',
          mode: 'block',
          config: { max_tokens: 9_000 },
          scope: { team_id: null, feature: null, model: null },
        },
        {
          id: ids[2],
          name: null,
          type: 'session_budget_usd',
          mode: 'observe',
          config: { budget_usd: 2.5 },
          scope: { team_id: 'growth', feature: null, model: null },
        },
      ],
    });
    expect(headers.etag).toBe(`"${body.version}"`);
    expect(headers['cache-control']).toBe('private, no-cache');
  });

  it('is the same bytes each time, on every instance and for keys of workspaces', async () => {
    const org = await api.addOrganization();
    await make(org, CEILING);
    await make(org, BUDGET);
    const workspaceId = await api.addWorkspace(org.orgId, 'shop');
    const ofWorkspace = await api.addKey(org.orgId, 'ingest', { workspaceId });
    const answers = [
      await poll(org),
      await poll(org),
      await poll(org, {}, other),
      await poll(org, {}, api, ofWorkspace),
    ];
    expect(new Set(answers.map(({ bytes }) => bytes.toString())).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(1);
  });

  it('has one version for one content: a change makes another, and reverting it restores the former', async () => {
    const org = await api.addOrganization();
    const tagOf = async () => (await poll(org)).headers.etag;
    const empty = await tagOf();
    const id = await make(org, CEILING);
    const first = await tagOf();
    const seen = [empty, first];
    for (const json of [
      { config: { max_tokens: 1 } },
      { mode: 'observe' },
      { scope: { feature: 'f' } },
      { name: 'other' },
    ]) {
      await change(org, id, json);
      seen.push(await tagOf());
    }
    expect(new Set(seen).size).toBe(seen.length);
    await change(org, id, { ...CEILING, type: undefined, mode: 'block', scope: {} });
    expect(await tagOf()).toBe(first);
    await change(org, id, { enabled: false });
    expect(await tagOf()).toBe(empty);
  });

  it('is not sent again to a client that has it, whichever way the copy is named', async () => {
    const org = await api.addOrganization();
    const id = await make(org, CEILING);
    const { headers } = await poll(org);
    const etag = String(headers.etag);
    for (const named of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b",W/"x" , W/${etag}`, '*']) {
      const again = await poll(org, { 'if-none-match': named });
      expect([again.status, again.bytes.length], named).toEqual([304, 0]);
      expect(again.headers).toMatchObject({ etag, 'cache-control': 'private, no-cache' });
    }
    for (const named of ['"x"', etag.slice(1, -1), `"${etag.slice(1, -1)}x"`, '"*"', ''])
      expect((await poll(org, { 'if-none-match': named })).status, named).toBe(200);
    const head = await send(api, { method: 'HEAD', path: CONFIG, key: org.ingestKey });
    expect([head.status, head.headers.etag, head.bytes.length]).toEqual([200, etag, 0]);
    await change(org, id, { mode: 'observe' });
    // The next poll at any instance hears of it.
    expect((await poll(org, { 'if-none-match': etag }, other)).status).toBe(200);
  });

  it('is for keys that may send calls, and of their organization alone', async () => {
    const [org, stranger] = [await api.addOrganization(), await api.addOrganization()];
    await make(org, CEILING);
    expect((await poll(stranger)).body.rules).toEqual([]);
    const auditor = await api.addKey(org.orgId, 'auditor');
    expect((await poll(org, {}, api, auditor)).status).toBe(403);
    expect((await poll(org, {}, api, org.adminKey)).status).toBe(200);
  });
});
