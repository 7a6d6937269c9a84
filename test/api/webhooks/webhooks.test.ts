import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { publishMessages } from '../../../db/webhooks/webhookDeliveries.js';
import { cancelPendingDeliveries } from '../../../db/webhooks/webhookEndpoints.js';
import { findUuid } from '../../../domain/ids.js';
import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../../domain/webhooks/messages.js';
import { WEBHOOK_ENDPOINTS_MAX } from '../../../usecases/webhooks/endpoints.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { testOutbound } from '../../support/outbound.js';
import { aKey } from '../support/repeats.js';
import { type RawAnswer, sendJson } from '../support/requests.js';

const PATH = '/api/v1/webhook-endpoints';
const URL_OF_OURS = 'https://hooks.example.com/trueup';
const INSIDE = { address: '10.0.0.7', family: 4 };
const PUBLIC = { address: '93.184.215.14', family: 4 };

let api: TestApi;
/** Each test's own. */
let org: TestOrganization;

beforeAll(async () => {
  const resolve = async (host: string) => {
    if (host === 'unknown.example.com') throw new Error('ENOTFOUND');
    if (host === 'inside.example.com') return [INSIDE];
    return host === 'half-inside.example.com' ? [PUBLIC, INSIDE] : [PUBLIC];
  };
  api = await startTestApi({ outbound: testOutbound(['hooks.corp:8443', 'hooks.corp'], { resolve }) });
});
beforeEach(async () => {
  org = await api.addOrganization();
});
afterAll(() => api?.close());

const ask = (method: string, path: string, json?: unknown): Promise<RawAnswer> =>
  sendJson(api, { method, path: PATH + path, key: org.adminKey, json });

async function make(more: object = {}) {
  const answer = await ask('POST', '', { url: URL_OF_OURS, ...more });
  expect([answer.status, answer.body.detail]).toEqual([201, undefined]);
  return answer.body;
}

const revision = async (): Promise<number> => {
  const text = 'select rules_revision::int as revision from organizations where id = $1';
  return (await api.database.superuser.query(text, [org.orgId])).rows[0].revision;
};

/** Queues a message of this type, as the code that stores its cause does. */
const publish = (type: WebhookEventType) =>
  org.orgDb.transaction((inside) => publishMessages(inside, [{ id: randomUUID(), type, body: '{}' }]));

const statusesOf = async (id: string): Promise<string[]> =>
  (await ask('GET', `/${id}/deliveries`)).body.deliveries.map(
    ({ status, type }: { status: string; type: string }) => `${type} ${status}`,
  );

