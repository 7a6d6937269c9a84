import { connect } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { uploadBill } from '../../support/bills.js';
import { type RawAnswer, type RawRequest, send } from '../support/requests.js';

/** Poison inputs by their number in docs/reliability.md. */
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const JSON_PATHS = ['/api/v1/ingest/trace', '/api/v1/ingest/events', '/api/v1/ingest/observability'];
const MIB = 1_048_576;

function post(
  org: TestOrganization,
  path: string,
  body: Buffer | string | Buffer[],
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return send(api, { path, body, headers: { ...JSON_TYPE, ...headers }, key: org.ingestKey });
}

describe('P-09: a body far beyond the limit', () => {
  it('is answered 413 with a problem that every kind of client gets to read', async () => {
    const small = await startTestApi({ database: api.database, ingestMaxBodyBytes: MIB });
    const body = Buffer.from(`{"events":[]}${' '.repeat(30 * MIB)}`);
    const path = '/api/v1/ingest/events';
    const chunks = Array.from({ length: 30 }, (_, index) => body.subarray(index * MIB, (index + 1) * MIB));
    const headers = { ...JSON_TYPE, connection: 'keep-alive' };
    const byNode = await send(small, { path, body, headers });
    const byChunks = await send(small, { path, body: chunks, headers });
    const byFetch = await fetch(small.baseUrl + path, {
      method: 'POST',
      body,
      headers: { ...JSON_TYPE, authorization: `Bearer ${small.adminKey}` },
    });
    // Like curl, which sends the body only after the server has answered 100.
    const byExpect = await send(small, {
      path,
      body: chunks,
      headers: { ...headers, expect: '100-continue' },
    });
    for (const answer of [byNode, byChunks, byExpect]) {
      expect([answer.status, answer.body.code]).toEqual([413, 'payload_too_large']);
      expect(answer.headers.connection).not.toBe('close');
    }
    expect([byFetch.status, ((await byFetch.json()) as { code: string }).code]).toEqual([
      413,
      'payload_too_large',
    ]);
    expect((await small.get('/api/v1/events')).status).toBe(200);
    await small.close();
  });

  it('leaves its connection fit for the next request, whether its length was announced or not', async () => {
    const small = await startTestApi({ database: api.database, ingestMaxBodyBytes: 1_000 });
    const head = `POST /api/v1/ingest/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${small.adminKey}\r\nContent-Type: application/json\r\n`;
    const noise = 'x'.repeat(500_000);
    const bodies = [
      `Content-Length: ${noise.length}\r\n\r\n${noise}`,
      `Transfer-Encoding: chunked\r\n\r\n${noise.length.toString(16)}\r\n${noise}\r\n0\r\n\r\n`,
    ];
    for (const body of bodies) {
      const text = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(new URL(small.baseUrl).port), '127.0.0.1');
        let received = '';
        socket.on('error', reject);
        socket.on('data', (chunk) => {
          received += chunk.toString();
          if (received.includes('"accepted":0')) socket.destroy();
        });
        socket.on('close', () => resolve(received));
        socket.setTimeout(60_000, () => socket.destroy());
        socket.write(head + body);
        socket.write(`${head}Content-Length: 13\r\n\r\n{"events":[]}`);
      });
      expect([...text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).toEqual(['413', '202']);
    }
    await small.close();
  });
});

describe('P-10: a body that inflates to 200 MB', () => {
  it('is 413, and memory stays as it was', async () => {
    const org = await api.addOrganization();
    const member = gzipSync(Buffer.alloc(MIB, 0x20));
    const bomb = Buffer.concat(Array(200).fill(member));
    const deflated = deflateSync(Buffer.alloc(64 * MIB, 0x20));
    expect(bomb.length).toBeLessThan(220_000);
    await post(org, '/api/v1/ingest/events', bomb, { 'content-encoding': 'gzip' });
    const before = process.memoryUsage.rss();
    for (const path of [...JSON_PATHS, '/v1/traces']) {
      const answer = await post(org, path, bomb, { 'content-encoding': 'gzip' });
      expect([answer.status, answer.body.code], path).toEqual([413, 'payload_too_large']);
      const other = await post(org, path, deflated, { 'content-encoding': 'deflate' });
      expect(other.status, path).toBe(413);
    }
    // Eight times 200 MB would not fit in here.
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * MIB);
  });
});

