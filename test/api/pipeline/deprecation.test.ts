import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createApp, ENDPOINTS } from '../../../api/app.js';
import type { ApiDeps } from '../../../api/deps.js';
import { defineEndpoint } from '../../../api/endpoint.js';
import {
  assertNotice,
  type Deprecation,
  deprecationHeaders,
  NOTICE_DAYS,
} from '../../../api/pipeline/deprecation.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { send } from '../support/requests.js';

const OLD: Deprecation = {
  since: '2026-03-01',
  sunset: '2026-12-31',
  link: '/docs#old-things',
  successor: '/api/v2/things',
};

const listOldThings = defineEndpoint({
  operationId: 'listOldThings',
  method: 'get',
  path: '/api/v1/old-things',
  tag: 'Things',
  summary: 'Things as they were',
  access: { scope: 'events:read', workspace: 'shared' },
  deprecated: OLD,
  query: z.object({ cursor: z.string().optional() }),
  responses: {
    200: {
      description: 'A page of things',
      schema: z.strictObject({ things: z.array(z.string()), next_cursor: z.string() }),
    },
  },
  problems: [],
  handle: async () => ({ status: 200, body: { things: ['one'], next_cursor: 'abc' } }),
});

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({ endpoints: [...ENDPOINTS, listOldThings] });
});
afterAll(() => api?.close());

describe('a deprecated endpoint', () => {
  it('names on every answer the dates of its deprecation and end, the document to read and its replacement', async () => {
    const answers = [
      await send(api, { path: '/api/v1/old-things' }),
      await send(api, { path: '/api/v1/old-things?cursor=a&cursor=b' }),
      await send(api, { path: '/api/v1/old-things', key: null }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 401]);
    for (const { headers } of answers) {
      expect(headers.deprecation).toBe(`@${Date.UTC(2026, 2, 1) / 1_000}`);
      expect(headers.sunset).toBe('Thu, 31 Dec 2026 00:00:00 GMT');
      expect(headers.link).toContain('</docs#old-things>; rel="deprecation"; type="text/html"');
      expect(headers.link).toContain('</api/v2/things>; rel="successor-version"');
    }
  });

  it('keeps the link to its next page beside them', async () => {
    const { headers } = await send(api, { path: '/api/v1/old-things' });
    expect(headers.link).toContain('</api/v1/old-things?cursor=abc>; rel="next"');
    expect(headers.link).toContain('rel="deprecation"');
  });

  it('is marked in the documents, with its headers; others are not', async () => {
    const { body: document } = await send(api, { path: '/openapi.json', key: null });
    const operation = document.paths['/api/v1/old-things'].get;
    expect(operation.deprecated).toBe(true);
    expect(Object.keys(operation.responses['200'].headers)).toEqual(
      expect.arrayContaining(['Deprecation', 'Sunset', 'Link']),
    );
    expect(document.paths['/api/v1/events'].get.deprecated).toBeUndefined();
  });

  it('leaves the answers of other endpoints unchanged', async () => {
    const { headers } = await send(api, { path: '/api/v1/events' });
    expect([headers.deprecation, headers.sunset]).toEqual([undefined, undefined]);
  });
});

describe('the notice period of a deprecated endpoint', () => {
  const endpointsWith = (deprecated: Partial<Deprecation>) => [
    { ...listOldThings, deprecated: { ...OLD, ...deprecated } },
  ];

  it(`is ${NOTICE_DAYS} days or more, or the service does not start`, () => {
    const start = (deprecated: Partial<Deprecation>) => () =>
      createApp({ logger: undefined } as unknown as ApiDeps, endpointsWith(deprecated));
    expect(start({ since: '2026-03-01', sunset: '2026-08-27' })).toThrow('the notice of listOldThings');
    expect(() => assertNotice(endpointsWith({ since: '2026-03-01', sunset: '2026-08-28' }))).not.toThrow();
    expect(() => assertNotice(ENDPOINTS)).not.toThrow();
  });

  it.each([
    { sunset: '2026-02-30' },
    { since: '2026-13-01' },
    { since: 'yesterday' },
    { sunset: '2026-12-31T00:00:00Z' },
    { link: 'http://example.com' },
    { link: 'docs' },
    { link: '/a>; rel="x' },
    { link: '/a\r\nSet-Cookie: x' },
    { successor: 'v2' },
  ])('that cannot be written as headers keeps the service from starting: %o', (wrong) => {
    expect(() => assertNotice(endpointsWith(wrong))).toThrow('listOldThings');
  });

  it('accepts any two days that lie far enough apart, and the headers name these days', () => {
    const dayOf = (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10);
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 40_000 }),
        fc.integer({ min: -400, max: 4_000 }),
        (first, length) => {
          const days = { since: dayOf(first), sunset: dayOf(first + length) };
          const take = () => assertNotice(endpointsWith(days));
          if (length < NOTICE_DAYS) {
            expect(take).toThrow();
            return;
          }
          expect(take).not.toThrow();
          const headers = deprecationHeaders({ ...OLD, ...days });
          expect(headers.Deprecation).toBe(`@${first * 86_400}`);
          expect(Date.parse(headers.Sunset ?? '')).toBe((first + length) * 86_400_000);
        },
      ),
    );
  });
});
