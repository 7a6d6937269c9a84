import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { deliverWebhookBy, signMessage } from '../../../adapters/outbound/deliverWebhook.js';
import { SafeFetch, type SafeFetchOptions } from '../../../adapters/outbound/safeFetch.js';
import { formatSecret } from '../../../domain/webhooks/secret.js';

const NEW_SECRET = formatSecret(new Uint8Array(32).fill(7));
const OLD_SECRET = formatSecret(new Uint8Array(32).fill(8));
const STRANGE_SECRET = formatSecret(new Uint8Array(32).fill(9));
const BODY = '{"type":"alert.created","timestamp":"2026-10-01T00:00:00Z","data":{"alert_id":"alr_ü"}}';
const CLOCK = { nowMicros: () => BigInt(Date.now()) * 1_000n, nowMs: () => performance.now() };

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function receiver(answer: RequestListener, options: SafeFetchOptions = {}) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const deliver = deliverWebhookBy(new SafeFetch({ allowedHosts: new Set([host]), ...options }), CLOCK);
  return (secrets: readonly string[] = [NEW_SECRET]) =>
    deliver({ url: `http://${host}/hook`, messageId: 'msg_1', body: BODY, secrets });
}

describe('the signature', () => {
  it('is the one of the Standard Webhooks library for the same message', () => {
    const at = new Date(1_790_000_000_000);
    const headers = signMessage({
      id: 'msg_1',
      timestampSeconds: at.getTime() / 1_000,
      body: BODY,
      secrets: [NEW_SECRET],
    });
    expect(headers['webhook-signature']).toBe(new Webhook(NEW_SECRET).sign('msg_1', at, BODY));
  });
});

describe('one attempt', () => {
  it('carries what the Standard Webhooks library verifies with either secret of a rotation, and with no other', async () => {
    let seen: { headers: IncomingHttpHeaders; body: string } | undefined;
    const attempt = await receiver(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      seen = { headers: request.headers, body };
      response.writeHead(204).end();
    });
    const outcome = await attempt([NEW_SECRET, OLD_SECRET]);
    expect(outcome).toMatchObject({ result: 'delivered', httpStatus: 204, error: null, answer: null });
    const { headers, body } = seen as NonNullable<typeof seen>;
    expect(body).toBe(BODY);
    expect(headers['content-type']).toBe('application/json');
    const signed = headers as Record<string, string>;
    for (const secret of [NEW_SECRET, OLD_SECRET])
      expect(new Webhook(secret).verify(body, signed)).toEqual(JSON.parse(BODY));
    expect(() => new Webhook(STRANGE_SECRET).verify(body, signed)).toThrow('No matching signature');
    expect(() => new Webhook(NEW_SECRET).verify(`${body} `, signed)).toThrow('No matching signature');
  });

  it.each([
    [200, 'delivered'],
    [299, 'delivered'],
    [301, 'failed'],
    [308, 'failed'],
    [400, 'failed'],
    [410, 'gone'],
    [500, 'failed'],
  ] as const)('of an answer %i is %s', async (status, result) => {
    let calls = 0;
    const attempt = await receiver((_request, response) => {
      calls += 1;
      response.writeHead(status, { location: '/elsewhere' }).end('said');
    });
    expect(await attempt()).toMatchObject({ result, httpStatus: status, answer: 'said' });
    expect(calls).toBe(1);
  });

  it('keeps the beginning of the answer, as text that can be stored', async () => {
    const attempt = await receiver((_request, response) => {
      response
        .writeHead(500)
        .end(Buffer.concat([Buffer.from('a\0b\x07\xff', 'latin1'), Buffer.from('😀'.repeat(3_000))]));
    });
    const { answer } = await attempt();
    expect(answer).toMatch(/^ab\ufffd😀/u);
    expect(answer).toHaveLength(1_024);
    expect(answer?.isWellFormed()).toBe(true);
    expect(answer).not.toContain('\0');
  });

  it('reads how long a 429 or 503 asks to wait, in seconds or as a date, and ignores it on other answers', async () => {
    const said = { status: 429, headers: {} as Record<string, string> };
    const attempt = await receiver((_request, response) => {
      response.writeHead(said.status, said.headers).end();
    });
    said.headers = { 'retry-after': '120' };
    expect(await attempt()).toMatchObject({ result: 'failed', retryAfterSeconds: 120 });
    said.status = 503;
    said.headers = { 'retry-after': 'Fri, 01 May 2026 00:01:30 GMT', date: 'Fri, 01 May 2026 00:00:00 GMT' };
    expect(await attempt()).toMatchObject({ retryAfterSeconds: 90 });
    said.headers = { 'retry-after': 'soon' };
    expect(await attempt()).toMatchObject({ retryAfterSeconds: null });
    said.status = 500;
    said.headers = { 'retry-after': '120' };
    expect(await attempt()).toMatchObject({ retryAfterSeconds: null });
  });

  it('that gets no answer states why, without an address behind the name', async () => {
    const outbound = new SafeFetch({
      allowedHosts: new Set(['127.0.0.1:9']),
      resolve: async () => [{ address: '10.1.2.3', family: 4 }],
    });
    const deliver = deliverWebhookBy(outbound, CLOCK);
    const attempt = (url: string) => deliver({ url, messageId: 'msg_1', body: BODY, secrets: [NEW_SECRET] });
    expect(await attempt('http://127.0.0.1:9/')).toMatchObject({
      result: 'failed',
      httpStatus: null,
      error: 'the connection to 127.0.0.1 failed (ECONNREFUSED)',
    });
    const refused = await attempt('https://hooks.example.com/');
    expect(refused).toMatchObject({ result: 'failed', httpStatus: null });
    expect(refused.error).toBe(
      'the address must lead to the public internet, not to this machine or its network',
    );
  });
});
