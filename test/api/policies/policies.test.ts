import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aSpan, ingest, send } from '../support/requests.js';

const POLICIES = '/api/v1/policies';
const MODELS = { models: ['gpt-4o'] };

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const write = (method: string, path: string, body: unknown, key: string, headers = {}) =>
  send(api, {
    method,
    path: `${POLICIES}/${path}`,
    key,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const put = (type: string, body: unknown, key = api.adminKey) => write('PUT', type, body, key);
const preview = (type: string, body: unknown, key = api.adminKey) =>
  write('POST', `${type}/preview`, body, key);
const list = async (key: string) => (await api.get(POLICIES, key)).body.policies;

const audited = async ({ orgId }: TestOrganization) => {
  const { rows } = await api.database.superuser.query<{
    action: string;
    subject_id: string;
    details: string;
  }>(
    `select action, subject_id, details from audit_log where org_id = $1 and action like 'policy.%' order by seq`,
    [orgId],
  );
  return rows.map(({ action, subject_id, details }) => [action, subject_id, JSON.parse(details)]);
};
const revisionOf = async ({ orgId }: TestOrganization) => {
  const { rows } = await api.database.superuser.query(
    'select rules_revision from organizations where id = $1',
    [orgId],
  );
  return Number(rows[0].rules_revision);
};

describe('a policy', () => {
  it('is put by its type, once for each, and answered without the time that the list shows', async () => {
    const one = await api.addOrganization();
    expect(await list(one.adminKey)).toEqual([]);
    const made = await put('approved_models', { config: MODELS }, one.adminKey);
    expect({ status: made.status, body: made.body }).toEqual({
      status: 200,
      body: { id: 1, policy_type: 'approved_models', config: MODELS, enabled: true },
    });
    const keys = { prod_key_prefixes: ['sk-live'], allowed_envs: ['production'] };
    expect((await put('key_environment_check', { config: keys, enabled: false }, one.adminKey)).body).toEqual(
      {
        id: 2,
        policy_type: 'key_environment_check',
        config: keys,
        enabled: false,
      },
    );
    const replaced = await put('approved_models', { config: { models: [] }, enabled: false }, one.adminKey);
    expect(replaced.body).toEqual({
      id: 1,
      policy_type: 'approved_models',
      config: { models: [] },
      enabled: false,
    });
    const cents = await put(
      'approval_required_threshold_cents',
      { config: { threshold_cents: 29 } },
      one.adminKey,
    );
    expect(cents.body.id).toBe(3);
    const policies = await list(one.adminKey);
    expect(
      policies.map(({ id, policy_type: type, enabled }: Record<string, unknown>) => [id, type, enabled]),
    ).toEqual([
      [1, 'approved_models', false],
      [2, 'key_environment_check', false],
      [3, 'approval_required_threshold_cents', true],
    ]);
    expect(policies[1]).toEqual({
      id: 2,
      policy_type: 'key_environment_check',
      config: keys,
      enabled: false,
      updated_at: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T.*Z$/),
    });
  });

  it('has an id of its own organization’s: the first is 1 everywhere', async () => {
    const [one, other] = [await api.addOrganization(), await api.addOrganization()];
    for (const { adminKey } of [one, other])
      expect((await put('approved_models', { config: MODELS }, adminKey)).body.id).toBe(1);
    expect((await list(other.adminKey)).length).toBe(1);
  });

  it('is put by many at once and gets one id for each type', async () => {
    const one = await api.addOrganization();
    const configs: [string, object][] = [
      ['approved_models', MODELS],
      ['banned_patterns', { regexes: ['x'] }],
      ['key_environment_check', { prod_key_prefixes: [], allowed_envs: [] }],
      ['approval_required_threshold_cents', { threshold_cents: 0 }],
    ];
    const answers = await Promise.all(
      [...configs, ...configs, ...configs].map(([type, config]) => put(type, { config }, one.adminKey)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const policies = await list(one.adminKey);
    expect(policies.map(({ id }: { id: number }) => id)).toEqual([1, 2, 3, 4]);
    expect(new Set(policies.map((policy: { policy_type: string }) => policy.policy_type)).size).toBe(4);
  });

  it('of an unknown type is refused as such before its body is read, whatever the body contains', async () => {
    const { status, body } = await put('allowed_models', { config: MODELS });
    expect({ status, code: body.code, errors: body.errors }).toEqual({
      status: 400,
      code: 'invalid_policy_type',
      errors: [
        {
          in: 'path',
          field: 'policy_type',
          message:
            'must be one of approved_models, banned_patterns, key_environment_check, approval_required_threshold_cents',
        },
      ],
    });
    expect((await put('constructor', 'nonsense')).body.code).toBe('invalid_policy_type');
    expect((await preview('Approved_Models', { config: MODELS })).body.code).toBe('invalid_policy_type');
    const one = await api.addOrganization();
    const member = await api.addKey(one.orgId, 'member');
    const refused = await put('allowed_models', { config: MODELS }, member);
    expect({ status: refused.status, message: refused.body.message }).toEqual({
      status: 403,
      message: 'admin role required',
    });
  });

  it('is never deleted: only PUT is possible', async () => {
    const { status, headers, body } = await send(api, {
      method: 'DELETE',
      path: `${POLICIES}/approved_models`,
      key: api.adminKey,
    });
    expect({ status, allow: headers.allow, code: body.code }).toEqual({
      status: 405,
      allow: 'PUT',
      code: 'method_not_allowed',
    });
  });
});

describe('the configuration of a policy', () => {
  const long = (length: number) => 'x'.repeat(length);
  const many = (length: number) => Array.from({ length }, (_, index) => `m${index}`);
  const keys = (rest: object) => ({ prod_key_prefixes: ['sk'], allowed_envs: ['prod'], ...rest });

  it.each([
    ['approved_models', { models: [long(256)] }],
    ['approved_models', { models: many(1_000) }],
    ['approved_models', { models: [] }],
    ['banned_patterns', { regexes: [] }],
    ['banned_patterns', { regexes: [long(512)] }],
    ['banned_patterns', { regexes: many(100) }],
    ['key_environment_check', keys({ prod_key_prefixes: many(100), allowed_envs: many(100) })],
    ['key_environment_check', keys({ prod_key_prefixes: [long(128)], allowed_envs: [long(128)] })],
    ['approval_required_threshold_cents', { threshold_cents: 0 }],
    ['approval_required_threshold_cents', { threshold_cents: 1_000_000_000 }],
  ])('%s takes what lies within its limits (%#)', async (type, config) => {
    const one = await api.addOrganization();
    const { status, body } = await put(type, { config }, one.adminKey);
    expect({ status, config: body.config }).toEqual({ status: 200, config });
    expect((await list(one.adminKey))[0].config).toEqual(config);
  });

  it.each([
    ['approved_models', {}, ['config.models']],
    ['approved_models', { model: ['gpt-4o'] }, ['config.models', 'config.model']],
    ['approved_models', { models: ['gpt-4o'], extra: 1 }, ['config.extra']],
    ['approved_models', { models: 'gpt-4o' }, ['config.models']],
    ['approved_models', { models: null }, ['config.models']],
    ['approved_models', { models: [7, ''] }, ['config.models.0', 'config.models.1']],
    ['approved_models', { models: [long(257)] }, ['config.models.0']],
    ['approved_models', { models: many(1_001) }, ['config.models']],
    ['banned_patterns', { regex: ['x'] }, ['config.regexes', 'config.regex']],
    ['banned_patterns', { regexes: [long(513)] }, ['config.regexes.0']],
    ['banned_patterns', { regexes: many(101) }, ['config.regexes']],
    ['key_environment_check', { prod_key_prefixes: [] }, ['config.allowed_envs']],
    ['key_environment_check', keys({ allowed_envs: [long(129)] }), ['config.allowed_envs.0']],
    ['key_environment_check', keys({ prod_key_prefixes: many(101) }), ['config.prod_key_prefixes']],
    ['approval_required_threshold_cents', {}, ['config.threshold_cents']],
    ['approval_required_threshold_cents', { threshold_cents: -1 }, ['config.threshold_cents']],
    ['approval_required_threshold_cents', { threshold_cents: 0.5 }, ['config.threshold_cents']],
    ['approval_required_threshold_cents', { threshold_cents: '29' }, ['config.threshold_cents']],
    ['approval_required_threshold_cents', { threshold_cents: 1_000_000_001 }, ['config.threshold_cents']],
    ['approval_required_threshold_cents', { threshold_cents: 1e300 }, ['config.threshold_cents']],
    ['approved_models', undefined, ['config']],
    ['approved_models', null, ['config']],
    ['approved_models', ['gpt-4o'], ['config']],
  ])('%s %j is refused, each fault by its place, at a put and at a preview', async (type, config, fields) => {
    for (const ask of [put, preview]) {
      const { status, body } = await ask(type, { config });
      expect({
        status,
        code: body.code,
        fields: [...new Set(body.errors.map(({ field }: { field: string }) => field))],
      }).toEqual({ status: 400, code: 'invalid_body', fields });
    }
  });

  it('is a field beside enabled, which is true or false, and beside nothing else', async () => {
    for (const body of [
      { config: MODELS, enabled: null },
      { config: MODELS, enabled: 'false' },
      { config: MODELS, enable: false },
    ]) {
      const answer = await put('approved_models', body);
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_body']);
    }
    expect((await put('approved_models', { enabled: true })).body.detail).toBe('config: is missing: give it');
    expect(await list(api.adminKey)).toEqual([]);
  });
});

describe('patterns', () => {
  it('that RE2 does not take, or that take long, are stored as they were sent and named in warnings', async () => {
    const one = await api.addOrganization();
    const regexes = ['(?i)secret', '(?=x)', '(a+)+$', '(a)\\1', `${'a{1000}'.repeat(70)}`, '('];
    const { status, body } = await put('banned_patterns', { config: { regexes } }, one.adminKey);
    expect(status).toBe(200);
    expect(body.config).toEqual({ regexes });
    expect(body.warnings).toEqual([
      { path: 'config.regexes[1]', reason: expect.stringMatching(/RE2.*\(\?=/) },
      { path: 'config.regexes[3]', reason: expect.stringMatching(/RE2.*\\1/) },
      { path: 'config.regexes[4]', reason: expect.stringContaining('more than 1000 steps') },
      { path: 'config.regexes[5]', reason: expect.stringContaining('missing closing )') },
    ]);
    const [listed] = await list(one.adminKey);
    expect(listed.warnings).toEqual(body.warnings);
    expect(Object.keys(listed)).toEqual(['id', 'policy_type', 'config', 'enabled', 'updated_at', 'warnings']);
  });

  it('are judged alike when the same list is put again, and each warning is removed with its pattern', async () => {
    const one = await api.addOrganization();
    const regexes = ['(?=x)', 'y'];
    const first = await put('banned_patterns', { config: { regexes } }, one.adminKey);
    const again = await put('banned_patterns', { config: { regexes } }, one.adminKey);
    expect(again.body).toEqual(first.body);
    const { body } = await put('banned_patterns', { config: { regexes: ['y'] } }, one.adminKey);
    expect(body).toEqual({
      id: 1,
      policy_type: 'banned_patterns',
      config: { regexes: ['y'] },
      enabled: true,
    });
  });
});

describe('the effect of a put', () => {
  it('is one row of the log that lists what was added and removed, and one step of the organization’s revision', async () => {
    const one = await api.addOrganization();
    await put('approved_models', { config: { models: ['a', 'b'] } }, one.adminKey);
    await put('approved_models', { config: { models: ['b', 'c'] }, enabled: false }, one.adminKey);
    await put('approval_required_threshold_cents', { config: { threshold_cents: 5 } }, one.adminKey);
    await put('approval_required_threshold_cents', { config: { threshold_cents: 7 } }, one.adminKey);
    const common = { policy_type: 'approved_models' };
    const cents = { policy_type: 'approval_required_threshold_cents', enabled: true };
    expect(await audited(one)).toEqual([
      ['policy.put', '1', { ...common, enabled: true, models_added: ['a', 'b'] }],
      [
        'policy.put',
        '1',
        { ...common, enabled: false, old_enabled: true, models_added: ['c'], models_removed: ['a'] },
      ],
      ['policy.put', '2', { ...cents, threshold_cents: 5 }],
      ['policy.put', '2', { ...cents, threshold_cents: 7, old_threshold_cents: 5 }],
    ]);
    expect(await revisionOf(one)).toBe(4);
  });

  it('is nothing where it changes nothing', async () => {
    const one = await api.addOrganization();
    await put('approved_models', { config: MODELS }, one.adminKey);
    const [before, revision] = [await list(one.adminKey), await revisionOf(one)];
    expect((await put('approved_models', { config: MODELS, enabled: true }, one.adminKey)).status).toBe(200);
    expect(await list(one.adminKey)).toEqual(before);
    expect(await revisionOf(one)).toBe(revision);
    expect((await audited(one)).length).toBe(1);
  });
});

describe('a preview', () => {
  it('shows what a policy would flag of the newest events, makes no alert and stores no policy', async () => {
    const one = await api.addOrganization();
    await ingest(
      api,
      [
        anEvent({ request_id: 'r1', model: 'gpt-4o', cost_usd: 0.29 }),
        anEvent({ request_id: 'r2', model: 'gpt-4o-mini', cost_usd: 0.28999 }),
        anEvent({ request_id: 'r3', model: 'never-heard-of', cost_usd: undefined }),
      ],
      one.ingestKey,
    );
    const models = await preview('approved_models', { config: MODELS }, one.adminKey);
    expect(models.status).toBe(200);
    expect(models.body).toEqual({
      policy_type: 'approved_models',
      events: 3,
      oldest: expect.stringMatching(/Z$/),
      flagged: 2,
      unjudged: { prompts_not_stored: 0, environment_unknown: 0, key_unknown: 0, cost_unknown: 0 },
      flagged_events: [expect.anything(), expect.anything()],
    });
    const [flagged] = models.body.flagged_events;
    expect(flagged).toEqual({
      event_id: expect.stringMatching(/^evt_/),
      timestamp: expect.stringMatching(/Z$/),
      severity: 'medium',
      message: expect.stringContaining('is not among the approved models'),
      details: { model: expect.stringMatching(/gpt-4o-mini|never-heard-of/) },
    });
    const cents = await preview(
      'approval_required_threshold_cents',
      { config: { threshold_cents: 29 } },
      one.adminKey,
    );
    expect(cents.body).toMatchObject({ events: 3, flagged: 1, unjudged: { cost_unknown: 1 } });
    expect(cents.body.flagged_events[0].details).toEqual({ cost_cents: 29, threshold_cents: 29 });
    expect(await list(one.adminKey)).toEqual([]);
    const { rows } = await api.database.superuser.query('select 1 from alerts where org_id = $1', [
      one.orgId,
    ]);
    expect(rows).toEqual([]);
    expect(await audited(one)).toEqual([
      ['policy.previewed', null, { policy_type: 'approved_models', events: 3, flagged: 2 }],
      ['policy.previewed', null, { policy_type: 'approval_required_threshold_cents', events: 3, flagged: 1 }],
    ]);
  });

  it('finds prompts again in what is stored of spans and of wrappers’ events, and counts what is not stored', async () => {
    const one = await api.addOrganization();
    const payload = {
      messages: [
        { role: 'user', content: 'hello' },
        { role: 'user', content: 'my SECRET' },
      ],
    };
    await ingest(api, [anEvent({ request_id: 'r1', payload }), anEvent({ request_id: 'r2' })], one.ingestKey);
    const span = aSpan({ 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'a secret' });
    const spans = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
    expect((await api.post('/api/v1/ingest/trace', spans, one.ingestKey)).status).toBe(202);
    const config = { regexes: ['(?=no)', '(?i)secret'] };
    const { body } = await preview('banned_patterns', { config }, one.adminKey);
    expect(body).toMatchObject({ events: 3, flagged: 2, unjudged: { prompts_not_stored: 1 } });
    expect(body.warnings.map(({ path }: { path: string }) => path)).toEqual(['config.regexes[0]']);
    expect(
      body.flagged_events.map(({ details }: { details: object }) => JSON.stringify(details)).sort(),
    ).toEqual(['{"pattern_index":1,"match_offset":2}', '{"pattern_index":1,"match_offset":3}']);
    expect(JSON.stringify(body)).not.toMatch(/SECRET|a secret/);
  });

  it('judges keys by the prefix that the call reported, else by that of the key that it came with', async () => {
    const one = await api.addOrganization();
    await ingest(
      api,
      [
        anEvent({ request_id: 'r1', _service: { environment: 'staging', api_key_prefix: 'sk-live-1' } }),
        anEvent({ request_id: 'r2', _service: { environment: 'prod', api_key_prefix: 'sk-live-1' } }),
        anEvent({ request_id: 'r3', _service: { api_key_prefix: 'sk-live-1' } }),
        anEvent({ request_id: 'r4', _service: { environment: 'staging' } }),
      ],
      one.ingestKey,
    );
    const ask = async (prefix: string) => {
      const config = { prod_key_prefixes: [prefix], allowed_envs: ['prod'] };
      const { body } = await preview('key_environment_check', { config }, one.adminKey);
      return { ...body, details: body.flagged_events.map(({ details }: { details: object }) => details) };
    };
    expect(await ask('sk-live')).toMatchObject({
      events: 4,
      flagged: 1,
      unjudged: { environment_unknown: 1 },
      details: [{ environment: 'staging', key_prefix: 'sk-live-1' }],
    });
    const prefix = one.ingestKey.slice(0, 'tu_live_0123456789'.length);
    expect(await ask('tu_live_')).toMatchObject({
      flagged: 1,
      unjudged: { environment_unknown: 0 },
      details: [{ environment: 'staging', key_prefix: prefix }],
    });
  });

  it('of patterns asks for the scope that reads prompts; of anything else, and of a put, it does not', async () => {
    const one = await api.addOrganization();
    const key = await api.addKey(one.orgId, 'admin', { scopes: ['policies:write', 'policies:read'] });
    const refused = await preview('banned_patterns', { config: { regexes: ['x'] } }, key);
    expect({ status: refused.status, message: refused.body.message }).toEqual({
      status: 403,
      message: 'the key lacks the scope payloads:read',
    });
    expect((await preview('approved_models', { config: MODELS }, key)).status).toBe(200);
    expect((await put('banned_patterns', { config: { regexes: ['x'] } }, key)).status).toBe(200);
  });

  it('looks at the newest thousand, shows a hundred, and flags nothing for what is switched off', async () => {
    const one = await api.addOrganization();
    const events = Array.from({ length: 1_020 }, (_, at) =>
      anEvent({ request_id: `r${at}`, model: 'other' }),
    );
    await ingest(api, events, one.ingestKey);
    const { body } = await preview('approved_models', { config: MODELS }, one.adminKey);
    expect([body.events, body.flagged, body.flagged_events.length]).toEqual([1_000, 1_000, 100]);
    const off = await preview('approved_models', { config: MODELS, enabled: false }, one.adminKey);
    expect([off.body.events, off.body.flagged]).toEqual([1_000, 0]);
  });
});
