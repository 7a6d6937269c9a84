import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';

/** Smallest compressed answer, bytes. */
const BYTES_MIN = 1_024;
const COMPRESSIBLE = /^(?:application\/(?:[a-z.]+\+)?(?:json|x-ndjson|javascript)|text\/)/;

/** A fast level: an answer of a megabyte must not delay others. */
const GZIP = { level: 4 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

const compress = { gzip: promisify(gzip), br: promisify(brotliCompress) };

/**
 * Compresses a streamed answer, or one of at least 1 KB, where the client accepts it. A failure of the source also
 * fails the compressed stream, so that a truncated body never seems complete.
 */
export async function compressAnswer(ctx: Context): Promise<void> {
  const { body } = ctx;
  const isStream = typeof body === 'object' && body !== null && 'pipe' in body;
  if (!isStream && typeof body !== 'string' && !Buffer.isBuffer(body)) return;
  if (ctx.response.headers['content-encoding'] !== undefined) return;
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
  // A failure of the source destroys the compressor, which fails the answer.
  ctx.body = pipeline(body as Readable, compressor, () => undefined);
}
