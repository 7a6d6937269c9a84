import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { insertRow } from '../entity.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';

/** A page as received, and the position where the fetch continues. */
interface NewFetchedPage {
  id: string;
  connectionId: string;
  runId: string;
  ordinal: number;
  pageNo: number;
  report: string;
  /** Identifies the request without its page tokens, so that it is equal at another time. */
  requestKey: string;
  requestPath: string;
  sha256: string;
  body: Buffer;
  providerRequestId: string | null;
  fetchedAtMicros: bigint;
  nextCursor: string | null;
  buckets: readonly { startMicros: bigint; endMicros: bigint }[];
}

/** Stores a page and that the run has read it; identical bytes are stored once. Returns the id of the bytes. */
export async function recordFetchedPage(inside: OrgDb, page: NewFetchedPage): Promise<string> {
  const fetchedAt = isoFromMicros(page.fetchedAtMicros);
  const last = await inside.rows<{ id: string; sha256: string }>(
    `select id, sha256 from billing_fetched_pages where org_id = $1 and connection_id = $2 and request_key = $3
       order by fetched_at desc, id desc limit 1`,
    [inside.orgId, page.connectionId, page.requestKey],
  );
  const same = last[0]?.sha256 === page.sha256 ? last[0].id : undefined;
  if (same === undefined) {
    const { ordinal: _ordinal, nextCursor: _cursor, buckets: _buckets, ...stored } = page;
    await insertRow(inside, 'billing_fetched_pages', {
      ...{ orgId: inside.orgId, ...stored, lastSeenAtMicros: page.fetchedAtMicros },
    });
  } else {
    await inside.run(
      'update billing_fetched_pages set last_seen_at = greatest(last_seen_at, $3) where org_id = $1 and id = $2',
      [inside.orgId, same, fetchedAt],
    );
  }
  // A dying attempt may have stored the same page meanwhile: the later one wins, with the pages after it.
  await inside.run(
    'delete from sync_pages where org_id = $1 and run_id = $2 and ordinal = $3 and page_no >= $4',
    [inside.orgId, page.runId, page.ordinal, page.pageNo],
  );
  const { runId, ordinal, pageNo, nextCursor, fetchedAtMicros } = page;
  const buckets = page.buckets.map(({ startMicros, endMicros }) => [String(startMicros), String(endMicros)]);
  await insertRow(inside, 'sync_pages', {
    ...{ orgId: inside.orgId, runId, ordinal, pageNo, pageId: same ?? page.id, nextCursor },
    ...{ buckets: JSON.stringify(buckets), fetchedAtMicros },
  });
  return same ?? page.id;
}

export interface SyncPage {
  pageNo: number;
  pageId: string;
  /** Identifies the request. */
  requestKey: string;
  nextCursor: string | null;
  buckets: { startMicros: bigint; endMicros: bigint }[];
  fetchedAtMicros: bigint;
}

export async function listSyncPages(orgDb: OrgDb, runId: string, ordinal: number): Promise<SyncPage[]> {
  const rows = await orgDb.rows<Omit<SyncPage, 'buckets'> & { buckets: [string, string][] }>(
    `select s.page_no as "pageNo", s.page_id as "pageId", p.request_key as "requestKey", s.next_cursor as "nextCursor", s.buckets,
       s.fetched_at as "fetchedAtMicros"
     from sync_pages s join billing_fetched_pages p on p.org_id = s.org_id and p.id = s.page_id
     where s.org_id = $1 and s.run_id = $2 and s.ordinal = $3 order by s.page_no`,
    [orgDb.orgId, runId, ordinal],
  );
  return rows.map((page) => ({
    ...page,
    buckets: page.buckets.map(([start, end]) => ({ startMicros: BigInt(start), endMicros: BigInt(end) })),
  }));
}

export async function findFetchedPage(
  orgDb: OrgDb,
  id: string,
): Promise<{ body: Buffer; sha256: string } | undefined> {
  const rows = await orgDb.rows<{ body: Buffer; sha256: string }>(
    'select body, sha256 from billing_fetched_pages where org_id = $1 and id = $2',
    [orgDb.orgId, id],
  );
  return rows[0];
}

const WHY =
  'pages, parts and attempts that nothing rests on are removed: only maintenance removes what was fetched';
/** Pages of one transaction: each may have megabytes. */
const BATCH_PAGES = 200;

/** For a chunk c: its stored rows belong to a counted day, or to a settled day that was restated later. */
const IS_TOLD = 'exists (select from billing_days d where d.org_id = c.org_id and d.source_id = c.source_id)';
/** For a chunk c: it settled a day, or restated a settled one. */
const IS_SETTLEMENT = `coalesce(c.result -> 'settled_days', '[]') <> '[]' or coalesce(c.result -> 'restated', '[]') <> '[]'`;

/**
 * Deletes old page versions that no bill refers to, with empty parts and attempts. Repeatable; returns the number of
 * deleted pages.
 */
export async function pruneFetchedPages(
  database: Database,
  connection: { orgId: string; id: string },
  keptDays: number,
): Promise<number> {
  const values: [string, string, number] = [connection.orgId, connection.id, keptDays];
  let removed = 0;
  for (;;) {
    const pages = await unscoped(database, WHY, (system) => prunePages(system, values));
    removed += pages;
    if (pages < BATCH_PAGES) break;
  }
  await unscoped(database, WHY, (system) => pruneParts(system, values));
  return removed;
}

function prunePages(system: SystemDb, values: [string, string, number]): Promise<number> {
  return system.run(
    `with gone as (
       select p.id from billing_fetched_pages p
       where p.org_id = $1 and p.connection_id = $2 and p.last_seen_at < now() - make_interval(days => $3)
         and not exists (select from sync_pages s join sync_chunks c on c.org_id = s.org_id and c.run_id = s.run_id and c.ordinal = s.ordinal
           where s.org_id = p.org_id and s.page_id = p.id and (${IS_TOLD} or ${IS_SETTLEMENT}))
       order by p.id limit ${BATCH_PAGES}),
     links as (delete from sync_pages s using gone where s.org_id = $1 and s.page_id = gone.id)
     delete from billing_fetched_pages p using gone where p.org_id = $1 and p.id = gone.id`,
    values,
  );
}

async function pruneParts(system: SystemDb, values: [string, string, number]): Promise<void> {
  await system.run(
    `delete from sync_chunks c using sync_runs r
     where r.org_id = $1 and r.connection_id = $2 and r.finished_at < now() - make_interval(days => $3)
       and c.org_id = r.org_id and c.run_id = r.id and not ${IS_TOLD}
       and not exists (select from sync_pages s where s.org_id = c.org_id and s.run_id = c.run_id and s.ordinal = c.ordinal)`,
    values,
  );
  const unused = `s.org_id = $1 and s.connection_id = $2 and s.kind = 'api' and s.started_at < now() - make_interval(days => $3)
    and not exists (select from billing_days d where d.org_id = s.org_id and d.source_id = s.id)`;
  await system.run(
    `delete from billing_rows r using billing_sources s where ${unused} and r.org_id = s.org_id and r.source_id = s.id`,
    values,
  );
  await system.run(`delete from billing_sources s where ${unused}`, values);
}
