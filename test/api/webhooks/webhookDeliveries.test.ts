import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { rotateSecrets } from '../../../bin/commands/secrets.js';
import { findMissingKeySentence } from '../../../bin/wiring/requirements.js';
import { publishMessages } from '../../../db/webhooks/webhookDeliveries.js';
import { findUuid } from '../../../domain/ids.js';
import { messageBody, type WebhookEventType } from '../../../domain/webhooks/messages.js';
import { ATTEMPTS_SHOWN_MAX } from '../../../domain/webhooks/retrySchedule.js';
import { parseConfig } from '../../../platform/config.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { testOutbound } from '../../support/outbound.js';
import {
  answering,
  type ReceivedMessage,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../support/webhookReceiver.js';
import { type RawAnswer, sendJson } from '../support/requests.js';

const PATH = '/api/v1/webhook-endpoints';
const OLD = makeSecretKey();
const NEW = makeSecretKey();

let receiver: WebhookReceiver;
let api: TestApi;
/** The API under test: the first one, or a process with other secret keys. */
let asked: TestApi;
/** Each test's own. */
let org: TestOrganization;

beforeAll(async () => {
  receiver = await startWebhookReceiver();
  api = await startTestApi({ outbound: testOutbound([receiver.host]), secretKeys: SecretKeys.of(OLD) });
  asked = api;
});
beforeEach(async () => {
  org = await api.addOrganization();
  receiver.received.length = 0;
  receiver.answerWith(answering(204));
});
afterAll(async () => {
  await api?.close();
  await receiver?.close();
});

const ask = (method: string, path: string, json?: unknown, who = org): Promise<RawAnswer> =>
  sendJson(asked, { method, path: PATH + path, key: who.adminKey, json });

async function make(more: object = {}): Promise<{ id: string; secret: string }> {
  const { status, body } = await ask('POST', '', { url: receiver.url, ...more });
  expect(status).toBe(201);
  return body;
}

const test = async (id: string) => (await ask('POST', `/${id}/test`)).body;
const deliveriesOf = async (id: string, query = '') =>
  (await ask('GET', `/${id}/deliveries${query}`)).body.deliveries;

/** Parses a message as a receiver with this secret does; throws when its signature is invalid. */
const read = (secret: string, { body, headers }: ReceivedMessage) =>
  new Webhook(secret).verify(body, headers as Record<string, string>);

function believes(secret: string, message: ReceivedMessage): boolean {
  try {
    read(secret, message);
    return true;
  } catch {
    return false;
  }
}

const publish = (type: WebhookEventType, id = randomUUID()) =>
  org.orgDb.transaction((inside) => publishMessages(inside, [{ id, type, body: messageBody(type, '', {}) }]));

/** Ends every delivery of the organization as if its attempts were spent. */
const giveUpAll = () =>
  api.database.superuser.query(
    `update webhook_deliveries set status = 'failed', attempts = 10, next_attempt_at = null, finished_at = now(), last_error = 'none' where org_id = $1`,
    [org.orgId],
  );

const wakesOf = async (id: string): Promise<number> => {
  const text = `select from outbox where org_id = $1 and kind = 'webhook.deliver' and subject_id = $2`;
  return (await api.database.superuser.query(text, [org.orgId, findUuid('whk', id)])).rowCount ?? 0;
};

describe('a test message', () => {
  it('comes at once, signed as receivers verify it, and its answer is shown and logged', async () => {
    const { id, secret } = await make();
    receiver.answerWith((_message, response) => void response.writeHead(200).end('thanks'));
    const answer = await test(id);
    expect(answer).toEqual({
      ok: true,
      http_status: 200,
      duration_ms: expect.any(Number),
      error: null,
      answer: 'thanks',
      delivery_id: expect.stringMatching(/^dlv_[0-9a-f]{32}$/),
      message_id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
    });
    const [message] = receiver.received as [ReceivedMessage];
    expect(message.path).toBe('/hook');
    expect(message.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': answer.message_id,
    });
    expect(read(secret, message)).toEqual({
      type: 'webhook.test',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: { webhook_endpoint_id: id },
    });
    const [delivery] = await deliveriesOf(id);
    expect(delivery).toMatchObject({
      id: answer.delivery_id,
      message_id: answer.message_id,
      webhook_endpoint_id: id,
      type: 'webhook.test',
      status: 'delivered',
      attempts_made: 1,
      next_attempt_at: null,
      last_status: 200,
      last_error: null,
    });
    expect(delivery.attempts).toEqual([
      {
        number: 1,
        started_at: delivery.created_at,
        duration_ms: answer.duration_ms,
        http_status: 200,
        error: null,
        answer: 'thanks',
      },
    ]);
  });

  it('is not believed by a receiver with another secret, nor with other content', async () => {
    const { id, secret } = await make();
    const other = await make();
    await test(id);
    const [message] = receiver.received as [ReceivedMessage];
    expect(() => read(other.secret, message)).toThrow();
    expect(() => read(secret, { ...message, body: message.body.replace('webhook', 'webhuuk') })).toThrow();
  });

  it.each([
    [500, 'the receiver answered 500'],
    [404, 'the receiver answered 404'],
    [301, 'redirects are not followed'],
    [410, 'wants no more messages'],
  ])(
    'that is answered %s failed, and its status shows that; the endpoint stays enabled',
    async (status, words) => {
      const { id } = await make();
      receiver.answerWith((_message, response) => {
        response.writeHead(status, { location: new URL('/elsewhere', receiver.url).href }).end('no');
      });
      const answer = await test(id);
      expect(answer).toMatchObject({ ok: false, http_status: status, answer: 'no' });
      expect(answer.error).toContain(words);
      expect(receiver.received.map(({ path }) => path)).toEqual(['/hook']);
      expect((await deliveriesOf(id))[0]).toMatchObject({
        status: 'failed',
        last_status: status,
        next_attempt_at: null,
        attempts: [{ http_status: status, error: answer.error, answer: 'no' }],
      });
      expect((await ask('GET', `/${id}`)).body.enabled).toBe(true);
      expect(await wakesOf(id)).toBe(0);
    },
  );

  it('without a receiver failed, and only the beginning of a long answer is kept', async () => {
    const { id } = await make();
    receiver.answerWith((_message, response) => void response.destroy());
    expect(await test(id)).toMatchObject({ ok: false, http_status: null, answer: null });
    receiver.answerWith((_message, response) => void response.end('\u0000é'.repeat(100_000)));
    const answer = await test(id);
    expect([answer.ok, answer.answer]).toEqual([true, 'é'.repeat(1_024)]);
    expect((await deliveriesOf(id)).map(({ status }: { status: string }) => status)).toEqual([
      'delivered',
      'failed',
    ]);
  });

  it('is not sent where the address leads inside by now, and the answer names no address', async () => {
    const { id } = await make();
    // Simulates a public name that resolves to another address at the time of the connection.
    await api.database.superuser.query(`update webhook_endpoints set url = $2 where org_id = $1`, [
      org.orgId,
      'http://10.0.0.7/hook',
    ]);
    const answer = await test(id);
    expect([answer.ok, answer.http_status]).toEqual([false, null]);
    expect(answer.error).toContain('must lead to the public internet');
    expect(answer.error).not.toContain('10.0.0.7');
  });

  it('is sent to a disabled endpoint too', async () => {
    const { id } = await make({ enabled: false });
    expect((await test(id)).ok).toBe(true);
    expect((await ask('GET', `/${id}`)).body.enabled).toBe(false);
  });
});

