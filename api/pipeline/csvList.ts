import { Readable } from 'node:stream';
import { DomainError } from '../../domain/errors.js';
import { type CsvList, type CsvTable, csvAnswer, tableOfList } from '../csv.js';
import type { EndpointResponse } from '../endpoint.js';

/** Rows of one page while a whole list is written. */
const PAGE_ROWS = 1_000;
/** Rows of one CSV answer: beyond that the transfer breaks off. */
const ROWS_MAX = 100_000;

/** The parameters of a query that choose a page. */
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
  list: CsvList | undefined,
  first: EndpointResponse,
  readPage: ((position: Query) => Promise<EndpointResponse>) | undefined,
): EndpointResponse {
  const tableOf = (page: EndpointResponse) => page.table ?? (list && tableOfList(list, page.body));
  const table = tableOf(first);
  if (!table) throw new TypeError('an answer without a table cannot be written as CSV');
  const next = nextPosition(first);
  const data =
    next && readPage
      ? Readable.from(
          writePages(table, next, async (position) => {
            const page = await readPage(position);
            return { text: tableOf(page)?.rows() ?? '', next: nextPosition(page) };
          }),
        )
      : table.header + table.rows();
  return csvAnswer(table.filename, data);
}

async function* writePages(
  first: CsvTable,
  second: Query,
  readPage: (position: Query) => Promise<{ text: string; next: Query | undefined }>,
): AsyncGenerator<string> {
  yield first.header + first.rows();
  let written = PAGE_ROWS;
  for (let position: Query | undefined = second; position !== undefined; ) {
    if (written >= ROWS_MAX)
      throw new DomainError('invalid_range', `the list has more than ${ROWS_MAX} rows`);
    const { text, next } = await readPage(position);
    yield text;
    written += PAGE_ROWS;
    position = next;
  }
}

/** The cursor of the page after an answer; undefined after the last one. */
function nextPosition({ body }: EndpointResponse): Query | undefined {
  const page = body as { has_more?: boolean; next_cursor?: string | null; offset?: number; count?: number };
  if (page.has_more !== true) return undefined;
  if (typeof page.next_cursor === 'string') return { cursor: page.next_cursor, offset: 0 };
  return { offset: (page.offset ?? 0) + (page.count ?? 0) };
}
