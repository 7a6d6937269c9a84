import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotateSecrets } from '../../../bin/commands/secrets.js';
import { findUuid } from '../../../domain/ids.js';
import { parseConfig } from '../../../platform/config.js';
import { replaceSecretKeys, secretKeyFile } from '../../../platform/embedded/secretKeyFile.js';
import { createLogger } from '../../../platform/logger.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';
import { startAnthropicBilling } from '../../fakes/billing/anthropicBilling.js';
import { startOpenAiBilling } from '../../fakes/billing/openAiBilling.js';
import type { BillingFake } from '../../fakes/billing/reportServer.js';
import { startTestApi, type TestAnswer, type TestApi, type TestOrganization } from '../../support/api.js';
import { testConnectors } from '../../support/connectors.js';
import {
  ADMIN_KEYS,
  aConnection,
  anthropicTruth,
  CONNECTIONS,
  openaiTruth,
} from '../../support/fetchedBills.js';
import { makeTestFolder } from '../../support/testFolder.js';

const OTHER_KEY = 'sk-admin-AnotherPlantedSecret0123456789';
const folder = makeTestFolder('connections');
const lines: string[] = [];
let openai: BillingFake;
let anthropic: BillingFake;
let api: TestApi;
let keyFile: string;
/** The API under test: the first one, or one that was started with the present keys. */
let base: string;

beforeAll(async () => {
  openai = await startOpenAiBilling({
    truth: openaiTruth('org-first'),
    adminKey: [ADMIN_KEYS.openai, OTHER_KEY],
  });
  anthropic = await startAnthropicBilling({
    truth: anthropicTruth('anthropic-first'),
    adminKey: ADMIN_KEYS.anthropic,
  });
  keyFile = secretKeyFile(folder);
  writeFileSync(keyFile, `${makeSecretKey()}\n`);
  api = await startTestApi({
    connectors: testConnectors({ openai: openai.origin, anthropic: anthropic.origin }),
    secretKeys: SecretKeys.fromFile(keyFile),
    logger: createLogger({ name: 'api', level: 'trace', destination: { write: (line) => lines.push(line) } }),
  });
  base = api.baseUrl;
});

/** Runs `work` as after a restart, without the former process's cached keys. */
async function restarted(work: () => Promise<void>): Promise<void> {
  const another = await startTestApi({
    database: api.database,
    connectors: testConnectors({ openai: openai.origin, anthropic: anthropic.origin }),
    secretKeys: SecretKeys.fromFile(keyFile),
  });
  base = another.baseUrl;
  await work().finally(async () => {
    base = api.baseUrl;
    await another.close();
  });
}