describe('a rotation of the secret', () => {
  it('has messages signed with both for its grace period, and then with the new one alone', async () => {
    const { id, secret } = await make();
    const rotated = await ask('POST', `/${id}/rotate-secret`, { grace_seconds: 3_600 });
    expect(rotated.status).toBe(200);
    expect(rotated.body.secret).not.toBe(secret);
    expect(Date.parse(rotated.body.previous_valid_until) - Date.now()).toBeGreaterThan(3_500_000);
    await test(id);
    const again = await ask('POST', `/${id}/rotate-secret`);
    expect(again.body.previous_valid_until).not.toBeNull();
    await test(id);
    const last = await ask('POST', `/${id}/rotate-secret`, { grace_seconds: 0 });
    expect(last.body.previous_valid_until).toBeNull();
    await test(id);
    const secrets = [secret, rotated.body.secret, again.body.secret, last.body.secret];
    const believed = receiver.received.map((message) => secrets.map((one) => believes(one, message)));
    expect(believed).toEqual([
      [true, true, false, false],
      [false, true, true, false],
      [false, false, false, true],
    ]);
    expect((await ask('GET', `/${id}`)).body).not.toHaveProperty('secret');
  });

  it('of several at once ends with the secret of one of them', async () => {
    const { id } = await make();
    const rotated = await Promise.all(
      [1, 2, 3].map(async () => (await ask('POST', `/${id}/rotate-secret`)).body.secret),
    );
    expect(new Set(rotated).size).toBe(3);
    await test(id);
    const [message] = receiver.received as [ReceivedMessage];
    const signatures = String(message.headers['webhook-signature']).split(' ');
    expect(signatures).toHaveLength(2);
    expect(rotated.filter((secret) => believes(secret, message))).toHaveLength(2);
  });
});

