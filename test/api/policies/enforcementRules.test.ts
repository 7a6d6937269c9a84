import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listRules } from '../../../db/policies/enforcementRules.js';
import { RULES_MAX, WINDOW_SECONDS_MAX } from '../../../domain/policies/enforcement/rule.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { sendJson } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const RULES = '/api/v1/enforcement-rules';
const CEILING = { type: 'token_ceiling', config: { max_tokens: 1_000 } };
const DOWNGRADE = {
  type: 'model_downgrade',
  config: { to_model: 'gpt-4o-mini' },
  scope: { model: 'gpt-4o' },
};

const ask = (org: TestOrganization, method: string, path: string, json?: unknown) =>
  sendJson(api, { method, path, key: org.adminKey, ...(json === undefined ? {} : { json }) });

async function make(org: TestOrganization, json: object) {
  const { status, body } = await ask(org, 'POST', RULES, json);
  expect(status, JSON.stringify(body)).toBe(201);
  return body;
}

const listed = async (org: TestOrganization, query = '') =>
  (await ask(org, 'GET', RULES + query)).body.enforcement_rules as { id: string; type: string }[];

describe('an enforcement rule', () => {
  it('is returned as it was made, with its defaults filled in', async () => {
    const org = await api.addOrganization();
    const answer = await ask(org, 'POST', RULES, CEILING);
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^rul_[0-9a-f]{32}$/),
      name: null,
      type: 'token_ceiling',
      mode: 'block',
      config: { max_tokens: 1_000 },
      scope: { team_id: null, feature: null, model: null },
      enabled: true,
      created_at: expect.any(String),
      updated_at: answer.body.created_at,
      created_by: `key_${org.adminKey.split('_')[2]}`,
      removed_at: null,
    });
    expect(answer.headers.location).toBe(`${RULES}/${answer.body.id}`);
    expect((await ask(org, 'GET', `${RULES}/${answer.body.id}`)).body).toEqual(answer.body);
    const {
      id: _id,
      created_at: _made,
      updated_at: _changed,
      created_by: _by,
      removed_at: _end,
      ...said
    } = answer.body;
    expect(await make(org, said)).toMatchObject(said);
  });

  it('has one time when it is made, to the microsecond', async () => {
    const org = await api.addOrganization();
    const rules = await Promise.all(Array.from({ length: RULES_MAX }, () => make(org, CEILING)));
    expect(rules.filter((rule) => rule.updated_at !== rule.created_at)).toEqual([]);
  });

  it('of every type can be made, and is returned as it was sent', async () => {
    const org = await api.addOrganization();
    const rules = [
      CEILING,
      { type: 'session_budget_usd', config: { budget_usd: 2.5 } },
      { type: 'duplicate_window_seconds', config: { window_seconds: WINDOW_SECONDS_MAX } },
      { type: 'max_tool_calls', config: { max_tool_calls: 0 }, mode: 'observe', enabled: false },
      {
        ...DOWNGRADE,
        name: 'cheaper drafts',
        scope: { team_id: 'growth', feature: 'drafts', model: 'gpt-4o' },
      },
    ];
    for (const rule of rules) expect(await make(org, rule)).toMatchObject(rule);
    expect(await listed(org)).toMatchObject(rules);
  });

  it.each([
    [0.29, 0.29],
    ['0.290000', 0.29],
    ['1e-6', 0.000001],
    [1_000_000, 1_000_000],
    ['999999.999999', 999_999.999999],
  ])('keeps a budget of %s to the digit', async (given, shown) => {
    const org = await api.addOrganization();
    const rule = await make(org, { type: 'session_budget_usd', config: { budget_usd: given } });
    expect(rule.config).toEqual({ budget_usd: shown });
    const [stored] = await listRules(org.orgDb);
    expect(stored?.config).toEqual({ budgetPico: BigInt(Math.round(shown * 1e6)) * 1_000_000n });
  });

  it.each<[string, object, string]>([
    ['a type that there is not', { type: 'token_cieling', config: { max_tokens: 1 } }, 'type'],
    ['no type', { config: { max_tokens: 1 } }, 'type'],
    ['no config', { type: 'token_ceiling' }, 'config'],
    ['an empty config', { type: 'token_ceiling', config: {} }, 'config.max_tokens'],
    ['a key of another type', { type: 'max_tool_calls', config: { max_tokens: 1 } }, 'config.max_tokens'],
    ['a misspelt key', { type: 'token_ceiling', config: { max_token: 1 } }, 'config.max_token'],
    ['a number as text', { type: 'token_ceiling', config: { max_tokens: '1000' } }, 'config.max_tokens'],
    ['no tokens at all', { type: 'token_ceiling', config: { max_tokens: 0 } }, 'config.max_tokens'],
    ['too many tokens', { type: 'token_ceiling', config: { max_tokens: 1e9 + 1 } }, 'config.max_tokens'],
    ['half a token', { type: 'token_ceiling', config: { max_tokens: 1.5 } }, 'config.max_tokens'],
    ['a budget of nothing', { type: 'session_budget_usd', config: { budget_usd: 0 } }, 'config.budget_usd'],
    [
      'a budget below nothing',
      { type: 'session_budget_usd', config: { budget_usd: -1 } },
      'config.budget_usd',
    ],
    [
      'a budget that is no number',
      { type: 'session_budget_usd', config: { budget_usd: 'NaN' } },
      'config.budget_usd',
    ],
    [
      'more digits than are kept',
      { type: 'session_budget_usd', config: { budget_usd: '0.0000001' } },
      'config.budget_usd',
    ],
    [
      'a budget beyond a million',
      { type: 'session_budget_usd', config: { budget_usd: '1000000.000001' } },
      'config.budget_usd',
    ],
    [
      'a window of nothing',
      { type: 'duplicate_window_seconds', config: { window_seconds: 0 } },
      'config.window_seconds',
    ],
    [
      'a window beyond a day',
      { type: 'duplicate_window_seconds', config: { window_seconds: 86_401 } },
      'config.window_seconds',
    ],
    [
      'tool calls below nothing',
      { type: 'max_tool_calls', config: { max_tool_calls: -1 } },
      'config.max_tool_calls',
    ],
    ['a downgrade of no model', { type: 'model_downgrade', config: { to_model: 'm' } }, 'scope'],
    ['a downgrade of any model', { ...DOWNGRADE, scope: { team_id: 't' } }, 'scope.model'],
    ['a downgrade to the same model', { ...DOWNGRADE, config: { to_model: 'gpt-4o' } }, 'config.to_model'],
    ['an empty model', { ...DOWNGRADE, config: { to_model: '' } }, 'config.to_model'],
    ['an empty label', { ...CEILING, scope: { team_id: '' } }, 'scope.team_id'],
    ['a label that no call can carry', { ...CEILING, scope: { feature: 'für' } }, 'scope.feature'],
    ['a label that is too long', { ...CEILING, scope: { feature: 'f'.repeat(257) } }, 'scope.feature'],
    ['a scope by something else', { ...CEILING, scope: { user_id: 'u' } }, 'scope.user_id'],
    ['a mode that there is not', { ...CEILING, mode: 'warn' }, 'mode'],
    ['a switch that is a text', { ...CEILING, enabled: 'true' }, 'enabled'],
    ['an empty name', { ...CEILING, name: ' ' }, 'name'],
    ['a name that no text can hold', { ...CEILING, name: 'a\u0000b' }, 'name'],
    ['a field of its own', { ...CEILING, id: 'rul_1' }, 'id'],
  ])('is refused with %s, and the field is named', async (_what, json, field) => {
    const org = await api.addOrganization();
    const { status, body } = await ask(org, 'POST', RULES, json);
    expect([status, body.code]).toEqual([400, 'invalid_body']);
    expect(body.errors.map((error: { field: string }) => error.field)).toContain(field);
    expect(body.detail).toContain(field);
    expect(await listed(org)).toEqual([]);
  });

  it('of a downgrade without a scope is refused with the missing part of the scope', async () => {
    const { scope: _, ...rest } = DOWNGRADE;
    const { body } = await ask(await api.addOrganization(), 'POST', RULES, rest);
    expect(body.detail).toBe('scope: is missing: name the model in scope.model');
  });

  it(`is one of ${RULES_MAX} at most; a removed one makes room`, async () => {
    const org = await api.addOrganization();
    const made = [];
    for (let count = 0; count < RULES_MAX - 1; count += 1) made.push((await make(org, CEILING)).id);
    // Two simultaneous requests for the last free place.
    const both = await Promise.all([ask(org, 'POST', RULES, CEILING), ask(org, 'POST', RULES, CEILING)]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 413]);
    expect(both.find(({ status }) => status === 413)?.body.detail).toContain('remove some');
    expect(await listed(org)).toHaveLength(RULES_MAX);
    expect((await ask(org, 'DELETE', `${RULES}/${made[0]}`)).status).toBe(204);
    const last = await make(org, DOWNGRADE);
    expect((await listed(org)).at(-1)?.id).toBe(last.id);
  });
});

