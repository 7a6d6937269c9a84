import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../domain/ids.js';
import type { TestOrganization } from '../support/api.js';
import { selfSignedCertificate } from '../support/certificate.js';
import { until } from '../support/engine.js';
import { startWebhookPlace, type WebhookPlace } from '../support/webhookPlace.js';
import { answering, type ReceiverAnswer } from '../support/webhookReceiver.js';
import {
  anEndpoint,
  deliveriesOf,
  type StoredDelivery,
  sendMessages,
  statusesOf,
} from '../support/webhooks.js';

/** A public name that leads inside from its second look-up on. */
const TURNED = 'turned.example.com';
let looks = 0;
const resolve = async (host: string) => {
  if (host !== TURNED) return [{ address: host, family: 4 }];
  looks += 1;
  return [{ address: looks === 1 ? '93.184.215.14' : '127.0.0.1', family: 4 }];
};

let place: WebhookPlace;

beforeAll(async () => {
  place = await startWebhookPlace({ fetch: { resolve } });
  await place.engine.startWorker();
});
afterAll(() => place?.close());

const errorsOf = ({ tries }: StoredDelivery) => tries.map(({ error }) => error);

/** Sends one message to a receiver with this answer, until it is given up. */
async function giveUp(answer: ReceiverAnswer, isSlow = false) {
  const made = await place.anOrganization(answer, isSlow);
  await sendMessages(made.org);
  const [delivery] = await place.settled(made.endpoint);
  return { ...made, delivery: delivery as StoredDelivery };
}

const noticesOf = async ({ orgId }: TestOrganization) => {
  const { rows } = await place.database.superuser.query(
    `select notice, subject_type, subject_id, message, details from alerts where org_id = $1 and kind = 'notice' order by created_at`,
    [orgId],
  );
  return rows as {
    notice: string;
    subject_type: string;
    subject_id: string;
    message: string;
    details: object;
  }[];
};

/** Four times the same, then given up. */
const FOUR = (error: unknown) => [error, error, error, error];

