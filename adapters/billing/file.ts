import { DomainError } from '../../domain/errors.js';
import { readDocuments } from './documents.js';
import { HEAD_BYTES, shapeOf } from './fileShape.js';
import type { BillingFileOptions, BillingFileSummary, TaggedRow } from './fileSummary.js';
import { foreignContent } from './foreignContent.js';
import { readPages } from './pageRows.js';
import { openCsvTable } from './tables/csvTable.js';
import { openJsonLines } from './tables/jsonLinesTable.js';
import { openParquetTable } from './tables/parquetTable.js';
import { readTableRows } from './tables/tableRows.js';
import { unpacked } from './unpack.js';

export type { BillingFileOptions, BillingFileSummary, CoveredDay, TaggedRow } from './fileSummary.js';

/** How the activities are given `readBillingFile`. */
export type BillingFileReader = typeof readBillingFile;

/**
 * Reads a provider's bill from its bytes, batch by batch, in memory that does not grow with the rows. What kind of file
 * it is is told from its beginning; one that is packed with gzip is unpacked on the way. Yields rows as they come and
 * returns the summary. Where `summary.superseded` is not empty the file restates buckets: the rows of those copies do
 * not count, and a second reading with `skip` leaves them out.
 * Error invalid_billing_file with the place; whatever was yielded before it must then not be kept.
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

/** The beginning of the file, however its chunks are cut; undefined where it has none. */
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
