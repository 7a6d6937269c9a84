import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { IncomingBody } from '../../api/body.js';
import { receiveFile } from '../../api/multipart.js';
import { statusOf } from '../../api/problem.js';
import { DomainError } from '../../domain/errors.js';

const MAX_BYTES = 3_000_000;
const CHUNK_BYTES = 1_000_000;
let server: Server | undefined;

afterEach(() => {
  server?.close();
});

/** A server that receives one form and tells what it stored. */
async function serve(store: (chunk: Buffer) => Promise<void>): Promise<string> {
  server = createServer(async (incoming, response) => {
    try {
      const file = await receiveFile(new IncomingBody(incoming), {
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
