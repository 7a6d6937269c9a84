import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { IncomingBody } from '../../../api/pipeline/body.js';
import { receiveFile } from '../../../api/pipeline/multipart.js';
import { statusOf } from '../../../api/problem.js';
import { DomainError } from '../../../domain/errors.js';

const MAX_BYTES = 3_000_000;
const CHUNK_BYTES = 1_000_000;
let server: Server | undefined;

afterEach(() => {
  server?.close();
});

/** A server that receives one form and returns what it stored. */
async function serve(store: (chunk: Buffer) => Promise<void>): Promise<string> {
  server = createServer(async (incoming, response) => {
    try {
      const file = await receiveFile(new IncomingBody(incoming), {
        what: 'the bill',
        emptyCode: 'invalid_billing_file',
        tooLargeRemedy: 'send it in parts',
        maxBytes: MAX_BYTES,
        chunkBytes: CHUNK_BYTES,
        store,
      });
      response.end(JSON.stringify(file));
    } catch (error) {
      response.statusCode = error instanceof DomainError ? statusOf(error.code) : 500;
      response.end(JSON.stringify({ code: (error as DomainError).code, message: (error as Error).message }));
    }
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends `bytes` of a file in a chunked body, as long as the other side takes them. */
function stream(url: string, bytes: number): Promise<{ status: number; body: { code: string } }> {
  return new Promise((resolve, reject) => {
    const upload = request(
      url,
      {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=b', 'transfer-encoding': 'chunked' },
      },
      (response) => {
        let text = '';
        response.on('data', (data: Buffer) => {
          text += data.toString();
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
      },
    );
    upload.on('error', reject);
    upload.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n');
    const piece = Buffer.alloc(100_000, 0x61);
    let sent = 0;
    const more = () => {
      while (sent < bytes) {
        sent += piece.length;
        if (!upload.write(piece)) return void upload.once('drain', more);
      }
      upload.end('\r\n--b--\r\n');
    };
    more();
  });
}

/** Sends a form as it is written. */
async function post(url: string, body: string, type = 'multipart/form-data; boundary=b') {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const field = (name: string, value = 'x') =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const FILE = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\ncontent\r\n';
const withHeaders = (lines: readonly string[]) =>
  `--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n${lines.join('\r\n')}\r\n\r\ncontent\r\n`;
const fields = (count: number) => Array.from({ length: count }, (_, index) => field(`f${index}`));
const END = '--b--\r\n';

describe('a form', () => {
  it.each<[string, string]>([
    ['a file without a name', '--b\r\nContent-Disposition: form-data; filename="a"\r\n\r\nx\r\n'],
    [
      'a file with an empty name',
      '--b\r\nContent-Disposition: form-data; name=""; filename="a"\r\n\r\nx\r\n',
    ],
    [
      'bytes of no name',
      '--b\r\nContent-Disposition: form-data\r\nContent-Type: application/octet-stream\r\n\r\nx\r\n',
    ],
    ['a field without a name', `--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n${FILE}`],
    ['a field that is given twice', field('provider') + field('provider', 'y') + FILE],
    ['the same field around the file', field('provider') + FILE + field('provider', 'y')],
    ['nine fields', fields(9).join('') + FILE],
    ['a field of more than 4,096 bytes', field('provider', 'x'.repeat(4_097)) + FILE],
    ['a part’s header of more than 16 KiB', withHeaders([`X-Long: ${'x'.repeat(17_000)}`])],
    [
      'a part’s header of hundreds of lines',
      withHeaders(Array.from({ length: 900 }, (_, at) => `X-${at}: ${'y'.repeat(20)}`)),
    ],
    ['21 parts', '--b\r\nX-Nothing: 1\r\n\r\nx\r\n'.repeat(21) + FILE],
    ['a part whose header is no header', `--b\r\nno header at all\r\n\r\nx\r\n${FILE}`],
  ])('with %s is refused, and the server continues', async (_, parts) => {
    const url = await serve(async () => undefined);
    const { status, body } = await post(url, parts + END);
    expect([status, body.code], String(body.message)).toEqual([400, 'invalid_multipart']);
    expect((await post(url, FILE + END)).status).toBe(200);
  });

  it.each<[string, string]>([
    ['no boundary', 'multipart/form-data'],
    ['an empty boundary', 'multipart/form-data; boundary='],
    ['another boundary', 'multipart/form-data; boundary=other'],
  ])('that names %s is refused', async (_, type) => {
    const url = await serve(async () => undefined);
    const { status, body } = await post(url, FILE + END, type);
    expect(status).toBe(400);
    expect(['invalid_multipart', 'missing_parameter']).toContain(body.code);
  });

  it('may have eight fields, before and after the file, with names that mean something to JavaScript', async () => {
    const url = await serve(async () => undefined);
    const six = fields(6).join('');
    const { status, body } = await post(url, six + FILE + field('__proto__') + field('constructor') + END);
    expect(status, String(body.message)).toBe(200);
    expect(Object.keys(body.fields as object).sort()).toEqual(
      ['f0', 'f1', 'f2', 'f3', 'f4', 'f5', '__proto__', 'constructor'].sort(),
    );
    expect(body).toMatchObject({ filename: 'a.csv', sizeBytes: 7 });
  });
});

describe('a file in a form', () => {
  it('arrives in chunks of the size that is asked for, in order, each waited for', async () => {
    const sizes: number[] = [];
    let under = 0;
    const url = await serve(async (chunk) => {
      under += 1;
      expect(under).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      sizes.push(chunk.length);
      under -= 1;
    });
    expect((await stream(url, 2_500_000)).status).toBe(200);
    expect(sizes).toEqual([1_000_000, 1_000_000, 500_000]);
  });

  it('of unknown length is refused with 413 as soon as it passes the limit, and the client reads the answer', async () => {
    let stored = 0;
    const url = await serve(async (chunk) => {
      stored += chunk.length;
    });
    const { status, body } = await stream(url, 20_000_000);
    expect([status, body.code]).toEqual([413, 'payload_too_large']);
    expect(stored).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('whose storing fails answers with that failure', async () => {
    const url = await serve(async () => {
      throw new DomainError('storage_full', 'full');
    });
    const { status, body } = await stream(url, 2_500_000);
    expect([status, body.code]).toEqual([503, 'storage_full']);
  });
});
