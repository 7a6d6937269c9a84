import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';

/** Smaller answers gain nothing. */
const BYTES_MIN = 1_024;
const COMPRESSIBLE = /^(?:application\/(?:[a-z.]+\+)?(?:json|x-ndjson|javascript)|text\/)/;

/** Quick settings: an answer of a megabyte must not hold up the others. */
const GZIP = { level: 4 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

const compress = { gzip: promisify(gzip), br: promisify(brotliCompress) };

/**
 * Compresses an answer of 1 KB or more, or one that is streamed, where the client asks for it. A stream that breaks
 * breaks the compressed one too: a client never sees a shortened body that looks whole.
 */
export async function compressAnswer(ctx: Context): Promise<void> {
  const { body } = ctx;
  const isStream = typeof body === 'object' && body !== null && 'pipe' in body;
  if (!isStream && typeof body !== 'string' && !Buffer.isBuffer(body)) return;
  if (!COMPRESSIBLE.test(ctx.response.get('Content-Type'))) return;
  if (!isStream && Buffer.byteLength(body) < BYTES_MIN) return;
  ctx.vary('Accept-Encoding');
  const encoding = ctx.acceptsEncodings('gzip', 'br', 'identity');
  if (ctx.method === 'HEAD' || (encoding !== 'gzip' && encoding !== 'br')) return;
  ctx.set('Content-Encoding', encoding);
  if (!isStream) {
    ctx.body = await (encoding === 'gzip' ? compress.gzip(body, GZIP) : compress.br(body, BROTLI));
    return;
  }
  const compressor = encoding === 'gzip' ? createGzip(GZIP) : createBrotliCompress(BROTLI);
  // A failure of the source reaches the answer through the compressor, which it destroys.
  ctx.body = pipeline(body as Readable, compressor, () => undefined);
}