describe('the list of rules', () => {
  it('is in the order in which they were made, by type, mode and switch, a page at a time', async () => {
    const org = await api.addOrganization();
    const rules = [CEILING, { ...DOWNGRADE, enabled: false }, { ...CEILING, mode: 'observe' }];
    const ids: string[] = [];
    for (const rule of rules) ids.push((await make(org, rule)).id);
    const idsOf = async (query = '') => (await listed(org, query)).map(({ id }) => id);
    expect(await idsOf()).toEqual(ids);
    expect(await idsOf('?type=token_ceiling')).toEqual([ids[0], ids[2]]);
    expect(await idsOf('?enabled=false')).toEqual([ids[1]]);
    expect(await idsOf('?enabled=true&mode=observe')).toEqual([ids[2]]);
    const page = (await ask(org, 'GET', `${RULES}?limit=2&offset=1`)).body;
    expect(page).toMatchObject({ count: 2, offset: 1, has_more: false });
    expect((await ask(org, 'GET', `${RULES}?limit=2`)).body.has_more).toBe(true);
    expect((await ask(org, 'GET', `${RULES}?type=ceiling`)).body).toMatchObject({
      code: 'invalid_parameter',
    });
  });
});

describe('a change of a rule', () => {
  it('leaves what it does not name, and its place in the order', async () => {
    const org = await api.addOrganization();
    const first = await make(org, { ...CEILING, name: 'ceiling', scope: { team_id: 't', model: 'm' } });
    await make(org, CEILING);
    const path = `${RULES}/${first.id}`;
    const off = await ask(org, 'PATCH', path, { enabled: false });
    expect(off.body).toEqual({ ...first, enabled: false, updated_at: off.body.updated_at });
    expect(off.body.updated_at > first.updated_at).toBe(true);
    const other = await ask(org, 'PATCH', path, {
      name: null,
      mode: 'observe',
      scope: { feature: 'f' },
      config: { max_tokens: 5 },
    });
    expect(other.body).toMatchObject({
      name: null,
      mode: 'observe',
      enabled: false,
      scope: { team_id: null, feature: 'f', model: null },
      config: { max_tokens: 5 },
    });
    expect((await listed(org))[0]?.id).toBe(first.id);
  });

  it('that changes nothing leaves its time and the log alone', async () => {
    const org = await api.addOrganization();
    const rule = await make(org, { type: 'session_budget_usd', config: { budget_usd: 0.5 } });
    const same = await ask(org, 'PATCH', `${RULES}/${rule.id}`, {
      config: { budget_usd: '0.50' },
      name: null,
    });
    expect(same.body).toEqual(rule);
    const { records } = (await ask(org, 'GET', '/api/v1/audit-log')).body;
    expect(records.map(({ action }: { action: string }) => action)).toEqual(['enforcement_rule.created']);
  });

  it.each<[string, object, string]>([
    ['the type', { type: 'max_tool_calls' }, 'type'],
    ['a config of another type', { config: { max_tool_calls: 1 } }, 'config.max_tool_calls'],
    ['two configs', { config: { to_model: 'x', max_tokens: 1 } }, 'config.max_tokens'],
    ['an empty config', { config: {} }, 'config.to_model'],
    ['a scope without the model', { scope: { team_id: 't' } }, 'scope.model'],
    ['a scope with the model that calls go to', { scope: { model: 'gpt-4o-mini' } }, 'config.to_model'],
    ['a model that is the same', { config: { to_model: 'gpt-4o' } }, 'config.to_model'],
    ['a switch that is null', { enabled: null }, 'enabled'],
  ])('to %s is refused by the type that the rule has', async (_what, json, field) => {
    const org = await api.addOrganization();
    const rule = await make(org, DOWNGRADE);
    const { status, body } = await ask(org, 'PATCH', `${RULES}/${rule.id}`, json);
    expect([status, body.code]).toEqual([400, 'invalid_body']);
    expect(body.errors.map((error: { field: string }) => error.field)).toContain(field);
    expect((await ask(org, 'GET', `${RULES}/${rule.id}`)).body).toEqual(rule);
  });

  it('has the savings modeled again, unless the rule is off before and after', async () => {
    const org = await api.addOrganization();
    const runs = async () => {
      const { rows } = await api.database.superuser.query<{ runs: string }>(
        `select count(*) as runs from savings_runs where org_id = $1`,
        [org.orgId],
      );
      return Number(rows[0]?.runs);
    };
    const rule = await make(org, { ...CEILING, enabled: false });
    await ask(org, 'PATCH', `${RULES}/${rule.id}`, { config: { max_tokens: 7 } });
    expect(await runs()).toBe(0);
    await ask(org, 'PATCH', `${RULES}/${rule.id}`, { enabled: true });
    expect(await runs()).toBe(1);
  });
});

describe('a removed rule', () => {
  it('is in no list and no configuration, cannot be changed, and stays readable under its id', async () => {
    const org = await api.addOrganization();
    const rule = await make(org, CEILING);
    const path = `${RULES}/${rule.id}`;
    expect((await ask(org, 'DELETE', path)).status).toBe(204);
    expect(await listed(org)).toEqual([]);
    expect((await ask(org, 'GET', '/api/v1/enforcement/config')).body.rules).toEqual([]);
    const removed = await ask(org, 'GET', path);
    expect(removed.body).toEqual({ ...rule, removed_at: expect.any(String) });
    const changed = await ask(org, 'PATCH', path, { enabled: false });
    expect([changed.status, changed.body.code]).toEqual([409, 'rule_removed']);
    expect((await ask(org, 'DELETE', path)).status).toBe(404);
    expect((await ask(org, 'GET', path)).body).toEqual(removed.body);
    const { records } = (await ask(org, 'GET', '/api/v1/audit-log')).body;
    expect(records.map(({ action }: { action: string }) => action).sort()).toEqual([
      'enforcement_rule.created',
      'enforcement_rule.removed',
    ]);
  });
});