describe('P-11: a body whose compression is broken', () => {
  it('is 400 invalid_encoding, however it is broken, small or large', async () => {
    const org = await api.addOrganization();
    const noise = Array.from({ length: 200_000 }, (_, index) =>
      String(Math.imul(index, 2_654_435_761) >>> 0),
    ).join('');
    for (const text of ['{"events":[]}', `{"events":[],"noise":"${noise}"}`]) {
      const whole = gzipSync(text);
      const flipped = Buffer.from(whole);
      flipped.writeUInt8(flipped.readUInt8(whole.length - 6) ^ 0xff, whole.length - 6);
      const cases: [Buffer | string, string][] = [
        [whole.subarray(0, whole.length - 9), 'gzip'],
        [whole.subarray(0, 5), 'gzip'],
        [flipped, 'gzip'],
        [text, 'gzip'],
        ['', 'gzip'],
        [deflateSync(text).subarray(0, -3), 'deflate'],
        [text, 'deflate'],
        [whole, 'deflate'],
        [deflateSync(text), 'gzip'],
      ];
      for (const [body, encoding] of cases) {
        const answer = await post(org, '/api/v1/ingest/events', body, { 'content-encoding': encoding });
        expect([answer.status, answer.body.code], `${encoding} of ${body.length} bytes`).toEqual([
          400,
          'invalid_encoding',
        ]);
      }
      expect((await post(org, '/api/v1/ingest/events', whole, { 'content-encoding': 'gzip' })).status).toBe(
        202,
      );
    }
  });
});

describe('P-12: a body in an encoding that is not read', () => {
  it('is 415 and names the accepted encodings', async () => {
    const org = await api.addOrganization();
    for (const path of [...JSON_PATHS, '/v1/traces', '/api/public/otel/v1/traces']) {
      for (const encoding of ['zstd', 'br', 'compress', 'gzip, gzip', 'x']) {
        const answer = await post(org, path, '{}', { 'content-encoding': encoding });
        expect([answer.status, answer.body.code], `${path} ${encoding}`).toEqual([
          415,
          'unsupported_media_type',
        ]);
        expect(answer.headers['accept-encoding']).toBe('gzip, deflate');
      }
    }
  });
});

describe('P-26: an invalid multipart form', () => {
  it('is refused with a sentence, and nothing of it is kept', async () => {
    const org = await api.addOrganization();
    const part = (name: string, value: string, filename?: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n\r\n${value}\r\n`;
    const form = (parts: string[], headers: Record<string, string> = {}, end = '--b--\r\n') => ({
      path: '/api/v1/billing-imports',
      key: org.adminKey,
      body: parts.join('') + end,
      headers: { 'content-type': 'multipart/form-data; boundary=b', ...headers },
    });
    const provider = part('provider', 'openai');
    const file = part('file', '{"object":"page","data":[]}', 'a.json');
    const manyParts = Array.from({ length: 1_000 }, (_, index) => part(`f${index}`, 'x'));
    const cases: [string, RawRequest, number, string][] = [
      [
        'no boundary',
        form([provider, file], { 'content-type': 'multipart/form-data' }),
        400,
        'invalid_multipart',
      ],
      ['1,000 parts', form(manyParts), 400, 'invalid_multipart'],
      ['no file', form([provider]), 400, 'missing_parameter'],
      ['two files', form([provider, file, file]), 400, 'invalid_multipart'],
      [
        '2 GB announced',
        form([provider, file], { 'content-length': '2000000000' }),
        413,
        'payload_too_large',
      ],
      [
        'a header of 20 KB',
        form([provider, part('file', 'x', 'n'.repeat(20_000))]),
        400,
        'invalid_multipart',
      ],
      ['an end that never comes', form([provider, file], {}, ''), 400, 'invalid_multipart'],
    ];
    for (const [name, request, status, code] of cases) {
      const answer = await send(api, request);
      expect([answer.status, answer.body?.code], name).toEqual([status, code]);
      expect(answer.body.message.length, name).toBeGreaterThan(10);
    }
    const kept = await api.database.superuser.query(
      'select from billing_pages where org_id = $1 union all select from billing_sources where org_id = $1',
      [org.orgId],
    );
    expect(kept.rowCount).toBe(0);
    for (const fileFirst of [false, true]) {
      const taken = await uploadBill(
        api,
        `{"object":"page","data":[],"n":${fileFirst}}`,
        { provider: 'openai' },
        { key: org.adminKey, fileFirst },
      );
      expect(taken.status).toBe(202);
    }
  });
});
