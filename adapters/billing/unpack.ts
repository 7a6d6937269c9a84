import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../domain/errors.js';

/** Most bytes that a packed file may unpack to: twenty times the largest upload. */
const UNPACKED_BYTES_MAX = 32 * 1_073_741_824;
const GZIP = [0x1f, 0x8b] as const;

/** The bytes of a file, unpacked where it begins like gzip. Error invalid_billing_file where the packing is broken. */
export async function unpacked(
  chunks: AsyncIterable<Buffer>,
): Promise<{ bytes: AsyncGenerator<Buffer>; isPacked: boolean }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const held: Buffer[] = [];
  let first = await iterator.next();
  // The first chunk may be a single byte.
  for (; !first.done && first.value.length < GZIP.length && held.length < GZIP.length; ) {
    held.push(first.value);
    first = await iterator.next();
  }
  if (!first.done) held.push(first.value);
  const head = held.length > 1 ? Buffer.concat(held) : (held[0] ?? Buffer.alloc(0));
  const isPacked = head[0] === GZIP[0] && head[1] === GZIP[1];
  const all = chain(held.length === 0 ? undefined : head, iterator);
  return { bytes: isPacked ? gunzip(all) : all, isPacked };
}

async function* chain(first: Buffer | undefined, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (first !== undefined) yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* gunzip(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = Readable.from(chunks);
  const gunzip = createGunzip();
  source.on('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  let bytes = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > UNPACKED_BYTES_MAX)
        throw new DomainError(
          'invalid_billing_file',
          `the file unpacks to more than ${UNPACKED_BYTES_MAX} bytes; split it by month`,
        );
      yield chunk;
    }
  } catch (error) {
    throw isOfZlib(error)
      ? new DomainError(
          'invalid_billing_file',
          `byte ${bytes + 1} of the unpacked file: the gzip data is cut or damaged (${error.code})`,
        )
      : error;
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

function isOfZlib(error: unknown): error is Error & { code: string } {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code.startsWith('Z_');
}
