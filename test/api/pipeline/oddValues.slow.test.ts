import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import type { Endpoint } from '../../../api/endpoint.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { send } from '../support/requests.js';

const JSON_TYPE = { 'content-type': 'application/json' };

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

describe('no request makes a 500', () => {
  it('not by any odd value in any parameter of any endpoint', async () => {
    const odd = [
      '',
      ' ',
      '%00',
      '%ff%fe',
      '%0a',
      "'",
      '"',
      '%27%3B--',
      '-1',
      '0',
      '1e400',
      'NaN',
      '99999999999999999999',
      '%F0%9F%98%80',
      '0001-01-01',
      '0100-01-01',
      '1969-12-31',
      '9999-12-31',
      '0001-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999999Z',
      '0001-01',
      '0100-01',
      '1969-12',
      '9999-12',
      '2026-02-30',
      '2026-01-01T00:00:00%2B14:00',
      '0001-01-01T00:00:00%2B14:00',
      'true',
      '__proto__',
      'constructor',
      'x'.repeat(600),
      Buffer.from('["99999999999999999","00000000-0000-0000-0000-000000000000"]').toString('base64url'),
      Buffer.from('["-999999999999999999","00000000-0000-0000-0000-000000000000"]').toString('base64url'),
      Buffer.from('["1","2"]').toString('base64url'),
      Buffer.from('[1,2]').toString('base64url'),
      Buffer.from('["999999999"]').toString('base64url'),
    ];
    const fields = (schema: unknown): string[] =>
      typeof schema === 'object' && schema !== null && 'shape' in schema
        ? Object.keys(schema.shape as object)
        : [];
    const seen = new Set<string>();
    // Value by value, so that no endpoint gets many requests at once, because some are limited. By the value's place,
    // so that an endpoint without a place for it is called once.
    const asked = new Map<string, { endpoint: Endpoint; path: string }>();
    for (const value of odd) {
      for (const endpoint of ENDPOINTS) {
        const params = fields(endpoint.params);
        const path = endpoint.path.replace(/\{\w+\}/g, params.length > 0 ? value || 'x' : 'x');
        const queries = fields(endpoint.query).map((name) => `?${name}=${value}`);
        if (endpoint.operationId === 'exportEvents')
          queries.push(`?start=${value}&end=9999-12-31`, `?start=2026-01-01&end=${value}`);
        for (const query of ['', ...queries])
          asked.set(`${endpoint.method} ${path}${query}`, { endpoint, path: path + query });
      }
    }
    const ask = async ({ endpoint, path }: { endpoint: Endpoint; path: string }) => {
      const body = endpoint.method === 'get' ? {} : { body: '{}', headers: JSON_TYPE };
      const answer = await send(api, { method: endpoint.method.toUpperCase(), path, ...body });
      expect(answer.status, `${endpoint.method} ${path}: ${answer.bytes.subarray(0, 300)}`).toBeLessThan(500);
      seen.add(endpoint.operationId);
    };
    const waiting = asked.values();
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        for (const one of waiting) await ask(one);
      }),
    );
    expect(seen.size).toBe(ENDPOINTS.length);
  }, 300_000);
});
