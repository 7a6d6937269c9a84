import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordNotice } from '../../db/policies/alerts.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { findUuid } from '../../domain/ids.js';
import { messageBody } from '../../domain/webhooks/messages.js';
import { deliverReport } from '../../usecases/webhooks/deliverReport.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { testBlobs } from '../support/blobs.js';
import { testSecretKeys } from '../support/connectors.js';
import { until } from '../support/engine.js';
import { type MailServer, type ReceivedMail, startMailServer } from '../support/mailServer.js';
import { startWebhookPlace, type WebhookPlace } from '../support/webhookPlace.js';
import { sendMessages } from '../support/webhooks.js';

const PATH = '/api/v1/webhook-endpoints';
const blobs = testBlobs();

let place: WebhookPlace;
let api: TestApi;
let mails: MailServer;
/** Each test's own. */
let org: TestOrganization;

beforeAll(async () => {
  mails = await startMailServer();
  place = await startWebhookPlace({ engine: { deliverMail: mails.mailer(), blobs } });
  api = await startTestApi({
    ...{ database: place.database, outbound: place.outbound, deliverMail: mails.mailer() },
    kickDispatcher: () => place.engine.dispatcher.kick(),
  });
  await place.engine.startWorker();
});
beforeEach(async () => {
  mails.refuseWith(undefined);
  mails.received.length = 0;
  org = await api.addOrganization();
});
afterAll(async () => {
  await api?.close();
  await place?.close();
  await mails?.close();
});