describe('the log of deliveries', () => {
  it('shows the newest first, by pages, and by status and type', async () => {
    const { id } = await make();
    for (let n = 0; n < 3; n += 1) await publish('alert.created');
    await publish('gap_run.completed');
    await test(id);
    receiver.answerWith(answering(500));
    await test(id);
    const all = await deliveriesOf(id);
    expect(all.map(({ type, status }: Record<string, string>) => `${type} ${status}`)).toEqual([
      'webhook.test failed',
      'webhook.test delivered',
      'gap_run.completed pending',
      'alert.created pending',
      'alert.created pending',
      'alert.created pending',
    ]);
    const seen: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const words: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { body }: RawAnswer = await ask('GET', `/${id}/deliveries?limit=4${words}`);
      seen.push(...body.deliveries);
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(all);
    expect(await deliveriesOf(id, '?status=pending')).toEqual(all.slice(2));
    expect(await deliveriesOf(id, '?type=webhook.test')).toEqual(all.slice(0, 2));
    expect(await deliveriesOf(id, '?type=webhook.test&status=failed')).toEqual(all.slice(0, 1));
    expect(await deliveriesOf(id, '?status=cancelled')).toEqual([]);
    // Another endpoint has its own.
    expect(await deliveriesOf((await make()).id)).toEqual([]);
  });

  it.each(['?status=sent', '?type=alert.made', '?limit=101', '?cursor=bm9uZQ'])(
    'is not asked for by %s',
    async (query) => {
      const { id } = await make();
      const { status, body } = await ask('GET', `/${id}/deliveries${query}`);
      expect([status, body.code]).toEqual([400, 'invalid_parameter']);
    },
  );

  it(`shows an attempt that is under way as such, and at most the latest ${ATTEMPTS_SHOWN_MAX}`, async () => {
    const { id } = await make();
    await publish('alert.created');
    await api.database.superuser.query(
      `insert into webhook_attempts (org_id, delivery_id, number) select org_id, id, generate_series(1, $2) from webhook_deliveries where org_id = $1`,
      [org.orgId, ATTEMPTS_SHOWN_MAX + 5],
    );
    const [{ attempts }] = await deliveriesOf(id);
    expect(attempts).toHaveLength(ATTEMPTS_SHOWN_MAX);
    expect(attempts[0]).toEqual({
      number: ATTEMPTS_SHOWN_MAX + 5,
      started_at: expect.any(String),
      duration_ms: null,
      http_status: null,
      error: null,
      answer: null,
    });
  });
});

describe('a redelivery', () => {
  it.each(['failed', 'delivered', 'cancelled'])(
    'of what is %s begins a new series of the same message',
    async (status) => {
      const { id } = await make();
      const messageId = randomUUID();
      await publish('alert.created', messageId);
      await giveUpAll();
      await api.database.superuser.query('update webhook_deliveries set status = $2 where org_id = $1', [
        org.orgId,
        status,
      ]);
      const [ended] = await deliveriesOf(id);
      expect(await wakesOf(id)).toBe(1);
      const answer = await ask('POST', `/deliveries/${ended.id}/redeliver`);
      expect(answer.status).toBe(202);
      expect(answer.body).toEqual({
        ...ended,
        status: 'pending',
        attempts_made: 0,
        next_attempt_at: answer.body.next_attempt_at,
        finished_at: null,
      });
      expect(findUuid('msg', answer.body.message_id)).toBe(messageId);
      expect(await wakesOf(id)).toBe(2);
      expect(await deliveriesOf(id)).toEqual([answer.body]);
    },
  );

  it('of what is pending returns it unchanged, also of several at once', async () => {
    const { id } = await make();
    await publish('alert.created');
    const [pending] = await deliveriesOf(id);
    const answer = await ask('POST', `/deliveries/${pending.id}/redeliver`);
    expect([answer.status, answer.body, await wakesOf(id)]).toEqual([202, pending, 1]);
    await giveUpAll();
    const answers = await Promise.all(
      [1, 2, 3].map(() => ask('POST', `/deliveries/${pending.id}/redeliver`)),
    );
    expect(answers.map(({ status, body }) => [status, body.status])).toEqual(
      answers.map(() => [202, 'pending']),
    );
    expect(await wakesOf(id)).toBe(2);
  });

  it('of a test message is one like others', async () => {
    const { id } = await make();
    const { delivery_id } = await test(id);
    const { status, body } = await ask('POST', `/deliveries/${delivery_id}/redeliver`);
    expect([status, body.status, body.type, body.attempts.length]).toEqual([
      202,
      'pending',
      'webhook.test',
      1,
    ]);
  });

  it('is refused while the endpoint is disabled, and for a delivery that is missing or another organization’s', async () => {
    const { id } = await make();
    await publish('alert.created');
    await ask('PATCH', `/${id}`, { enabled: false });
    const [cancelled] = await deliveriesOf(id);
    const refused = await ask('POST', `/deliveries/${cancelled.id}/redeliver`);
    expect([refused.status, refused.body.code]).toEqual([409, 'webhook_disabled']);
    await ask('PATCH', `/${id}`, { enabled: true });
    const stranger = await api.addOrganization();
    for (const [path, who] of [
      [`/deliveries/${cancelled.id}/redeliver`, stranger],
      [`/deliveries/dlv_${'0'.repeat(32)}/redeliver`, org],
      ['/deliveries/none/redeliver', org],
    ] as const)
      expect((await ask('POST', path, undefined, who)).body.code, path).toBe('not_found');
    expect((await ask('POST', `/deliveries/${cancelled.id}/redeliver`)).status).toBe(202);
  });

  it('is withdrawn again when its endpoint is switched off while it begins', async () => {
    const { id } = await make();
    for (let n = 0; n < 10; n += 1) {
      await publish('alert.created');
      await giveUpAll();
      const [delivery] = await deliveriesOf(id);
      const [begun] = await Promise.all([
        ask('POST', `/deliveries/${delivery.id}/redeliver`),
        ask('PATCH', `/${id}`, { enabled: false }),
      ]);
      expect([202, 409]).toContain(begun.status);
      expect(await deliveriesOf(id, '?status=pending')).toEqual([]);
      await ask('PATCH', `/${id}`, { enabled: true });
    }
  });
});