afterAll(async () => {
  await api?.close();
  await openai?.close();
  await anthropic?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function call(
  method: string,
  path: string,
  body?: unknown,
  key: string = api.adminKey,
): Promise<Pick<TestAnswer, 'status' | 'headers' | 'body'>> {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

/**
 * Every connection of this file has a separate account, because an account can be connected only once on an instance.
 */
let accounts = 0;
async function connect(organization: TestOrganization = api, more: object = {}) {
  accounts += 1;
  openai.setTruth(openaiTruth(`org-${accounts}`));
  return call('POST', CONNECTIONS, aConnection('openai', more), organization.adminKey);
}

const issueOf = (answer: { body: { errors?: { field: string; message: string }[] } }) =>
  answer.body.errors?.[0];

describe('connecting', () => {
  it('answers what was made, without the credentials, and a sync of 90 days that is queued', async () => {
    const answer = await connect();
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      id: expect.stringMatching(/^con_[0-9a-f]{32}$/),
      status: 'connecting',
      provider_account_id: `org-${accounts}`,
      has_credentials: true,
      sync: { kind: 'billing_sync', trigger: 'connect', status: 'queued', connection_id: answer.body.id },
    });
    expect(answer.headers.get('location')).toBe(`${CONNECTIONS}/${answer.body.id}`);
    expect(JSON.stringify(answer.body)).not.toContain('sk-admin');
    const read = await api.get(`${CONNECTIONS}/${answer.body.id}`);
    const { sync, ...rest } = answer.body;
    expect(read.body).toEqual(rest);
    expect((await api.get(sync.status_url)).body).toEqual(sync);
    expect((await api.get(answer.body.runs_url)).body).toMatchObject({ count: 1, runs: [sync] });
    expect((await api.get(`${CONNECTIONS}?limit=1`)).body).toMatchObject({ count: 1, connections: [rest] });
  });

  it('requires the account where the provider does not state it, and refuses another one', async () => {
    const anonymous = openaiTruth('org-nobody');
    for (const buckets of Object.values(anonymous.reports))
      for (const bucket of buckets)
        bucket.results = bucket.results.map((result) => ({ ...result, organization_id: null }));
    openai.setTruth(anonymous);
    const refused = await call('POST', CONNECTIONS, aConnection('openai'));
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_body']);
    expect(issueOf(refused)).toMatchObject({ in: 'body', field: 'settings.account' });
    const named = { settings: { account: 'org-named-by-hand' } };
    expect((await call('POST', CONNECTIONS, aConnection('openai', named))).body).toMatchObject({
      provider_account_id: 'org-named-by-hand',
    });
    const wrong = await connect(api, { settings: { account: 'org-somebody-else' } });
    expect([wrong.status, issueOf(wrong)?.field]).toEqual([400, 'settings.account']);
    expect(issueOf(wrong)?.message).toContain(`org-${accounts}`);
  });

  it('with credentials that are refused names them and the remedy, and stores nothing', async () => {
    const before = (await api.get(CONNECTIONS)).body.count;
    const wrong = aConnection('openai', { credentials: { admin_key: 'sk-proj-WrongPlantedSecret' } });
    const answer = await call('POST', CONNECTIONS, wrong);
    expect([answer.status, answer.body.code, issueOf(answer)?.field]).toEqual([
      400,
      'invalid_body',
      'credentials.admin_key',
    ]);
    expect(issueOf(answer)?.message).toContain('api.usage.read');
    expect((await api.get(CONNECTIONS)).body.count).toBe(before);
  });

  it('while the provider is away answers 503 with when to come back, and stores nothing', async () => {
    const before = (await api.get(CONNECTIONS)).body.count;
    const over = openai.faults.inject({ kind: 'outage', status: 503, retryAfter: '7' });
    const answer = await call('POST', CONNECTIONS, aConnection('openai'));
    expect([answer.status, answer.body.code, answer.headers.get('retry-after')]).toEqual([
      503,
      'provider_unavailable',
      '7',
    ]);
    over();
    expect((await api.get(CONNECTIONS)).body.count).toBe(before);
  });

  it.each([
    [{ provider: 'mistral' }, 'provider', /openai, anthropic/],
    [{ provider: 'nobody' }, 'provider', /openai, anthropic/],
    [{ credentials: {} }, 'credentials.admin_key', /is required/],
    [{ credentials: { admin_key: 'sk-admin-x', api_key: 'x' } }, 'credentials.api_key', /is not known/],
    [{ settings: { base_url: 'http://10.0.0.1' } }, 'settings.base_url', /base_url/],
    [{ settings: { scope: { workspaces: ['w'] } } }, 'settings.scope.workspaces', /narrowed by projects/],
    [{ settings: { scope: { projects: [] } } }, 'settings.scope.projects', /at least one/],
    [{ settings: { scope: { projects: ['a,b'] } } }, 'settings.scope.projects.0', /an id of the provider/],
    [{ name: ' ' }, 'name', /must not be empty/],
    [{ status: 'active' }, 'status', /status/],
  ])('with %j is refused, naming the field', async (more, field, message) => {
    const answer = await call('POST', CONNECTIONS, aConnection('openai', more));
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_body']);
    expect(answer.body.errors.map((issue: { field: string }) => issue.field)).toContain(field);
    expect(JSON.stringify(answer.body.errors)).toMatch(message);
  });
});

describe('an account', () => {
  it('is connected once: a second key of it, the same or another organization, is refused without a name', async () => {
    const owner = await api.addOrganization('Owner, Inc.');
    const first = await connect(owner, { name: 'the first' });
    const again = aConnection('openai', { credentials: { admin_key: OTHER_KEY } });
    const own = await call('POST', CONNECTIONS, again, owner.adminKey);
    expect([own.status, own.body.code]).toEqual([409, 'account_already_connected']);
    expect(own.body.message).toContain('"the first"');
    const stranger = await api.addOrganization();
    const foreign = await call('POST', CONNECTIONS, again, stranger.adminKey);
    expect([foreign.status, foreign.body.code]).toEqual([409, 'account_already_connected']);
    for (const word of ['the first', 'Owner', owner.orgId, first.body.id])
      expect(JSON.stringify(foreign.body)).not.toContain(word);
    await call('DELETE', `${CONNECTIONS}/${first.body.id}`, undefined, owner.adminKey);
    expect((await call('POST', CONNECTIONS, again, stranger.adminKey)).status).toBe(201);
  });

  it('that many requests connect at once is connected by one', async () => {
    accounts += 1;
    openai.setTruth(openaiTruth(`org-${accounts}`));
    const organizations = await Promise.all(Array.from({ length: 6 }, () => api.addOrganization()));
    const answers = await Promise.all(
      organizations.map(({ adminKey }) => call('POST', CONNECTIONS, aConnection('openai'), adminKey)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  it('is shared by connections whose scopes share nothing, and a changed scope is held to the same', async () => {
    const scope = (...projects: string[]) => ({ settings: { scope: { projects } } });
    const a = await connect(api, scope('proj_a'));
    const rest = (more: object) => call('POST', CONNECTIONS, aConnection('openai', more));
    expect((await rest(scope('proj_b', 'proj_a'))).status).toBe(409);
    expect((await rest({})).status).toBe(409);
    const b = await rest(scope('proj_b'));
    expect(b.status).toBe(201);
    const path = `${CONNECTIONS}/${b.body.id}`;
    expect((await call('PATCH', path, scope('proj_a'))).body.code).toBe('account_already_connected');
    expect((await call('PATCH', path, { settings: {} })).status).toBe(409);
    const moved = await call('PATCH', path, scope('proj_c'));
    expect(moved.body).toMatchObject({
      settings: { scope: { projects: ['proj_c'] } },
      sync: { status: 'queued' },
    });
    expect((await call('DELETE', `${CONNECTIONS}/${a.body.id}`)).status).toBe(204);
    expect((await call('PATCH', path, scope('proj_a'))).status).toBe(200);
  });
});

describe('a connection', () => {
  it('of another organization is answered on every path like a missing one', async () => {
    const { body } = await connect();
    const stranger = await api.addOrganization();
    const strip = ({ request_id: _r, instance: _i, ...problem }: Record<string, unknown>) => problem;
    const ways: [string, string, unknown?][] = [
      ['GET', ''],
      ['PATCH', '', { name: 'mine' }],
      ['DELETE', ''],
      ['POST', '/test', {}],
      ['POST', '/sync', {}],
      ['GET', '/runs'],
      ['GET', `/runs/${body.sync.id}`],
    ];
    for (const [method, suffix, payload] of ways) {
      const path = (id: string) => `${CONNECTIONS}/${id}${suffix}`;
      const foreign = await call(method, path(body.id), payload, stranger.adminKey);
      const unknown = await call(method, path(`con_${'0'.repeat(32)}`), payload, stranger.adminKey);
      expect(foreign.status, `${method} ${suffix}`).toBe(404);
      expect(strip(foreign.body)).toEqual(strip(unknown.body));
    }
    expect((await api.get(CONNECTIONS, stranger.adminKey)).body.connections).toEqual([]);
    expect((await api.get(`${CONNECTIONS}/${body.id}`)).body.name).toBe('our openai');
    const own = await connect(stranger);
    const mixed = await api.get(`${CONNECTIONS}/${own.body.id}/runs/${body.sync.id}`, stranger.adminKey);
    expect(mixed.status).toBe(404);
  });

  it('is read by members and changed by admins', async () => {
    const { body } = await connect();
    const member = await api.addKey(api.orgId, 'member');
    expect((await api.get(`${CONNECTIONS}/${body.id}`, member)).status).toBe(200);
    for (const [method, suffix] of [
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/test'],
      ['POST', '/sync'],
    ] as const) {
      const answer = await call(method, `${CONNECTIONS}/${body.id}${suffix}`, {}, member);
      expect([answer.status, answer.body.message]).toEqual([403, 'admin role required']);
    }
  });

  it('is tested check by check, and a missing permission is listed with where to grant it', async () => {
    const { body } = await connect();
    const path = `${CONNECTIONS}/${body.id}/test`;
    expect((await call('POST', path, {})).body).toMatchObject({ ok: true });
    const over = openai.faults.inject({ kind: 'denied', report: 'completions' });
    const { status, body: tried } = await call('POST', path, {});
    over();
    expect([status, tried.ok]).toEqual([200, false]);
    const failed = tried.checks.filter(({ ok }: { ok: boolean }) => !ok);
    expect(failed).toMatchObject([{ name: 'usage', detail: expect.stringContaining('api.usage.read') }]);
  });

  it('has one sync at a time, and answers further requests with it', async () => {
    const { body } = await connect();
    const again = await call('POST', `${CONNECTIONS}/${body.id}/sync`, {});
    expect([again.status, again.body.existing, again.body.id]).toEqual([202, true, body.sync.id]);
    expect(again.headers.get('location')).toBe(body.sync.status_url);
  });

  it('takes other credentials of its account, and none of another', async () => {
    const { body } = await connect();
    const path = `${CONNECTIONS}/${body.id}`;
    const changed = await call('PATCH', path, { name: 'renamed', credentials: { admin_key: OTHER_KEY } });
    expect(changed.body).toMatchObject({ name: 'renamed', provider_account_id: body.provider_account_id });
    openai.setTruth(openaiTruth('org-of-somebody-else'));
    const refused = await call('PATCH', path, { credentials: { admin_key: ADMIN_KEYS.openai } });
    expect([refused.status, refused.body.code]).toEqual([409, 'account_mismatch']);
    const account = await call('PATCH', path, { settings: { account: 'org-of-somebody-else' } });
    expect([account.status, account.body.code]).toEqual([409, 'account_mismatch']);
  });

  it('is paused and resumed', async () => {
    const { body } = await connect();
    const path = `${CONNECTIONS}/${body.id}`;
    expect((await call('PATCH', path, { paused: true })).body.status).toBe('paused');
    expect((await call('PATCH', path, { name: 'still paused' })).body.status).toBe('paused');
    expect((await call('PATCH', path, { paused: false })).body.status).toBe('connecting');
  });

  it('that has ended has no credentials, and is gone; its open sync is cancelled', async () => {
    const { body } = await connect();
    expect((await call('DELETE', `${CONNECTIONS}/${body.id}`)).status).toBe(204);
    expect((await call('DELETE', `${CONNECTIONS}/${body.id}`)).status).toBe(404);
    const { rows } = await api.database.superuser.query(
      `select ciphertext, c.status, r.status as run from billing_connections c join sync_runs r on r.connection_id = c.id where c.id = $1`,
      [findUuid('con', body.id)],
    );
    expect(rows).toEqual([{ ciphertext: null, status: 'ended', run: 'cancelled' }]);
  });
});

describe('/metrics', () => {
  it('counts connections by status and shows how long the one that waits longest has not been fetched', async () => {
    const text = await (await fetch(`${api.baseUrl}/metrics`)).text();
    expect(Number(/trueup_billing_connections\{status="connecting"\} (\d+)/.exec(text)?.[1])).toBeGreaterThan(
      3,
    );
    expect(text).toMatch(/trueup_billing_connections\{status="ended"\} 0/);
    expect(Number(/trueup_billing_sync_age_seconds ([\d.]+)/.exec(text)?.[1])).toBeGreaterThan(0);
  });
});

describe('credentials', () => {
  const config = () => parseConfig({ DATA_DIR: folder });
  const sealedWith = async (id: string) =>
    (
      await api.database.superuser.query('select secret_key_id from billing_connections where id = $1', [
        findUuid('con', id),
      ])
    ).rows[0].secret_key_id as string | null;
  const works = async (id: string) =>
    (await call('POST', `${CONNECTIONS}/${id}/test`, {})).body.ok as boolean;

  it('are sealed under a new key while the service runs, and still open', async () => {
    const { body } = await connect();
    const before = await sealedWith(body.id);
    const outcome = await rotateSecrets(config(), api.database.database, false);
    expect(outcome.isWhole).toBe(true);
    expect(await sealedWith(body.id)).not.toBe(before);
    expect(readFileSync(keyFile, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(await works(body.id)).toBe(true);
    const next = await connect();
    expect(await sealedWith(next.body.id)).toBe(await sealedWith(body.id));
  });

  it('of a rotation that was killed after its first step are finished by the next, under the key that it had made', async () => {
    const { body } = await connect();
    const [current = ''] = readFileSync(keyFile, 'utf8').trim().split('\n');
    const made = makeSecretKey();
    replaceSecretKeys(keyFile, [made, current]);
    expect(await works(body.id)).toBe(true);
    expect((await rotateSecrets(config(), api.database.database, false)).isWhole).toBe(true);
    expect(readFileSync(keyFile, 'utf8').trim()).toBe(made);
    expect(await works(body.id)).toBe(true);
  });

  it('whose key is lost produce one error, are kept until they are given up, and are then requested again', async () => {
    const { body } = await connect();
    const kept = readFileSync(keyFile, 'utf8').trim();
    replaceSecretKeys(keyFile, [makeSecretKey()]);
    // A running process has the key in memory; a new one cannot read it.
    expect(await works(body.id)).toBe(true);
    await restarted(async () => {
      const refused = await call('POST', `${CONNECTIONS}/${body.id}/test`, {});
      expect([refused.status, refused.body.code]).toEqual([503, 'secret_key_missing']);
      const outcome = await rotateSecrets(config(), api.database.database, false);
      const said = outcome.sentences.join(' ');
      expect([outcome.isWhole, said]).toEqual([false, expect.stringContaining('--forget-unreadable')]);
      const [made = ''] = readFileSync(keyFile, 'utf8').trim().split('\n');
      replaceSecretKeys(keyFile, [made, kept]);
      expect(await works(body.id)).toBe(true);
      replaceSecretKeys(keyFile, [made]);
    });
    await restarted(async () => {
      expect((await rotateSecrets(config(), api.database.database, true)).isWhole).toBe(true);
      const read = await call('GET', `${CONNECTIONS}/${body.id}`);
      expect(read.body).toMatchObject({
        has_credentials: false,
        status: 'failing',
        last_error: { code: 'credentials_missing' },
      });
      expect((await call('POST', `${CONNECTIONS}/${body.id}/sync`, {})).body.code).toBe(
        'credentials_missing',
      );
      openai.setTruth(openaiTruth(body.provider_account_id));
      const given = { credentials: { admin_key: OTHER_KEY } };
      expect((await call('PATCH', `${CONNECTIONS}/${body.id}`, given)).body.has_credentials).toBe(true);
      expect(await works(body.id)).toBe(true);
    });
  });

  it('of a database of one’s own are sealed under the first key that is set, and the older one may be removed', async () => {
    const { body } = await connect();
    const older = readFileSync(keyFile, 'utf8').trim().split('\n').join(',');
    const newer = makeSecretKey();
    const environment = { ...api.database.environment, TRUEUP_SECRET_KEY: `${newer},${older}` };
    const outcome = await rotateSecrets(parseConfig(environment), api.database.database, false);
    expect(outcome.sentences.join(' ')).toContain('may be taken out of it');
    expect(await sealedWith(body.id)).toBe(SecretKeys.of(newer).currentId);
    replaceSecretKeys(keyFile, [newer]);
    expect(await works(body.id)).toBe(true);
  });

  it('of another connection’s row do not open: what is sealed is bound to organization and connection', async () => {
    const [one, two] = [await connect(), await connect()];
    await api.database.superuser.query(
      `update billing_connections set ciphertext = (select ciphertext from billing_connections where id = $1) where id = $2`,
      [findUuid('con', one.body.id), findUuid('con', two.body.id)],
    );
    expect((await call('POST', `${CONNECTIONS}/${two.body.id}/test`, {})).body.code).toBe(
      'secret_key_missing',
    );
    expect(await works(one.body.id)).toBe(true);
  });

  it('are in no line of the log, in no table in the clear, and the key is in none either', async () => {
    const all = lines.join('');
    expect(lines.length).toBeGreaterThan(50);
    const { rows } = await api.database.superuser.query(
      `select string_agg(t::text, '') as text from (select c::text as t from billing_connections c union all select r::text from sync_runs r
         union all select p::text from billing_fetched_pages p union all select o::text from outbox o) t`,
    );
    const dump = `${all}${rows[0].text}`;
    for (const secret of [
      ADMIN_KEYS.openai,
      OTHER_KEY,
      'WrongPlantedSecret',
      ...readFileSync(keyFile, 'utf8').trim().split('\n'),
    ]) {
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(Buffer.from(secret).toString('hex'));
      expect(dump).not.toContain(Buffer.from(secret).toString('base64').replace(/=+$/, ''));
    }
  });
});