/** Each waits for its own receiver, so they wait together. */
describe.concurrent('delivery to a receiver that', () => {
  it('answers 500 sends the message four times and no more; each attempt is in the log', async () => {
    const { delivery, receiver } = await giveUp((_request, response) => {
      response.writeHead(500).end('out of order');
    });
    expect(delivery).toMatchObject({ status: 'failed', attempts: 4, last_status: 500 });
    expect(delivery.tries).toEqual(
      [1, 2, 3, 4].map((number) => ({
        number,
        http_status: 500,
        error: 'the receiver answered 500',
        answer: 'out of order',
      })),
    );
    expect(new Set(receiver.ids()).size).toBe(1);
    expect(receiver.received).toHaveLength(4);
  });

  it('recovers succeeds at the next attempt', async () => {
    const { delivery } = await giveUp((_request, response, count) => {
      response.writeHead(count < 3 ? 503 : 200).end();
    });
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 3, last_error: null });
    expect(delivery.tries.map(({ http_status }) => http_status)).toEqual([503, 503, 200]);
  });

  it('does not answer ends after the timeout', async () => {
    const { delivery } = await giveUp(() => undefined, true);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 4, last_status: null });
    expect(errorsOf(delivery)).toEqual(FOUR('127.0.0.1 did not answer within 0.7 s'));
  });

  it('dribbles an answer that never ends stops after the timeout', async () => {
    const { delivery } = await giveUp((_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(drip));
    }, true);
    expect(errorsOf(delivery)).toEqual(FOUR('127.0.0.1 did not answer within 0.7 s'));
  });

  it('redirects does not follow it: the message is sent nowhere else', async () => {
    const elsewhere = await place.aReceiver();
    const { delivery } = await giveUp(answering(307, { location: elsewhere.url }));
    expect(delivery).toMatchObject({ status: 'failed', last_status: 307 });
    expect(delivery.last_error).toContain('redirects are not followed');
    expect(elsewhere.received).toEqual([]);
  });

  it('answers without end is cut off, and the log keeps up to 1,024 characters of the answer', async () => {
    let written = 0;
    let isCut = false;
    const { delivery } = await giveUp((_request, response) => {
      response.writeHead(200);
      const chunk = 'x'.repeat(65_536);
      const write = () => {
        while (!response.destroyed && response.write(chunk)) written += chunk.length;
        if (!response.destroyed) response.once('drain', write);
      };
      response.on('close', () => {
        isCut = true;
      });
      write();
    });
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, last_status: 200 });
    expect(delivery.tries[0]?.answer).toBe('x'.repeat(1_024));
    await until('the cut', async () => isCut, Boolean);
    // The buffers of both ends, not the further output of the receiver.
    expect(written).toBeLessThan(64 * 1_048_576);
  });

  it('closes the connection without an answer fails, as does one without a listener', async () => {
    const { delivery } = await giveUp((_request, response) => void response.destroy());
    expect(errorsOf(delivery)).toEqual(FOUR('the connection to 127.0.0.1 failed (ECONNRESET)'));
    const gone = await place.anOrganization();
    await gone.receiver.close();
    await sendMessages(gone.org);
    const [refused] = (await place.settled(gone.endpoint)) as [StoredDelivery];
    expect(errorsOf(refused)).toEqual(FOUR('the connection to 127.0.0.1 failed (ECONNREFUSED)'));
  });

  it('has an untrusted certificate sends nothing', async () => {
    const seen: string[] = [];
    const server = createTlsServer(selfSignedCertificate('127.0.0.1'), (request, response) => {
      seen.push(String(request.url));
      response.end();
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    place.allowed.add(host);
    const { org } = await place.anOrganization();
    const endpoint = await anEndpoint(org, `https://${host}/hook`);
    await sendMessages(org);
    const [delivery] = (await place.settled(endpoint)) as [StoredDelivery];
    expect(errorsOf(delivery)).toEqual(
      FOUR('the connection to 127.0.0.1 failed (DEPTH_ZERO_SELF_SIGNED_CERT)'),
    );
    expect(seen).toEqual([]);
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  it('has a public name that resolves to a private address on the second look-up is refused on connecting', async () => {
    const url = await place.outbound.assertPublicAddress(`https://${TURNED}/hook`, 'url');
    const { org } = await place.anOrganization();
    const endpoint = await anEndpoint(org, url);
    await sendMessages(org);
    const [delivery] = (await place.settled(endpoint)) as [StoredDelivery];
    expect(errorsOf(delivery)).toEqual(
      FOUR('the address must lead to the public internet, not to this machine or its network'),
    );
    expect(looks).toBe(5);
  });
});

describe.concurrent('a receiver that answers 410', () => {
  it('is disabled: pending deliveries are cancelled, the log and an alert state it, and other endpoints are notified', async () => {
    const { org, endpoint, receiver } = await place.anOrganization(async (_request, response, count) => {
      response.writeHead(count === 1 ? 500 : 410).end();
    });
    const watcher = await place.aReceiver();
    const watching = await anEndpoint(org, watcher.url, []);
    await sendMessages(org, 1);
    await until(
      'a first attempt',
      () => deliveriesOf(place.database, endpoint),
      ([delivery]) => delivery?.last_status === 500,
    );
    await sendMessages(org, 20);
    await place.settled(endpoint);
    const { superuser } = place.database;
    const statuses = await statusesOf(place.database, endpoint);
    // Attempts in progress at the first 410 have each ended with their answer.
    expect(statuses.failed).toBeGreaterThanOrEqual(1);
    expect(statuses.failed).toBeLessThanOrEqual(4);
    expect((statuses.failed ?? 0) + (statuses.cancelled ?? 0)).toBe(21);
    const state = await superuser.query(
      'select status, disabled_reason from webhook_endpoints where id = $1',
      [endpoint.id],
    );
    expect(state.rows).toEqual([{ status: 'disabled', disabled_reason: 'gone' }]);
    const subject = { subject_type: 'webhook_endpoint', subject_id: publicId('whk', endpoint.id) };
    const audit = await superuser.query(
      `select actor_kind, actor_id, subject_type, subject_id from audit_log where org_id = $1 and action = 'webhook.disabled'`,
      [org.orgId],
    );
    expect(audit.rows).toEqual([{ actor_kind: 'system', actor_id: 'webhook_delivery', ...subject }]);
    expect(await noticesOf(org)).toMatchObject([{ notice: 'webhook_disabled', ...subject }]);
    await place.settled(watching);
    const told = watcher.received.map(({ body }) => JSON.parse(body));
    expect(told.filter(({ type }) => type === 'alert.created')).toMatchObject([
      { data: { kind: 'notice', notice: 'webhook_disabled', ...subject } },
    ]);
    const sent = receiver.received.length;
    await sendMessages(org);
    await place.settled(watching);
    expect(receiver.received.length).toBe(sent);
  });
});

describe.concurrent('messages that are given up', () => {
  it('produce one notice while the receiver takes none, without its address', async () => {
    const { org, endpoint } = await place.anOrganization(answering(500));
    await sendMessages(org, 3);
    await place.settled(endpoint);
    await sendMessages(org, 2);
    await place.settled(endpoint);
    const notices = await noticesOf(org);
    expect(notices).toMatchObject([
      {
        notice: 'webhook_failing',
        subject_id: publicId('whk', endpoint.id),
        message: expect.stringContaining('given up after 4 attempts: the receiver answered 500'),
        details: { attempts: 4 },
      },
    ]);
    expect(JSON.stringify(notices)).not.toContain('/hook');
  });
});

describe.concurrent('a receiver that answers Retry-After', () => {
  it('is left alone: pending messages wait as long as it requests, and unsent messages count no attempt', async () => {
    const { org, endpoint, receiver } = await place.anOrganization((_request, response, count) => {
      if (count === 1) response.writeHead(429, { 'retry-after': '2' }).end();
      else response.writeHead(204).end();
    });
    await sendMessages(org, 1);
    await until(
      'a first attempt',
      () => deliveriesOf(place.database, endpoint),
      ([delivery]) => delivery?.last_status === 429,
    );
    await place.settled(endpoint);
    const [first, second] = receiver.received.map(({ atMs }) => atMs) as [number, number];
    // The schedule would have come back after 0.2 s, and may be put off up to its next wait, 0.3 s; the pause is longer.
    expect(second - first).toBeGreaterThan(1_500);
    expect(await deliveriesOf(place.database, endpoint)).toMatchObject([
      { status: 'delivered', attempts: 2 },
    ]);
  });
});

describe.concurrent('one bad receiver', () => {
  it('holds up no other: a message to another endpoint is delivered while a hundred hang', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const {
      org,
      receiver,
      endpoint: hanging,
    } = await place.anOrganization(async (_request, response) => {
      await released;
      response.writeHead(204).end();
    });
    await sendMessages(org, 100);
    await until(
      'attempts that hang',
      async () => receiver.received.length,
      (count) => count > 0,
    );
    const neighbour = await place.anOrganization();
    const own = await place.aReceiver();
    const sibling = await anEndpoint(org, own.url);
    await sendMessages(neighbour.org);
    await sendMessages(org);
    expect(await place.settled(neighbour.endpoint)).toMatchObject([{ status: 'delivered', attempts: 1 }]);
    expect(await place.settled(sibling)).toMatchObject([{ status: 'delivered', attempts: 1 }]);
    expect((await statusesOf(place.database, hanging)).pending).toBeGreaterThan(50);
    release();
    await place.settled(hanging);
  });
});
