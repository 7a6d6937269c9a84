import { Readable } from 'node:stream';
import { DomainError } from '../../domain/errors.js';
import { type CsvTable, csvAnswer } from '../csv.js';
import type { EndpointResponse } from '../endpoint.js';

/** Rows of one page while a whole list is written. */
const PAGE_ROWS = 1_000;
/** Rows of one CSV answer: beyond that the transfer breaks off. */
const ROWS_MAX = 100_000;

/** What of a query chooses a page. */
const PAGE_PARAMETERS = ['limit', 'offset', 'cursor'] as const;

type Query = Readonly<Record<string, unknown>>;

/**
 * The query of the first page of a CSV answer. A request that chooses a page gets that page; else `isWhole`, and the
 * answer goes on to the end of the list.
 */
export function firstPageQuery(query: Query, asked: Query): { query: Query; isWhole: boolean } {
  const isWhole = !PAGE_PARAMETERS.some((name) => name in asked);
  return { query: isWhole && 'limit' in query ? { ...query, limit: PAGE_ROWS } : query, isWhole };
}

/** The rows of an answer as CSV; `readPage` is there where the pages after it belong to the answer. */
export function csvListAnswer(
  first: EndpointResponse,
  readPage: ((position: Query) => Promise<EndpointResponse>) | undefined,
): EndpointResponse {
  const { table } = first;
  if (!table) throw new TypeError('an answer without a table cannot be written as CSV');
  const next = nextPosition(first);
  const data =
    next && readPage ? Readable.from(writePages(table, next, readPage)) : table.header + table.rows();
  return csvAnswer(table.filename, data);
}

async function* writePages(
  first: CsvTable,
  second: Query,
  readPage: (position: Query) => Promise<EndpointResponse>,
): AsyncGenerator<string> {
  yield first.header + first.rows();
  let written = PAGE_ROWS;
  for (let position: Query | undefined = second; position !== undefined; ) {
    if (written >= ROWS_MAX)
      throw new DomainError('invalid_range', `the list has more than ${ROWS_MAX} rows`);
    const page: EndpointResponse = await readPage(position);
    yield page.table?.rows() ?? '';
    written += PAGE_ROWS;
    position = nextPosition(page);
  }
}

/** Where the page after an answer begins; undefined after the last one. */
function nextPosition({ body }: EndpointResponse): Query | undefined {
  const page = body as { has_more?: boolean; next_cursor?: string | null; offset?: number; count?: number };
  if (page.has_more !== true) return undefined;
  if (typeof page.next_cursor === 'string') return { cursor: page.next_cursor, offset: 0 };
  return { offset: (page.offset ?? 0) + (page.count ?? 0) };
}
