import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { Context } from 'koa';
import { afterEach, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { defineEndpoint, type Endpoint } from '../../../api/endpoint.js';
import { Admission, BODY_BYTES_UNDER_WAY_MAX } from '../../../api/limits/admission.js';
import { IncomingBody } from '../../../api/pipeline/body.js';
import { DomainError } from '../../../domain/errors.js';
import { createMetrics } from '../../../platform/metrics.js';
import { CONNECTIONS_MAX, HTTP_LIMITS } from '../../../platform/serverLimits.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { WIDE_LIMITS } from '../support/limits.js';
import { anEvent, send } from '../support/requests.js';

let api: TestApi | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await api?.close();
  api = undefined;
});

/** A connection that sends some bytes and then stays silent; its received data are stored. */
function open(
  target: TestApi,
  text: string,
): { socket: Socket; heard: () => string; isClosed: () => boolean } {
  const socket = createConnection(Number(new URL(target.baseUrl).port), '127.0.0.1');
  let heard = '';
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    heard += chunk.toString('latin1');
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(text);
  sockets.push(socket);
  return { socket, heard: () => heard, isClosed: () => isClosed };
}

/** A request whose body never arrives, so that it stays in progress. */
function hang(target: TestApi, path: string, key: string) {
  return open(
    target,
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
  );
}