describe('a webhook endpoint', () => {
  it('is answered as it was made, with its secret this once', async () => {
    const { status, headers, body } = await ask('POST', '', {
      url: 'https://Hooks.Example.com/a?key=1#part',
      description: ' Alerts for the team ',
      event_types: ['gap_run.completed', 'alert.created', 'gap_run.completed'],
    });
    expect(status).toBe(201);
    const { secret, ...rest } = body;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(rest).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-f]{32}$/),
      format: 'standard',
      url: 'https://hooks.example.com/a?key=1',
      to: null,
      digest: 'none',
      description: 'Alerts for the team',
      event_types: ['alert.created', 'gap_run.completed'],
      enabled: true,
      disabled_reason: null,
      disabled_at: null,
      has_secret: true,
      last_delivered_at: null,
      last_failed_at: null,
      created_at: rest.created_at,
      updated_at: rest.created_at,
      created_by: expect.stringMatching(/^key_/),
    });
    expect(headers.location).toBe(`${PATH}/${rest.id}`);
    expect((await ask('GET', `/${rest.id}`)).body).toEqual(rest);
    const listed = await ask('GET', '');
    expect(listed.body.webhook_endpoints).toContainEqual(rest);
    expect(listed.bytes.toString()).not.toContain('whsec_');
  });

  it('has every type where it names none, and is made switched off where that is asked', async () => {
    expect(await make()).toMatchObject({ event_types: [], enabled: true, description: '' });
    const off = await make({ enabled: false, event_types: [] });
    expect(off).toMatchObject({ enabled: false, disabled_reason: 'requested' });
    expect(off.disabled_at).toBe(off.created_at);
  });

  it('keeps its secret sealed: neither its row nor the audit log holds it, and the log no path of its address', async () => {
    const { secret, id } = await make({ url: 'https://hooks.example.com/T0K3N' });
    const query = 'select t::text as line, ciphertext from webhook_endpoints t where org_id = $1';
    const { rows } = await api.database.superuser.query(query, [org.orgId]);
    expect(rows[0].line).not.toContain(secret);
    expect(rows[0].ciphertext.includes(Buffer.from(secret))).toBe(false);
    await ask('POST', `/${id}/rotate-secret`, {});
    await ask('PATCH', `/${id}`, { url: 'https://hooks.example.com/T0K3N/2' });
    await ask('DELETE', `/${id}`);
    const log = await sendJson(api, { path: '/api/v1/audit-log', key: org.adminKey });
    expect(log.body.records.map(({ action }: { action: string }) => action)).toEqual([
      'webhook.removed',
      'webhook.changed',
      'webhook.secret_rotated',
      'webhook.created',
    ]);
    for (const hidden of ['whsec_', 'T0K3N']) expect(log.bytes.toString()).not.toContain(hidden);
  });

  it('is made once for one Idempotency-Key, and the repeat shows the same secret', async () => {
    const headers = { 'idempotency-key': aKey(), authorization: `Bearer ${org.adminKey}` };
    const post = async () => {
      const body = JSON.stringify({ url: URL_OF_OURS });
      const type = { 'content-type': 'application/json' };
      const answer = await fetch(api.baseUrl + PATH, {
        method: 'POST',
        headers: { ...headers, ...type },
        body,
      });
      return [answer.status, await answer.json()];
    };
    const first = await post();
    expect(await post()).toEqual(first);
    expect((await ask('GET', '')).body.count).toBe(1);
  });

  it('is listed with others, the newest first, by pages', async () => {
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.unshift((await make()).id);
    const seen: string[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null && pages < 9; pages += 1) {
      const words = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { body }: RawAnswer = await ask('GET', `?limit=2${words}`);
      seen.push(...body.webhook_endpoints.map(({ id }: { id: string }) => id));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(made);
  });

  it(`is one of ${WEBHOOK_ENDPOINTS_MAX} at most, also where two are made at once; removing one makes room`, async () => {
    const { id } = await make();
    await api.database.superuser.query(
      `insert into webhook_endpoints (org_id, id, url, description, status, created_by)
       select org_id, gen_random_uuid(), url, '', 'active', 'test' from webhook_endpoints, generate_series(3, $2) where org_id = $1`,
      [org.orgId, WEBHOOK_ENDPOINTS_MAX],
    );
    const answers = await Promise.all([1, 2, 3].map(() => ask('POST', '', { url: URL_OF_OURS })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 413, 413]);
    expect(answers.find(({ status }) => status === 413)?.body.code).toBe('too_many_items');
    await ask('DELETE', `/${id}`);
    await make();
  });
});

/** Texts that no endpoint may have as its address (S-02): each is refused when it is entered. */
const REFUSED = [
  'http://127.0.0.1/',
  'http://127.0.0.1:80/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[fe80::1]/',
  'http://[fd00::1]/',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://0177.0.0.1/',
  'http://127.1/',
  'http://①②⑦.0.0.1/',
  'http://0.0.0.0/',
  'http://169.254.169.254/latest/meta-data/',
  'http://10.1.2.3/',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://100.64.0.1/',
  'http://localhost/',
  'http://localhost./',
  'http://LOCALHOST/',
  'http://a.localhost/',
  'http://printer.local/',
  'http://metadata.google.internal/',
  'http://intranet/',
  'https://user@hooks.example.com/',
  'https://user:password@hooks.example.com/',
  'https://hooks.example.com@127.0.0.1/',
  'https://hooks.example.com:5432/',
  'http://hooks.example.com:8080/',
  'https://hooks.corp:9443/',
  'gopher://hooks.example.com/',
  'file:///etc/passwd',
  'ftp://hooks.example.com/',
  'javascript:alert(1)',
  'hooks.example.com/hook',
  '//hooks.example.com/hook',
  '',
  'https://',
  'https://inside.example.com/',
  'https://half-inside.example.com/',
  'https://unknown.example.com/',
  `https://hooks.example.com/${'a'.repeat(2_048)}`,
  `https://hooks.example.com/${'ü'.repeat(1_000)}`,
];

