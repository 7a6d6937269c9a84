import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { presentProblem, statusOf, titleOf } from '../../../api/problem.js';
import { DomainError, ERROR_CODES } from '../../../domain/errors.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const JSON_TYPE = { 'content-type': 'application/json' };

describe('an error', () => {
  it('is a problem document with exactly the agreed members, whose message is its detail', async () => {
    const answer = await send(api, { path: '/api/v1/events?limit=0' });
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.body).toEqual({
      type: 'urn:problem:invalid_parameter',
      title: 'Invalid parameter',
      status: 400,
      detail: 'limit: must be a whole number from 1 to 1000',
      instance: `urn:request:${answer.headers['x-request-id']}`,
      code: 'invalid_parameter',
      message: 'limit: must be a whole number from 1 to 1000',
      request_id: answer.headers['x-request-id'],
      errors: [{ in: 'query', field: 'limit', message: 'must be a whole number from 1 to 1000' }],
    });
  });

  it('has a status and a title for every code, and each code a status of its family', () => {
    for (const code of ERROR_CODES) {
      expect(statusOf(code), code).toBeGreaterThanOrEqual(400);
      expect(titleOf(code), code).toMatch(/^[A-Z][A-Za-z -]+$/);
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
      if (code.startsWith('invalid_') || code.startsWith('missing_')) expect(statusOf(code), code).toBe(400);
    }
  });

  it('that is a bug shows no internals', () => {
    const problem = presentProblem(new Error('select secret from table'), 'r-1');
    expect(problem).toMatchObject({
      status: 500,
      code: 'internal_error',
      detail: 'Internal error',
      request_id: 'r-1',
    });
    expect(JSON.stringify(problem)).not.toContain('secret');
    const named = presentProblem(new DomainError('internal_error', 'pool 3 is broken'), 'r-1');
    expect(JSON.stringify(named)).not.toContain('pool');
  });

  it('lists every fault of the request at once', async () => {
    const { body } = await api.get('/api/v1/events?limit=0&offset=-1&since=yesterday&include_payload=yes');
    expect(body.errors.map((issue: { field: string }) => issue.field).sort()).toEqual([
      'include_payload',
      'limit',
      'offset',
      'since',
    ]);
    for (const { field } of body.errors) expect(body.message).toContain(`${field}: `);
  });

  it('names a missing parameter as missing, and a duplicate parameter', async () => {
    const missing = await api.get('/api/v1/events/export');
    expect([missing.status, missing.body.code]).toEqual([400, 'missing_parameter']);
    expect(missing.body.errors.map((issue: { field: string }) => issue.field)).toEqual(['start', 'end']);
    const twice = await api.get('/api/v1/events?limit=1&limit=9');
    expect([twice.status, twice.body.code]).toEqual([400, 'invalid_parameter']);
    expect(twice.body.errors).toEqual([
      { in: 'query', field: 'limit', message: 'given twice; give it once' },
    ]);
  });

  it('is never caused by an unknown parameter', async () => {
    expect((await api.get('/api/v1/events?colour=blue&__proto__=x')).status).toBe(200);
  });
});

describe('a request id', () => {
  it('is the client’s where it is well formed, and is returned in header and body', async () => {
    for (const id of ['abc-123', 'A.b_c:d-9', 'x'.repeat(128)]) {
      const answer = await send(api, { path: '/nowhere', headers: { 'x-request-id': id } });
      expect(answer.headers['x-request-id']).toBe(id);
      expect(answer.body.request_id).toBe(id);
    }
  });

  it('is a new one where the client’s is malformed or absent, also on answers that succeed', async () => {
    for (const id of ['', 'a b', 'x'.repeat(129), 'a"b', 'a,b', '{}']) {
      const answer = await send(api, { path: '/healthz', headers: { 'x-request-id': id } });
      expect(answer.headers['x-request-id'], id).toMatch(UUID_V7);
      expect(answer.headers['x-request-id']).toMatch(REQUEST_ID);
    }
    const [first, second] = [await send(api, { path: '/healthz' }), await send(api, { path: '/healthz' })];
    expect(first.headers['x-request-id']).not.toBe(second.headers['x-request-id']);
  });
});