/** Requests that have begun and not ended; the scrape itself is none of them. */
async function underWay(target: TestApi): Promise<number> {
  const text = String((await send(target, { path: '/metrics', key: null })).bytes);
  return Number(/^trueup_http_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}

/** Places for exports that are held, on any instance. */
async function countHeldExports(target: TestApi): Promise<number> {
  return (await target.database.superuser.query('select from request_slots')).rowCount ?? 0;
}

const HELD_UP = '/held-up';

/** An endpoint that answers when it is let go. */
function holdUp(): { endpoint: Endpoint; letGo: () => void } {
  let letGo = () => {};
  const until = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const endpoint = defineEndpoint({
    operationId: 'heldUp',
    method: 'get',
    path: HELD_UP,
    tag: 'Test',
    summary: 'Waits',
    access: { public: true },
    responses: { 204: { description: 'Let go' } },
    problems: [],
    handle: async () => {
      await until;
      return { status: 204 };
    },
  });
  return { endpoint, letGo: () => letGo() };
}

describe('F-20: more requests than can be served', () => {
  it('are refused at once with 503, before key and body are read; health answers; room is freed again', async () => {
    api = await startTestApi({ requestsMax: { ingest: 4, other: 4 } });
    const hanging: Socket[] = [];
    for (let index = 0; index < 4; index += 1) {
      const { adminKey } = await api.addOrganization();
      hanging.push(hang(api, '/api/v1/pricing/overrides', adminKey).socket);
    }
    await expect.poll(() => underWay(api as TestApi)).toBe(4);
    for (const key of [api.adminKey, null, 'tu_live_none']) {
      const refused = await send(api, { path: '/api/v1/pricing/overrides', key, body: '{' });
      expect(refused.status).toBe(503);
      expect(refused.body.code).toBe('service_unavailable');
      expect(refused.headers['retry-after']).toBe('1');
    }
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await send(api, { path, key: null })).status).toBe(200);
    // Ingest has a separate limit.
    const ingested = await api.post('/api/v1/ingest/events', { events: [anEvent()] }, api.ingestKey);
    expect(ingested.status).toBe(202);
    for (const socket of hanging) socket.destroy();
    await expect.poll(() => underWay(api as TestApi)).toBe(0);
    expect((await api.get('/api/v1/events')).status).toBe(200);
  });

  it('that queue on one connection free their room when it closes, and so does an export', async () => {
    const held = holdUp();
    api = await startTestApi({ endpoints: [...ENDPOINTS, held.endpoint], limits: WIDE_LIMITS });
    const exported = '/api/v1/events/export?start=2026-01-01&end=2026-02-01';
    const lines = [HELD_UP, exported, exported, '/api/v1/events'].map(
      (path) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${api?.adminKey}\r\n\r\n`,
    );
    const { socket } = open(api, lines.join(''));
    await expect.poll(() => underWay(api as TestApi)).toBe(4);
    await expect.poll(() => countHeldExports(api as TestApi)).toBe(2);
    socket.destroy();
    await expect.poll(() => countHeldExports(api as TestApi)).toBe(0);
    held.letGo();
    await expect.poll(() => underWay(api as TestApi)).toBe(0);
    expect((await send(api, { path: exported })).status).toBe(200);
  });

  it('of one organization leave room for the others: it gets 429 while they are served', async () => {
    api = await startTestApi({ requestsMax: { ingest: 8, other: 8 } });
    const quiet = await api.addOrganization();
    for (let index = 0; index < 4; index += 1) hang(api, '/api/v1/pricing/overrides', api.adminKey);
    await expect.poll(() => underWay(api as TestApi)).toBe(4);
    const refused = await api.get('/api/v1/events');
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ 'violated-policies': ['requests-under-way'] });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await api.get('/api/v1/events', quiet.adminKey)).status).toBe(200);
  });
});

describe('the room for requests', () => {
  const aRequest = (path: string, bytes?: number) =>
    ({
      path,
      method: 'POST',
      headers: bytes === undefined ? {} : { 'content-length': String(bytes) },
      res: Object.assign(new EventEmitter(), { destroyed: false }),
      state: {},
    }) as unknown as Context;
  const end = (ctx: Context) => ctx.res.emit('close');
  const TRACE = '/api/v1/ingest/trace';
  const BODY_BYTES_MAX = 16_777_216;

  it('is measured in bytes of bodies too; one that is larger than all of it comes in alone', () => {
    const admission = new Admission(createMetrics());
    const half = BODY_BYTES_UNDER_WAY_MAX / 2;
    const first = aRequest(TRACE, half);
    admission.enter(first);
    admission.enter(aRequest(TRACE, half));
    expect(() => admission.enter(aRequest(TRACE, 1))).toThrow(DomainError);
    end(first);
    admission.enter(aRequest(TRACE, half));
    const alone = new Admission(createMetrics());
    alone.enter(aRequest(TRACE, BODY_BYTES_UNDER_WAY_MAX * 2));
    expect(() => alone.enter(aRequest(TRACE))).toThrow(DomainError);
  });

  it('counts a body for what it becomes: without a length it grows, and a compressed one is inflated', async () => {
    const admission = new Admission(createMetrics());
    const large = Buffer.alloc(BODY_BYTES_MAX);
    const small = Buffer.alloc(BODY_BYTES_MAX / 4);
    const read = (ctx: Context, bytes: Buffer, headers = {}) => {
      const stream = Object.assign(new PassThrough(), { headers }) as unknown as PassThrough &
        IncomingMessage;
      stream.end(bytes);
      return new IncomingBody(stream, { hold: (held) => admission.holdBody(ctx, held) }).bytes(
        BODY_BYTES_MAX,
      );
    };
    const filler = aRequest(TRACE, BODY_BYTES_UNDER_WAY_MAX - BODY_BYTES_MAX / 2);
    const [asItCame, inflated] = [aRequest(TRACE), aRequest(TRACE, 20_000)];
    for (const ctx of [filler, asItCame, inflated]) admission.enter(ctx);
    const gzip = { 'content-encoding': 'gzip' };
    await read(asItCame, small);
    await expect(read(asItCame, large)).rejects.toThrow('more requests are under way');
    await expect(read(inflated, gzipSync(large), gzip)).rejects.toThrow('more requests are under way');
    end(filler);
    await read(asItCame, large);
    await read(inflated, gzipSync(large), gzip);
    for (const ctx of [asItCame, inflated]) end(ctx);
    // Bytes of a request that was answered before its body ended do not count.
    admission.holdBody(asItCame, BODY_BYTES_MAX);
    admission.enter(aRequest(TRACE, BODY_BYTES_UNDER_WAY_MAX - 1));
    admission.enter(aRequest(TRACE, 1));
  });

  it('is limited to half of what is free for one organization, so that there is always some for another', () => {
    const admission = new Admission(createMetrics(), { ingest: 100, other: 100 });
    const count = (orgId: string) => {
      for (let entered = 0; ; entered += 1) {
        const ctx = aRequest(TRACE, 1);
        try {
          admission.enter(ctx);
          admission.enterOrganization(ctx, orgId);
        } catch {
          end(ctx);
          return entered;
        }
      }
    };
    const counts = ['a', 'b', 'c', 'd', 'e'].map(count);
    expect(counts[0]).toBe(50);
    for (const entered of counts) expect(entered).toBeGreaterThanOrEqual(1);
  });
});

describe('F-28: slow and many connections', () => {
  it('have the limits that the documents name', () => {
    expect(HTTP_LIMITS).toMatchObject({ headersTimeout: 15_000, maxHeaderSize: 16_384 });
    expect(HTTP_LIMITS.connectionsCheckingInterval).toBeLessThanOrEqual(5_000);
    expect(CONNECTIONS_MAX).toBe(4_096);
  });

  it('that send their head drop by drop block no answer, and are ended', async () => {
    const slow = { headersTimeout: 500, requestTimeout: 60_000, connectionsCheckingInterval: 50 };
    api = await startTestApi({ httpLimits: slow });
    const opened = Array.from({ length: 150 }, () =>
      open(api as TestApi, 'GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\nx-slow: '),
    );
    expect((await api.get('/api/v1/events')).status).toBe(200);
    await expect.poll(() => opened.every(({ isClosed }) => isClosed())).toBe(true);
    for (const { heard } of opened) expect(heard()).toMatch(/^HTTP\/1\.1 408 /);
    expect((await api.get('/api/v1/events')).status).toBe(200);
  });

  it('whose body does not come in time are answered 408 and closed', async () => {
    const stream = Object.assign(new PassThrough(), { headers: {} }) as unknown as IncomingMessage;
    const read = new IncomingBody(stream).bytes(1_000, 20);
    await expect(read).rejects.toMatchObject({ code: 'body_too_slow' });
  });

  it('that send a head of more than 16 KB are refused', async () => {
    api = await startTestApi();
    const answer = open(
      api,
      `GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: ${'x'.repeat(20_000)}\r\n\r\n`,
    );
    await expect.poll(() => answer.isClosed()).toBe(true);
    expect(answer.heard()).toMatch(/^HTTP\/1\.1 431 /);
  });
});
