import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { type RawRequest, send } from '../support/requests.js';

const PAGE = 'https://costs.example.com';
const OTHER = 'http://localhost:5173';

let api: TestApi;
let shared: TestApi;

beforeAll(async () => {
  api = await startTestApi();
  shared = await startTestApi({ database: api.database, corsOrigins: [PAGE, OTHER] });
});
afterAll(async () => {
  await shared.close();
  await api.close();
});

/** Every kind of answer: each endpoint with and without a key, and unknown paths. */
function everyKind(): RawRequest[] {
  const pages = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/nowhere', `/${'x'.repeat(9_000)}`];
  return [
    ...ENDPOINTS.flatMap(({ method, path }) => {
      const request = { method: method.toUpperCase(), path: path.replace(/\{\w+\}/g, randomUUID()) };
      return [request, { ...request, key: null }, { ...request, method: 'OPTIONS', key: null }];
    }),
    ...pages.map((path) => ({ path })),
    { method: 'TRACE', path: '/api/v1/events' },
    { method: 'HEAD', path: '/api/v1/events' },
    { path: '/api/v1/ingest/events', body: '{', headers: { 'content-type': 'application/json' } },
  ];
}

const corsOf = (headers: IncomingHttpHeaders) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

describe('every answer', () => {
  it('has headers that mark it as data: not to be sniffed, framed, run, cached or disclosed to other sites', async () => {
    for (const request of everyKind()) {
      const { headers, status } = await send(api, request);
      const place = `${request.method ?? 'GET'} ${request.path.slice(0, 80)} ${status}`;
      expect(headers, place).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'content-security-policy':
          "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      });
      expect(headers['permissions-policy'], place).toMatch(/^camera=\(\), /);
      expect(headers['cache-control'], place).toMatch(
        /^(?:no-store|(?:private, )?no-cache|public, max-age=300, .*)$/,
      );
      expect([headers.server, headers['x-powered-by']], place).toEqual([undefined, undefined]);
      // Signing out removes the cookie; test/api/access/sessions.test.ts has the one of a sign-in.
      const isSignOut = request.method === 'DELETE' && /\/sessions?$/.test(request.path);
      if (!isSignOut) expect(headers['set-cookie'], place).toBeUndefined();
      expect(headers['strict-transport-security'], place).toBeUndefined();
      expect(corsOf(headers), place).toEqual([]);
    }
  });

  it('asks browsers to insist on TLS exactly where the request came over TLS', async () => {
    const hsts = async (from: TestApi, proto: string) =>
      (await send(from, { path: '/healthz', headers: { 'x-forwarded-proto': proto } })).headers[
        'strict-transport-security'
      ];
    for (const proto of ['https', 'HTTPS', 'https, http', ' https ,http'])
      expect(await hsts(api, proto), proto).toBe('max-age=31536000');
    for (const proto of ['http', '', 'http, https', 'httpsx'])
      expect(await hsts(api, proto), proto).toBeUndefined();
    const forgetting = await startTestApi({ database: api.database, hstsMaxAgeSeconds: 0 });
    expect(await hsts(forgetting, 'https')).toBe('max-age=0');
    await forgetting.close();
  });
});

describe('a page of another origin', () => {
  it('reads nothing and sends nothing where no origin is listed', async () => {
    const preflight = {
      method: 'OPTIONS',
      path: '/api/v1/events',
      key: null,
      headers: { origin: PAGE, 'access-control-request-method': 'GET' },
    };
    expect(corsOf((await send(api, preflight)).headers)).toEqual([]);
    const asked = await send(api, { path: '/api/v1/events', headers: { origin: PAGE } });
    expect([asked.status, corsOf(asked.headers), asked.headers.vary]).toEqual([200, [], undefined]);
  });

  it('reads answers and problems where its origin is listed, without cookies', async () => {
    for (const origin of [PAGE, OTHER]) {
      for (const path of ['/api/v1/events', '/api/v1/events?limit=0', '/nowhere', '/api/v1/pricing/table']) {
        const { headers } = await send(shared, { path, headers: { origin } });
        expect(headers['access-control-allow-origin'], path).toBe(origin);
        expect(headers['access-control-expose-headers'], path).toContain('Retry-After');
        expect(headers['access-control-allow-credentials'], path).toBeUndefined();
        expect(headers.vary, path).toContain('Origin');
      }
    }
  });

  it('that is like a listed one is not listed', async () => {
    for (const origin of [
      'http://costs.example.com',
      'https://costs.example.com:8443',
      'https://costs.example.com.evil.example',
      'https://evil-costs.example.com',
      'https://COSTS.example.com',
      'null',
      '*',
      `${PAGE}, ${OTHER}`,
    ]) {
      const asked = await send(shared, { path: '/api/v1/events', headers: { origin } });
      expect([asked.status, corsOf(asked.headers), asked.headers.vary], origin).toEqual([200, [], 'Origin']);
      const { headers } = await send(shared, {
        method: 'OPTIONS',
        path: '/api/v1/events',
        key: null,
        headers: { origin, 'access-control-request-method': 'GET' },
      });
      expect(corsOf(headers), origin).toEqual([]);
    }
  });

  it('gets the allowed methods of an address from a preflight, without a key', async () => {
    const asked = await send(shared, {
      method: 'OPTIONS',
      path: '/api/v1/pricing/overrides',
      key: null,
      headers: { origin: PAGE, 'access-control-request-method': 'POST' },
    });
    expect([asked.status, asked.bytes.length]).toEqual([204, 0]);
    expect(asked.headers['access-control-allow-methods']).toBe(asked.headers.allow);
    expect(asked.headers['access-control-allow-methods']?.split(', ').sort()).toEqual([
      'GET',
      'HEAD',
      'POST',
    ]);
    expect(asked.headers['access-control-allow-headers']).toMatch(/Authorization.*Idempotency-Key/);
    expect(asked.headers['access-control-allow-origin']).toBe(PAGE);
    expect(Number(asked.headers['access-control-max-age'])).toBeGreaterThan(0);
  });
});