async function ask(method: string, path: string, json?: object) {
  const response = await fetch(api.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${org.adminKey}`, 'content-type': 'application/json' },
    ...(json ? { body: JSON.stringify(json) } : {}),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

async function make(json: object) {
  const { status, body } = await ask('POST', PATH, { event_types: ['gap_run.completed'], ...json });
  expect([status, body.detail]).toEqual([201, undefined]);
  return body;
}

const makeMail = (more: object = {}) => make({ format: 'email', to: 'finance@example.com', ...more });

interface ShownDelivery {
  id: string;
  type: string;
  status: string;
  attempts_made: number;
  next_attempt_at: string | null;
  attempts: { http_status: number | null }[];
}

const deliveriesOf = async (id: string): Promise<ShownDelivery[]> =>
  (await ask('GET', `${PATH}/${id}/deliveries`)).body.deliveries;

/** Its deliveries, once none is pending. */
const settled = (id: string) =>
  until(
    'the end of all deliveries',
    () => deliveriesOf(id),
    (all) => all.length > 0 && all.every(({ status }) => status !== 'pending'),
  );

const arrived = (count = 1): Promise<ReceivedMail[]> =>
  until(
    'the mail',
    async () => mails.received,
    (all) => all.length >= count,
  );

async function publishRun() {
  const [id] = await sendMessages(org);
  place.engine.dispatcher.kick();
  return id;
}

/** Posts a token as mail programs and the page do. */
const unsubscribe = (path: string, body: string) =>
  fetch(api.baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body,
  });

const queryOf = (mail: ReceivedMail | undefined): string => {
  const url = new URL(mail?.headers['list-unsubscribe']?.slice(1, -1) ?? '');
  return url.pathname + url.search;
};

describe.each(['slack', 'teams'])('an endpoint of the format %s', (format) => {
  it('gets the notice unsigned, in test messages and redeliveries too', async () => {
    const receiver = await place.aReceiver();
    const endpoint = await make({ format, url: receiver.url });
    expect(endpoint).toMatchObject({ format, to: null, digest: 'none', secret: null, has_secret: false });
    expect((await ask('POST', `${PATH}/${endpoint.id}/test`)).body).toMatchObject({ ok: true });
    await publishRun();
    const [delivery] = await settled(endpoint.id);
    expect(delivery).toMatchObject({ status: 'delivered', type: 'gap_run.completed' });
    const again = await ask('POST', `${PATH}/deliveries/${delivery?.id}/redeliver`);
    expect(again.status).toBe(202);
    await until(
      'the redelivery',
      async () => receiver.received.length,
      (count) => count === 3,
    );
    for (const { headers, body } of receiver.received) {
      expect(Object.keys(headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
      const shown = JSON.parse(body);
      expect(Object.keys(shown)).toEqual(format === 'slack' ? ['text', 'blocks'] : ['type', 'attachments']);
      expect(body).toContain('http://trueup.test/api/v1/');
    }
    const rotated = await ask('POST', `${PATH}/${endpoint.id}/rotate-secret`);
    expect([rotated.status, rotated.body.code]).toEqual([409, 'credentials_missing']);
  });
});

describe('an e-mail endpoint', () => {
  it('is made, read and changed without a url or a secret', async () => {
    const made = await makeMail({ description: 'Finance' });
    expect(made).toMatchObject({
      ...{ format: 'email', to: 'finance@example.com', url: null, secret: null, digest: 'none' },
    });
    const changed = await ask('PATCH', `${PATH}/${made.id}`, { digest: 'daily', description: 'All' });
    expect(changed.body).toMatchObject({ digest: 'daily', description: 'All', to: 'finance@example.com' });
    expect((await ask('GET', `${PATH}/${made.id}`)).body).toEqual(changed.body);
    const withUrl = await ask('PATCH', `${PATH}/${made.id}`, { url: 'https://hooks.example.com/a' });
    expect([withUrl.status, withUrl.body.code]).toEqual([400, 'invalid_body']);
  });

  it.each([
    [{ format: 'email' }, 'to'],
    [{ format: 'email', to: 'a@example.com', url: 'https://hooks.example.com' }, 'url'],
    [{ format: 'email', to: 'a@example.com\r\nBcc: b@example.com' }, 'to'],
    [{ format: 'email', to: 'a@example.com, b@example.com' }, 'to'],
    [{ format: 'slack' }, 'url'],
    [{ format: 'slack', url: 'https://hooks.example.com', to: 'a@example.com' }, 'to'],
    [{ format: 'fax', url: 'https://hooks.example.com' }, 'format'],
    [{ url: 'https://hooks.example.com', digest: 'hourly' }, 'digest'],
  ])('refuses %j by its field', async (json, field) => {
    const { status, body } = await ask('POST', PATH, json);
    expect([status, body.code, body.errors?.[0]?.field]).toEqual([400, 'invalid_body', field]);
  });

  it('needs a mail server, whose setting the refusal names', async () => {
    const without = await startTestApi({ database: place.database, outbound: place.outbound });
    const response = await fetch(without.baseUrl + PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${without.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ format: 'email', to: 'a@example.com' }),
    });
    const body = (await response.json()) as { code: string; detail: string };
    await without.close();
    expect([response.status, body.code]).toEqual([409, 'mail_not_configured']);
    expect(body.detail).toContain('SMTP_URL');
  });

  it('repeats a mail with the same id after 451', async () => {
    const endpoint = await makeMail();
    mails.refuseWith({ code: 451, text: 'greylisted' });
    await publishRun();
    await until(
      'two attempts',
      () => deliveriesOf(endpoint.id),
      ([delivery]) => (delivery?.attempts_made ?? 0) >= 2,
    );
    mails.refuseWith(undefined);
    const [delivery] = await settled(endpoint.id);
    expect(delivery?.status).toBe('delivered');
    expect(delivery?.attempts.at(-1)).toMatchObject({ http_status: 451 });
    expect(mails.received).toHaveLength(1);
    expect(mails.received[0]?.headers['message-id']).toBe(`<${delivery?.id}@trueup.test>`);
    expect(mails.received[0]?.headers.subject).toMatch(/^Trueup: The comparison of/);
  });

  it('gives a mail up after 550, visibly', async () => {
    const endpoint = await makeMail();
    mails.refuseWith({ code: 550, text: 'no such user' });
    await publishRun();
    const [delivery] = await settled(endpoint.id);
    expect(delivery).toMatchObject({
      ...{ status: 'failed', attempts_made: 1, last_status: 550 },
      last_error: 'the mail server answered 550, which is final',
    });
    expect((await ask('POST', `${PATH}/${endpoint.id}/test`)).body).toMatchObject({
      ...{ ok: false, http_status: 550 },
    });
  });

  it('gets the sentence of an alert', async () => {
    await makeMail({ event_types: ['alert.created'] });
    await org.orgDb.transaction((inside) =>
      recordNotice(inside, {
        ...{ code: 'connection_broken', key: randomUUID(), severity: 'high', details: {}, provider: null },
        ...{ subject: { type: 'connection', id: 'con_1' }, message: 'The key was refused.\r\nBcc: <x@y.zz>' },
      }),
    );
    place.engine.dispatcher.kick();
    const [mail] = await arrived();
    expect(mail?.headers.subject).toBe('Trueup: Alert (high): The key was refused. Bcc: <x@y.zz>');
    expect(mail?.headers.bcc).toBeUndefined();
  });
});

describe('the end of mails', () => {
  it('needs one POST without a key, and ends that endpoint alone', async () => {
    const endpoint = await makeMail();
    const other = await makeMail({ to: 'other@example.com' });
    await publishRun();
    const all = await arrived(2);
    const mail = all.find(({ to }) => to.includes('finance@example.com'));
    const ended = await unsubscribe(queryOf(mail), 'List-Unsubscribe=One-Click');
    expect(ended.status).toBe(200);
    expect((await ask('GET', `${PATH}/${endpoint.id}`)).body).toMatchObject({
      ...{ enabled: false, disabled_reason: 'unsubscribed' },
    });
    expect((await ask('GET', `${PATH}/${other.id}`)).body.enabled).toBe(true);
    const { rows } = await api.database.superuser.query(
      'select unsubscribe_hash as hash from webhook_endpoints where id = $1',
      [findUuid('whk', endpoint.id)],
    );
    const token = new URLSearchParams(queryOf(mail).split('?')[1]).get('token') ?? '';
    expect(rows[0].hash).toHaveLength(32);
    expect(rows[0].hash.toString('base64url')).not.toBe(token);
    // The link in the text has the same token in its fragment, and the page posts it.
    const shownToken = /unsubscribe#([\w-]{43})/.exec(mail?.body ?? '')?.[1];
    expect(shownToken).toBe(token);
  });

  it('answers every token alike', async () => {
    await makeMail();
    await publishRun();
    const [mail] = await arrived();
    const real = new URLSearchParams(queryOf(mail).split('?')[1]).get('token') ?? '';
    const answers = [];
    for (const token of [real, real, 'A'.repeat(43), '', "'; drop table x; --"]) {
      const answer = await unsubscribe('/unsubscribe', new URLSearchParams({ token }).toString());
      answers.push([answer.status, await answer.text(), answer.headers.get('content-type')]);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    const large = await unsubscribe('/unsubscribe', `token=${'x'.repeat(5_000)}`);
    expect(large.status).toBe(413);
  });

  it('has a page that loads nothing from elsewhere and ends nothing by itself', async () => {
    const page = await fetch(`${api.baseUrl}/unsubscribe`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const text = await page.text();
    expect(text).toContain('<script src="/unsubscribe/boot.js" defer>');
    expect(text.match(/https?:\/\//)).toBeNull();
    expect((await fetch(`${api.baseUrl}/unsubscribe/boot.js`)).headers.get('content-type')).toContain(
      'text/javascript',
    );
  });
});

describe('a daily digest', () => {
  const age = (id: string, days: number) =>
    api.database.superuser.query(
      `update webhook_deliveries set created_at = now() - make_interval(days => $2), next_attempt_at = now()
       where endpoint_id = $1 and status = 'pending'`,
      [findUuid('whk', id), days],
    );

  it('gathers the messages of a day in one mail, each in one digest, and sends none for an empty day', async () => {
    const endpoint = await makeMail({ digest: 'daily' });
    await org.orgDb.transaction((inside) =>
      publishMessages(
        inside,
        Array.from({ length: 53 }, () => ({
          ...{ id: randomUUID(), type: 'gap_run.completed' as const },
          body: messageBody('gap_run.completed', '2026-06-19T00:00:00Z', {
            ...{ run_id: 'run_1', period: '30d', provider: null, status: 'succeeded', total: 9, flagged: 1 },
          }),
        })),
      ),
    );
    place.engine.dispatcher.kick();
    await until(
      'the wait for the digest',
      () => deliveriesOf(endpoint.id),
      (all) => all.every(({ next_attempt_at }) => Date.parse(next_attempt_at ?? '') > Date.now() + 1_000),
    );
    expect(mails.received).toEqual([]);
    await age(endpoint.id, 1);
    // Events since the digest hour wait for the next one.
    await publishRun();
    const [mail] = await arrived();
    expect(mail?.headers.subject).toBe('Trueup: 53 notices since the last digest.');
    expect(mail?.body.match(/- The comparison of all providers over 30d has ended/g)).toHaveLength(50);
    expect(mail?.body).toContain('and 3 more');
    const all = await until(
      'the digest',
      () => deliveriesOf(`${endpoint.id}`),
      (found) => found.some(({ type, status }) => type === 'digest.daily' && status === 'delivered'),
    );
    const digest = all.find(({ type }) => type === 'digest.daily');
    const { rows } = await api.database.superuser.query(
      `select status, digest_delivery_id as digest, count(*)::int as count from webhook_deliveries
       where endpoint_id = $1 group by 1, 2 order by 1`,
      [findUuid('whk', endpoint.id)],
    );
    expect(rows).toEqual([
      { status: 'delivered', digest: null, count: 1 },
      { status: 'gathered', digest: findUuid('dlv', digest?.id ?? ''), count: 53 },
      { status: 'pending', digest: null, count: 1 },
    ]);
    expect(mails.received).toHaveLength(1);
  });

  it('is signed and has all notices in the standard format; the end of digests sends what waited', async () => {
    const receiver = await place.aReceiver();
    const endpoint = await make({ url: receiver.url, digest: 'daily' });
    await publishRun();
    await publishRun();
    await age(endpoint.id, 2);
    await publishRun();
    await until(
      'the digest',
      async () => receiver.received.length,
      (count) => count === 1,
    );
    const { type, data } = JSON.parse(receiver.received[0]?.body ?? '');
    expect(receiver.received[0]?.headers['webhook-signature']).toMatch(/^v1,/);
    expect([type, data.count, data.notices.length]).toEqual(['digest.daily', 2, 2]);
    await ask('PATCH', `${PATH}/${endpoint.id}`, { digest: 'none' });
    place.engine.dispatcher.kick();
    await until(
      'the message that waited',
      async () => receiver.received.length,
      (count) => count === 2,
    );
    expect(JSON.parse(receiver.received[1]?.body ?? '').type).toBe('gap_run.completed');
  });

  it('that ends while a message is about to wait for it sends that message', async () => {
    const receiver = await place.aReceiver();
    const endpoint = await make({ url: receiver.url, digest: 'daily' });
    const id = findUuid('whk', endpoint.id);
    const change = await api.database.superuser.connect();
    try {
      // The change has begun and is not visible yet, so the pass finds an endpoint with digests.
      await change.query(`begin; update webhook_endpoints set digest = 'none' where id = '${id}'`);
      await publishRun();
      await until(
        'the pass at the message',
        async () => {
          const { rows } = await api.database.superuser.query(
            `select exists (select from webhook_deliveries where endpoint_id = $1 and next_attempt_at > now()) or exists (
               select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as reached`,
            [id],
          );
          return rows[0].reached as boolean;
        },
        (reached) => reached,
      );
      await change.query('commit');
    } finally {
      change.release();
    }
    await until(
      'the message',
      async () => receiver.received.length,
      (count) => count === 1,
    );
    expect(JSON.parse(receiver.received[0]?.body ?? '').type).toBe('gap_run.completed');
  });
});

describe('a scheduled report', () => {
  it('goes to the addresses of its schedule once, with the document, until a recipient ends it', async () => {
    const reportId = randomUUID();
    const blobKey = `reports/${org.orgId}/${reportId}/a.pdf`;
    const content = Buffer.from('%PDF-1.7 a report');
    await blobs.put(blobKey, Readable.from([content]), { bytesMax: 1_000 });
    const [kept, leaving] = [randomUUID(), randomUUID()];
    const deliveries = [
      { id: kept, type: 'email' as const, to: 'finance@example.com' },
      { id: leaving, type: 'email' as const, to: 'leaving@example.com' },
      { id: randomUUID(), type: 'webhook' as const },
    ];
    const { superuser } = api.database;
    await superuser.query(
      `insert into reports (org_id, id, period_from, period_to, sections, cause, cadence, status, blob_key, size_bytes, generated_at, expires_at, finished_at)
       values ($1, $2, '2026-05-01', '2026-05-31', '{summary}', 'schedule', 'monthly', 'succeeded', $3, $4, now(), now() + interval '1 day', now())`,
      [org.orgId, reportId, blobKey, content.length],
    );
    await superuser.query(
      `insert into report_schedules (org_id, cadence, sections, time_zone, deliveries, due_from, created_by)
       values ($1, 'monthly', '{summary}', 'UTC', $2, '2026-06-01', 'test')`,
      [org.orgId, JSON.stringify(deliveries)],
    );
    const report = {
      ...{ id: reportId, periodFrom: '2026-05-01', periodTo: '2026-05-31', sections: ['summary'] },
      ...{ cause: 'schedule', cadence: 'monthly', sizeBytes: content.length },
      ...{ generatedAtMicros: 1_781_827_200_000_000n, expiresAtMicros: 1_789_603_200_000_000n },
    };
    const deliver = (id: string) =>
      org.orgDb
        .transaction((inside) =>
          deliverReport(
            inside,
            { ...report, id },
            { cadence: 'monthly', deliveries },
            { secretKeys: testSecretKeys() },
          ),
        )
        .then(() => place.engine.dispatcher.kick());
    await deliver(reportId);
    await deliver(reportId);
    const sent = await arrived(2);
    const mail = sent.find(({ to }) => to.includes('leaving@example.com'));
    expect(mail?.headers.subject).toBe('Trueup: The monthly report for 2026-05-01 to 2026-05-31 is ready.');
    expect(mail?.raw).toContain('filename=report-2026-05-01-2026-05-31.pdf');
    expect(mail?.raw.replaceAll('\r\n', '')).toContain(content.toString('base64'));
    expect((await ask('GET', PATH)).body.webhook_endpoints).toEqual([]);
    await unsubscribe(queryOf(mail), 'List-Unsubscribe=One-Click');
    const { rows } = await superuser.query('select deliveries from report_schedules where org_id = $1', [
      org.orgId,
    ]);
    expect(rows[0].deliveries.map(({ id }: { id: string }) => id)).toEqual([kept, deliveries[2]?.id]);
    await deliver(randomUUID());
    const later = await arrived(3);
    expect(later.flatMap(({ to }) => to).sort()).toEqual([
      ...['finance@example.com', 'finance@example.com', 'leaving@example.com'],
    ]);
  });
});