describe('a path and a method', () => {
  it('that are nowhere are 404 route_not_found, with and without a key', async () => {
    for (const path of [
      '/',
      '/api',
      '/api/v1',
      '/api/v1/nothing',
      '/api/v2/events',
      '/api/v1/events/x/y/z',
      '/..%2f..%2fetc/passwd',
      '/%00',
    ]) {
      for (const key of [null, api.adminKey]) {
        const answer = await send(api, { path, key });
        expect([answer.status, answer.body.code], path).toEqual([404, 'route_not_found']);
      }
    }
  });

  it('that do not belong together are 405 with the allowed methods, on every endpoint', async () => {
    const methods = new Map<string, Set<string>>();
    for (const endpoint of ENDPOINTS) {
      const path = endpoint.path.replace(/\{\w+\}/g, 'x');
      const allowed = methods.get(path) ?? new Set();
      allowed.add(endpoint.method.toUpperCase());
      if (endpoint.method === 'get') allowed.add('HEAD');
      methods.set(path, allowed);
    }
    for (const [path, allowed] of methods) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']) {
        if (allowed.has(method)) continue;
        const answer = await send(api, { method, path });
        expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([405, 'method_not_allowed']);
        const named = (answer.headers.allow ?? '').split(', ');
        for (const one of allowed) expect(named, `${method} ${path}`).toContain(one);
        expect(named).not.toContain(method);
      }
      const options = await send(api, { method: 'OPTIONS', path, key: null });
      expect([options.status, options.bytes.length], path).toEqual([204, 0]);
      for (const one of allowed) expect((options.headers.allow ?? '').split(', ')).toContain(one);
      expect(options.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('HEAD answers as GET does, without the body', async () => {
    for (const path of [
      '/api/v1/events',
      '/api/v1/usage/summary',
      '/api/v1/pricing/table',
      '/healthz',
      '/openapi.json',
    ]) {
      const [get, head] = [await send(api, { path }), await send(api, { method: 'HEAD', path })];
      expect([head.status, head.bytes.length, head.headers['content-type']], path).toEqual([
        get.status,
        0,
        get.headers['content-type'],
      ]);
    }
    const refused = await send(api, { method: 'HEAD', path: '/api/v1/events', key: null });
    expect([refused.status, refused.bytes.length]).toEqual([401, 0]);
    const missing = await send(api, { method: 'HEAD', path: '/nowhere' });
    expect([missing.status, missing.bytes.length]).toEqual([404, 0]);
  });

  it('lead to the same endpoint with a trailing slash, without a redirect', async () => {
    for (const path of [
      '/api/v1/events/',
      '/api/v1/events/?limit=3',
      '/api/v1/usage/summary/',
      '/api/v1/pricing/table/',
      '/healthz/',
    ]) {
      expect((await send(api, { path })).status, path).toBe(200);
    }
    const posted = await send(api, {
      path: '/api/v1/ingest/events/',
      key: api.ingestKey,
      body: '{"events":[]}',
      headers: JSON_TYPE,
    });
    expect(posted.status).toBe(202);
  });

  it('longer than 8 KB in its address is 414', async () => {
    const fits = `/api/v1/events?x=${'y'.repeat(8_192 - 17)}`;
    expect(Buffer.byteLength(fits)).toBe(8_192);
    expect((await send(api, { path: fits })).status).toBe(200);
    const answer = await send(api, { path: `${fits}y` });
    expect([answer.status, answer.body.code]).toEqual([414, 'uri_too_long']);
  });

  it('an Accept that we do not serve still gets the documented type', async () => {
    const answer = await send(api, { path: '/api/v1/events', headers: { accept: 'application/pdf' } });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
  });
});

describe('a body', () => {
  const post = (path: string, body: Buffer | string, headers: Record<string, string>) =>
    send(api, { path, key: api.ingestKey, body, headers });

  it('of a media type that is not read is 415, naming those that are', async () => {
    for (const path of ['/api/v1/ingest/trace', '/api/v1/ingest/events', '/api/v1/ingest/observability']) {
      for (const type of [
        'text/plain',
        'application/xml',
        'multipart/form-data; boundary=x',
        'application/x-www-form-urlencoded',
      ]) {
        const answer = await post(path, '{}', { 'content-type': type });
        expect([answer.status, answer.body.code], `${path} ${type}`).toEqual([415, 'unsupported_media_type']);
        expect(answer.body.message).toContain('application/json');
        expect(answer.headers['accept-encoding']).toBe('gzip, deflate');
      }
    }
  });

  it('with a charset, or without any media type, is read as JSON', async () => {
    for (const headers of [
      {},
      { 'content-type': 'application/json; charset=utf-8' },
      { 'content-type': 'Application/JSON' },
    ]) {
      expect((await post('/api/v1/ingest/trace', '{"resourceSpans":[]}', headers)).status).toBe(202);
    }
  });

  it('that is no JSON is 400 invalid_json with the place, never an echo of unprintable bytes', async () => {
    for (const body of ['{', '', '   ', '{"a":}', 'null null', '{"a":"\u0001\u00ff"']) {
      const answer = await post('/api/v1/ingest/events', body, JSON_TYPE);
      expect([answer.status, answer.body.code], body).toEqual([400, 'invalid_json']);
      expect(answer.body.message).toMatch(/^[\x20-\x7e]+$/);
    }
  });

  it('of the wrong shape is 400 invalid_body, naming the field, and stores nothing', async () => {
    for (const body of ['{}', '{"events":{}}', '{"events":null}', '"text"', '1', 'null', 'true']) {
      const answer = await post('/api/v1/ingest/events', body, JSON_TYPE);
      expect([answer.status, answer.body.code], body).toEqual([400, 'invalid_body']);
      expect(answer.body.errors[0]).toMatchObject({ in: 'body', field: 'events' });
    }
    for (const body of [
      '[]',
      '"x"',
      '{"resourceSpans":{}}',
      '{"resourceSpans":[{"scopeSpans":1}]}',
      'null',
    ]) {
      const answer = await post('/api/v1/ingest/trace', body, JSON_TYPE);
      expect([answer.status, answer.body.code], body).toEqual([400, 'invalid_body']);
    }
    expect((await api.get('/api/v1/events')).body.events).toEqual([]);
  });
});

describe('no request makes a 500', () => {
  it('not by a text that cannot be stored, in whichever field of whichever body', async () => {
    const org = await api.addOrganization();
    const price = { provider: 'openai', model: 'gpt-4o', effective_from: '2026-01-01' };
    const key = { provider: 'openai', provider_key_id: 'k', name: 'k', status: 'active' };
    const put = (path: string, body: unknown) =>
      send(api, { method: 'PUT', path, key: org.adminKey, body: JSON.stringify(body), headers: JSON_TYPE });
    for (const odd of ['a\u0000b', '\ud800', '\udc00\ud800']) {
      const source = { document: odd };
      const contract = { ...price, discount_percent: 5, source };
      const refused = [
        await api.post('/api/v1/pricing/contract-rates', contract, org.adminKey),
        await api.post(
          '/api/v1/pricing/overrides',
          { ...price, model: odd, rates: { input: 1, output: 1 } },
          org.adminKey,
        ),
        await put('/api/v1/provider-keys', { items: [key, { ...key, name: odd }] }),
      ];
      expect(refused.map(({ status, body }) => [status, body.errors[0].field])).toEqual([
        [400, 'source.document'],
        [400, 'model'],
        [400, 'items.1.name'],
      ]);
    }
  });
});