describe('the secret key', () => {
  const rotate = (keys: string, forget = false) =>
    rotateSecrets(
      parseConfig({ ...api.database.environment, TRUEUP_SECRET_KEY: keys }),
      api.database.database,
      forget,
    );

  /** Runs `work` against a process with these keys. */
  async function withKeys(text: string, work: () => Promise<void>): Promise<void> {
    asked = await startTestApi({
      database: api.database,
      outbound: testOutbound([receiver.host]),
      secretKeys: SecretKeys.of(text),
    });
    const started = asked;
    await work().finally(async () => {
      asked = api;
      await started.close();
    });
  }

  it('may be changed: the secrets are sealed again and sign as before, the previous one too', async () => {
    const { id, secret } = await make();
    const rotated = (await ask('POST', `/${id}/rotate-secret`)).body.secret;
    const { isWhole, sentences } = await rotate(`${NEW},${OLD}`);
    expect([isWhole, sentences[0]]).toEqual([true, expect.stringMatching(/^\d+ secrets were sealed again/)]);
    await withKeys(NEW, async () => {
      expect((await test(id)).ok).toBe(true);
      const [message] = receiver.received as [ReceivedMessage];
      expect([believes(secret, message), believes(rotated, message)]).toEqual([true, true]);
    });
    expect((await rotate(`${OLD},${NEW}`)).isWhole).toBe(true);
    expect((await test(id)).ok).toBe(true);
  });

  it('that is missing causes an error, and a rotation of the endpoint’s secret helps without it', async () => {
    const { id } = await make();
    const { id: other } = await make();
    await withKeys(NEW, async () => {
      const refused = await ask('POST', `/${id}/test`);
      expect([refused.status, refused.body.code]).toEqual([503, 'secret_key_missing']);
      expect(receiver.received).toEqual([]);
      const { secret, previous_valid_until } = (await ask('POST', `/${id}/rotate-secret`)).body;
      expect(previous_valid_until).toBeNull();
      expect((await test(id)).ok).toBe(true);
      expect(believes(secret, receiver.received[0] as ReceivedMessage)).toBe(true);
    });
    expect((await test(other)).ok).toBe(true);
  });

  it('that is lost is reported at start and by a rotation, which discards its secrets when asked to', async () => {
    const { id } = await make();
    const lost = SecretKeys.of(NEW);
    expect(await findMissingKeySentence(api.database.database, lost)).toMatch(
      /the secrets of \d+ webhook endpoints? were sealed with/,
    );
    const refused = await rotate(NEW);
    expect([refused.isWhole, refused.sentences[0]]).toEqual([
      false,
      expect.stringMatching(/^The secrets of \d+ webhook endpoints? open with no key at hand/),
    ]);
    expect((await ask('GET', `/${id}`)).body.has_secret).toBe(true);
    expect((await rotate(NEW, true)).isWhole).toBe(true);
    expect(await findMissingKeySentence(api.database.database, lost)).toBeUndefined();
    await withKeys(NEW, async () => {
      const { body } = await ask('GET', `/${id}`);
      expect([body.has_secret, body.enabled]).toEqual([false, true]);
      expect((await ask('POST', `/${id}/test`)).body.code).toBe('credentials_missing');
      expect((await ask('POST', `/${id}/rotate-secret`)).body.has_secret).toBe(true);
      expect((await test(id)).ok).toBe(true);
    });
  });
});
