import { z } from 'zod';
import { AZURE_QUERY_COLUMNS, dayOfUsageDate } from '../../domain/billing/formats/azureQuery.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf } from '../../domain/period.js';
import type { BucketTimes } from './connector.js';
import { readEnvelope } from './pageEnvelope.js';

const page = z.object({
  properties: z.object({
    nextLink: z.string().max(65_536).nullish(),
    columns: z.array(z.object({ name: z.string().max(256) })).max(100),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))),
  }),
});

/**
 * Of `{properties: {columns, rows, nextLink}}`: what a page has to do with paging. Columns are found by their names. A
 * whole answer tells its window, with rows for the days that bill something, so the last page stands for all of it.
 * `cursor` is the query of the link that led here. Error provider_answer_unreadable, also where a row tells a day that
 * was not asked for; provider_paging_changed where the link leads to where it came from.
 */
export function readAzureEnvelope(
  body: Buffer,
  { startMicros, endMicros }: BucketTimes,
  cursor: string | null,
): { buckets: BucketTimes[]; nextCursor: string | null } {
  const window = { startMicros, endMicros };
  // 204: the scope has nothing to tell.
  if (body.length === 0) return { buckets: [window], nextCursor: null };
  const { properties } = readEnvelope(page, body, 'Azure');
  const names = properties.columns.map(({ name }) => name.toLowerCase());
  const at = (columns: readonly string[]) => names.findIndex((name) => columns.includes(name));
  for (const [what, columns] of Object.entries(AZURE_QUERY_COLUMNS)) {
    if (at(columns) < 0 && (what === 'cost' || what === 'day' || what === 'meter'))
      throw unreadable(`it has no column ${columns[0]}`);
  }
  checkDays(properties.rows, at(AZURE_QUERY_COLUMNS.day), window);
  const nextCursor = nextCursorOf(properties.nextLink ?? null, cursor);
  return { buckets: nextCursor === null ? [window] : [], nextCursor };
}

function checkDays(rows: readonly (string | number | null)[][], at: number, window: BucketTimes): void {
  const [from, to] = [dayOf(window.startMicros), dayOf(window.endMicros - 1n)];
  for (const row of rows) {
    const day = dayOfUsageDate(String(row[at] ?? ''));
    if (day === undefined || day < from || day > to)
      throw unreadable('a row tells a day that was not asked for');
  }
}

/** The query of the link: where it leads is ours to say, since a link could lead anywhere. */
function nextCursorOf(link: string | null, cursor: string | null): string | null {
  if (link === null || link === '') return null;
  const query = URL.canParse(link) ? new URL(link).search.slice(1) : '';
  if (query === '' || query.length > 8_192) throw unreadable('nextLink is not as documented');
  if (query !== cursor) return query;
  throw new DomainError(
    'provider_paging_changed',
    'Azure named the page that was asked for as the next one; the chunk is fetched from its beginning',
  );
}

function unreadable(reason: string): DomainError {
  return new DomainError('provider_answer_unreadable', `the answer of Azure cannot be read: ${reason}`);
}
