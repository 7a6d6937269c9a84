import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../domain/errors.js';
import { HEAD_BYTES, readDocuments, shapeOf } from './documents.js';
import {
  type BillingFileOptions,
  type BillingFileSummary,
  foreignContent,
  type TaggedRow,
} from './fileSummary.js';
import { readPages } from './pageRows.js';
import { openCsvTable } from './tables/csvTable.js';
import { openJsonLines } from './tables/jsonLinesTable.js';
import { openParquetTable } from './tables/parquetTable.js';
import { readTableRows } from './tables/readTable.js';

export type { BillingFileOptions, BillingFileSummary, CoveredDay, TaggedRow } from './fileSummary.js';

/** The type by which the activities receive `readBillingFile`. */
export type BillingFileReader = typeof readBillingFile;

/**
 * Reads a provider's bill from its bytes, batch by batch, in memory that does not grow with the rows. The beginning of
 * the file determines its format; gzip is unpacked on the way. Yields rows and returns the summary. If
 * `summary.superseded` is not empty the file restates buckets: the rows of those copies do not count, and a second
 * reading with `skip` omits them. Error: invalid_billing_file with the place; rows that were yielded before it must not
 * be kept.
 */
export async function* readBillingFile(
  chunks: AsyncIterable<Buffer>,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const { bytes, isPacked } = await unpacked(chunks);
  const iterator = bytes[Symbol.asyncIterator]();
  const head = await readHead(iterator);
  if (head === undefined || (head.length === 0 && !options.mayBeEmpty))
    throw new DomainError('invalid_billing_file', 'the file is empty');
  const foreign = foreignContent(head, isPacked);
  if (foreign !== undefined) {
    await iterator.return?.(undefined);
    throw new DomainError('invalid_billing_file', `byte 1: ${foreign}`);
  }
  const all = resume(head, iterator);
  switch (shapeOf(head, options.format, options.provider)) {
    case 'csv':
      return yield* readTableRows(await openCsvTable(all), options);
    case 'jsonLines':
      return yield* readTableRows(await openJsonLines(all), options);
    case 'parquet':
      await iterator.return?.(undefined);
      if (!options.random) throw new RangeError('a Parquet file is read in any order');
      return yield* readTableRows(await openParquetTable(options.random), options);
    case 'documents':
      return yield* readDocuments(all, options);
    case 'pages':
      return yield* readPages(all, options);
  }
}

/** The beginning of the file, independent of its chunks; undefined: it is empty. */
async function readHead(chunks: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const held: Buffer[] = [];
  let heldBytes = 0;
  while (heldBytes < HEAD_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    held.push(next.value);
    heldBytes += next.value.length;
  }
  return held.length > 1 ? Buffer.concat(held, heldBytes) : held[0];
}

async function* resume(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    yield next.value;
  }
}

/** Most bytes that a gzip file may unpack to: twenty times the largest upload. */
const UNPACKED_BYTES_MAX = 32 * 1_073_741_824;
const GZIP = [0x1f, 0x8b] as const;

/** The bytes of a file, unpacked if it begins like gzip. Error: invalid_billing_file for damaged gzip. */
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