describe('the address of a webhook endpoint', () => {
  it.each(REFUSED)('is not %s: neither when it is made nor when it is changed', async (url) => {
    const { id } = await make();
    const before = (await ask('GET', `/${id}`)).body;
    for (const answer of [await ask('POST', '', { url }), await ask('PATCH', `/${id}`, { url })]) {
      const { status, body } = answer;
      expect([status, body.code, body.errors?.[0]?.field]).toEqual([400, 'invalid_body', 'url']);
      expect(body.detail).not.toContain(INSIDE.address);
    }
    expect((await ask('GET', `/${id}`)).body).toEqual(before);
  });

  it('may lie inside where the operator names its host, at the port that is named', async () => {
    expect((await make({ url: 'https://hooks.corp/a' })).url).toBe('https://hooks.corp/a');
    expect((await make({ url: 'http://hooks.corp:8443/a' })).url).toBe('http://hooks.corp:8443/a');
  });

  it('is kept in the form in which it is asked, up to 2,048 characters', async () => {
    const longest = `https://hooks.example.com/${'a'.repeat(2_048 - 26)}`;
    expect((await make({ url: longest })).url).toBe(longest);
    expect((await make({ url: 'HTTPS://hooks.example.com:443/a b' })).url).toBe(
      'https://hooks.example.com/a%20b',
    );
  });
});

describe('a body', () => {
  it.each([
    ['url', {}],
    ['url', { url: 7 }],
    ['event_types.0', { url: URL_OF_OURS, event_types: ['alert.made'] }],
    ['event_types.0', { url: URL_OF_OURS, event_types: ['webhook.test'] }],
    ['event_types', { url: URL_OF_OURS, event_types: 'alert.created' }],
    ['description', { url: URL_OF_OURS, description: 'x'.repeat(257) }],
    ['description', { url: URL_OF_OURS, description: 'a\u0000b' }],
    ['enabled', { url: URL_OF_OURS, enabled: 'yes' }],
    ['secret', { url: URL_OF_OURS, secret: 'whsec_AAAA' }],
  ])('whose %s is wrong is refused with its name', async (field, json) => {
    const { status, body } = await ask('POST', '', json);
    expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_body', field]);
  });

  it.each([-1, 604_801, 1.5, '60'])(
    'of a rotation has a grace period in seconds up to a week, not %s',
    async (grace) => {
      const { id } = await make();
      const { status, body } = await ask('POST', `/${id}/rotate-secret`, { grace_seconds: grace });
      expect([status, body.errors[0].field]).toEqual([400, 'grace_seconds']);
    },
  );
});

