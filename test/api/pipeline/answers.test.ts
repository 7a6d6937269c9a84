import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { anEvent, aTime, ingest, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
  await ingest(
    api,
    Array.from({ length: 30 }, (_, index) => anEvent({ timestamp: aTime(index), team_id: `t${index % 2}` })),
  );
});
afterAll(() => api.close());

const window = `start=${aTime(100)}&end=${aTime(0)}`;

describe('a compressed answer', () => {
  it('comes where the client asks for it and the answer is 1 KB or more, and holds the same', async () => {
    for (const path of [
      '/api/v1/events',
      `/api/v1/events/export?${window}`,
      `/api/v1/events/export?${window}&format=json`,
      '/openapi.json',
      '/docs/swagger-ui.css',
    ]) {
      const plain = await send(api, { path });
      expect(plain.headers['content-encoding'], path).toBeUndefined();
      for (const [asked, encoding, expand] of [
        ['gzip, deflate, br', 'gzip', gunzipSync],
        ['br', 'br', brotliDecompressSync],
        ['gzip;q=0.5, br;q=0.9', 'br', brotliDecompressSync],
      ] as const) {
        const answer = await send(api, { path, headers: { 'accept-encoding': asked } });
        expect([answer.status, answer.headers['content-encoding'], answer.headers.vary], path).toEqual([
          200,
          encoding,
          'Accept-Encoding',
        ]);
        expect(answer.headers['content-type']).toBe(plain.headers['content-type']);
        expect(expand(answer.bytes).toString()).toBe(plain.bytes.toString());
        expect(answer.bytes.length).toBeLessThan(plain.bytes.length / 2);
      }
      expect(plain.headers.vary).toBe('Accept-Encoding');
    }
  });

  it('does not come where it is not asked for, or for a small answer', async () => {
    for (const asked of ['identity', 'zstd', 'gzip;q=0']) {
      const answer = await send(api, { path: '/api/v1/events', headers: { 'accept-encoding': asked } });
      expect(answer.headers['content-encoding'], asked).toBeUndefined();
    }
    for (const path of ['/healthz', '/nowhere', '/api/v1/events?limit=0']) {
      const answer = await send(api, { path, headers: { 'accept-encoding': 'gzip' } });
      expect(answer.headers['content-encoding'], path).toBeUndefined();
    }
  });
});

describe('a page of a list', () => {
  it('links to the next one, with every filter that it was asked with, until the last', async () => {
    for (const list of ['/api/v1/events', '/api/v1/events/', '/api/v1/usage/records']) {
      const seen: number[] = [];
      let path: string | undefined = `${list}?limit=4&offset=2&team_id=t1`;
      while (path !== undefined) {
        const answer = await send(api, { path });
        expect(answer.status, path).toBe(200);
        seen.push(answer.body.count);
        const link = String(answer.headers.link ?? '');
        expect(link !== '').toBe(answer.body.next_cursor !== null);
        path = /^<(\/[^>]+)>; rel="next"$/.exec(link)?.[1];
      }
      expect(seen, list).toEqual([4, 4, 4, 1]);
    }
  });
});