describe('a change', () => {
  it('keeps what it does not name, and notifies ingest that the receivers changed', async () => {
    const before = await revision();
    const { secret: _, ...made } = await make({ description: 'one', event_types: ['alert.created'] });
    const revisions = [before, await revision()];
    const changed = await ask('PATCH', `/${made.id}`, { url: 'https://other.example.com/' });
    expect(changed.body).toEqual({
      ...made,
      url: 'https://other.example.com/',
      updated_at: changed.body.updated_at,
    });
    revisions.push(await revision());
    await ask('PATCH', `/${made.id}`, { event_types: [], description: '' });
    revisions.push(await revision());
    expect((await ask('GET', `/${made.id}`)).body).toMatchObject({
      url: 'https://other.example.com/',
      event_types: [],
      description: '',
    });
    await ask('DELETE', `/${made.id}`);
    revisions.push(await revision());
    expect(new Set(revisions).size).toBe(revisions.length);
  });

  it('that names nothing, or only present values, changes nothing and leaves no line in the log', async () => {
    const { secret: _, ...made } = await make({ description: 'ours' });
    const { url, description, event_types, enabled } = made;
    for (const same of [{}, { enabled }, { url, description, event_types, enabled }]) {
      const { status, body } = await ask('PATCH', `/${made.id}`, same);
      expect([status, body]).toEqual([200, made]);
    }
    const changed = await ask('PATCH', `/${made.id}`, { enabled, description: 'theirs' });
    expect(changed.body).toMatchObject({ ...made, description: 'theirs', updated_at: expect.any(String) });
    const log = await sendJson(api, { path: '/api/v1/audit-log', key: org.adminKey });
    expect(log.body.records.map(({ action }: { action: string }) => action)).toEqual([
      'webhook.changed',
      'webhook.created',
    ]);
  });

  it('of its types decides from then on what it is sent', async () => {
    const all = await make();
    const some = await make({ event_types: ['alert.created'] });
    for (const type of WEBHOOK_EVENT_TYPES) await publish(type);
    const newestFirst = [...WEBHOOK_EVENT_TYPES].reverse();
    expect(await statusesOf(all.id)).toEqual(newestFirst.map((type) => `${type} pending`));
    expect(await statusesOf(some.id)).toEqual(['alert.created pending']);
    await ask('PATCH', `/${some.id}`, { event_types: ['gap_run.completed'] });
    for (const type of WEBHOOK_EVENT_TYPES) await publish(type);
    expect(await statusesOf(some.id)).toEqual(['gap_run.completed pending', 'alert.created pending']);
  });

  it('switches off: what waits is cancelled and nothing more comes, until it is switched on', async () => {
    const { id } = await make();
    await publish('alert.created');
    const off = await ask('PATCH', `/${id}`, { enabled: false });
    expect(off.body).toMatchObject({ enabled: false, disabled_reason: 'requested' });
    expect(off.body.disabled_at).toBe(off.body.updated_at);
    await publish('alert.created');
    expect(await statusesOf(id)).toEqual(['alert.created cancelled']);
    // Another change while it is off leaves since when and why as they are.
    const still = await ask('PATCH', `/${id}`, { enabled: false, description: 'off' });
    expect(still.body).toMatchObject({ enabled: false, disabled_at: off.body.disabled_at });
    const on = await ask('PATCH', `/${id}`, { enabled: true });
    expect(on.body).toMatchObject({ enabled: true, disabled_reason: null, disabled_at: null });
    await publish('alert.created');
    expect(await statusesOf(id)).toEqual(['alert.created pending', 'alert.created cancelled']);
  });

  it('switches on in time: who meant to cancel because it was off cancels nothing any more', async () => {
    const { id } = await make();
    await publish('alert.created');
    expect(await cancelPendingDeliveries(org.orgDb, findUuid('whk', id) ?? '')).toBe(0);
    expect(await statusesOf(id)).toEqual(['alert.created pending']);
  });

  it('enables an endpoint again that its receiver had reported as gone', async () => {
    const { id } = await make();
    await api.database.superuser.query(
      `update webhook_endpoints set status = 'disabled', disabled_reason = 'gone', disabled_at = now() where org_id = $1`,
      [org.orgId],
    );
    expect((await ask('GET', `/${id}`)).body).toMatchObject({
      enabled: false,
      disabled_reason: 'gone',
    });
    const still = await ask('PATCH', `/${id}`, { enabled: false });
    expect(still.body.disabled_reason).toBe('gone');
    const { body } = await ask('PATCH', `/${id}`, { enabled: true });
    expect(body).toMatchObject({ enabled: true, disabled_reason: null, disabled_at: null });
  });
});

describe('a removal', () => {
  it('erases the secret, cancels what waits, and is final', async () => {
    const { id } = await make();
    await publish('alert.created');
    const [delivery] = (await ask('GET', `/${id}/deliveries`)).body.deliveries;
    expect((await ask('DELETE', `/${id}`)).status).toBe(204);
    const { rows } = await api.database.superuser.query(
      `select e.ciphertext, e.secret_key_id, d.status from webhook_endpoints e
       join webhook_deliveries d on d.org_id = e.org_id and d.endpoint_id = e.id where e.org_id = $1`,
      [org.orgId],
    );
    expect(rows).toEqual([{ ciphertext: null, secret_key_id: null, status: 'cancelled' }]);
    const after = await Promise.all([
      ask('GET', `/${id}`),
      ask('PATCH', `/${id}`, { enabled: true }),
      ask('DELETE', `/${id}`),
      ask('POST', `/${id}/rotate-secret`, {}),
      ask('POST', `/${id}/test`),
      ask('GET', `/${id}/deliveries`),
      ask('POST', `/deliveries/${delivery.id}/redeliver`),
    ]);
    expect(after.map(({ status, body }) => `${status} ${body.code}`)).toEqual(
      after.map(() => '404 not_found'),
    );
    expect((await ask('GET', '')).body.count).toBe(0);
    await publish('alert.created');
    const left = await api.database.superuser.query('select from webhook_messages where org_id = $1', [
      org.orgId,
    ]);
    expect(left.rowCount).toBe(1);
  });
});
