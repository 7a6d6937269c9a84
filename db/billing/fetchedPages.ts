import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';

/** A page as it came, and where the fetch goes on behind it. */
export interface NewFetchedPage {
  id: string;
  connectionId: string;
  runId: string;
  ordinal: number;
  pageNo: number;
  report: string;
  /** Names the same request at another time: without its page tokens. */
  requestKey: string;
  requestPath: string;
  sha256: string;
  body: Buffer;
  providerRequestId: string | null;
  fetchedAtMicros: bigint;
  nextCursor: string | null;
  buckets: readonly { startMicros: bigint; endMicros: bigint }[];
}

/**
 * Stores a page and that the run has read it, in one transaction. Bytes that are those of the last version of the same
 * request are not stored again: that version was seen once more. Returns the id under which the bytes are stored.
 */
export async function recordFetchedPage(inside: OrgDb, page: NewFetchedPage): Promise<string> {
  const fetchedAt = isoFromMicros(page.fetchedAtMicros);
  const last = await inside.rows<{ id: string; sha256: string }>(
    `select id, sha256 from billing_fetched_pages where org_id = $1 and connection_id = $2 and request_key = $3
       order by fetched_at desc, id desc limit 1`,
    [inside.orgId, page.connectionId, page.requestKey],
  );
  const same = last[0]?.sha256 === page.sha256 ? last[0].id : undefined;
  if (same === undefined) {
    await inside.run(
      `insert into billing_fetched_pages (org_id, id, connection_id, run_id, report, request_key, request_path, page_no, sha256, body,
           provider_request_id, fetched_at, last_seen_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)`,
      [
        inside.orgId,
        page.id,
        page.connectionId,
        page.runId,
        page.report,
        page.requestKey,
        page.requestPath,
        page.pageNo,
        page.sha256,
        page.body,
        page.providerRequestId,
        fetchedAt,
      ],
    );
  } else {
    await inside.run(
      'update billing_fetched_pages set last_seen_at = greatest(last_seen_at, $3) where org_id = $1 and id = $2',
      [inside.orgId, same, fetchedAt],
    );
  }
  // An attempt on its last legs may have stored the same page meanwhile: the later one stands, with what follows it.
  await inside.run(
    'delete from sync_pages where org_id = $1 and run_id = $2 and ordinal = $3 and page_no >= $4',
    [inside.orgId, page.runId, page.ordinal, page.pageNo],
  );
  await inside.run(
    `insert into sync_pages (org_id, run_id, ordinal, page_no, page_id, next_cursor, buckets, fetched_at)
       values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)`,
    [
      inside.orgId,
      page.runId,
      page.ordinal,
      page.pageNo,
      same ?? page.id,
      page.nextCursor,
      JSON.stringify(
        page.buckets.map(({ startMicros, endMicros }) => [String(startMicros), String(endMicros)]),
      ),
      fetchedAt,
    ],
  );
  return same ?? page.id;
}

/** A page that a run has read, without its body. */
export interface SyncPage {
  pageNo: number;
  pageId: string;
  /** What was asked for. */
  requestKey: string;
  nextCursor: string | null;
  buckets: { startMicros: bigint; endMicros: bigint }[];
  fetchedAtMicros: bigint;
}

/** The pages of a chunk that a run has read, in their order. */
export async function listSyncPages(orgDb: OrgDb, runId: string, ordinal: number): Promise<SyncPage[]> {
  const rows = await orgDb.rows<{
    page_no: number;
    page_id: string;
    request_key: string;
    next_cursor: string | null;
    buckets: [string, string][];
    fetched_at: bigint;
  }>(
    `select s.page_no, s.page_id, p.request_key, s.next_cursor, s.buckets, s.fetched_at
     from sync_pages s join billing_fetched_pages p on p.org_id = s.org_id and p.id = s.page_id
     where s.org_id = $1 and s.run_id = $2 and s.ordinal = $3 order by s.page_no`,
    [orgDb.orgId, runId, ordinal],
  );
  return rows.map((row) => ({
    pageNo: row.page_no,
    pageId: row.page_id,
    requestKey: row.request_key,
    nextCursor: row.next_cursor,
    buckets: row.buckets.map(([start, end]) => ({ startMicros: BigInt(start), endMicros: BigInt(end) })),
    fetchedAtMicros: row.fetched_at,
  }));
}

/** The bytes of a stored page. */
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

/** Of a chunk c: the rows that it stored tell a day that counts, or a closed day that was restated later. */
const IS_TOLD = 'exists (select from billing_days d where d.org_id = c.org_id and d.source_id = c.source_id)';
/** Of a chunk c: a day was closed by what it said, or a closed one told otherwise. */
const IS_SETTLEMENT = `coalesce(c.result -> 'settled_days', '[]') <> '[]' or coalesce(c.result -> 'restated', '[]') <> '[]'`;

/**
 * Removes versions of pages of a connection that were last seen so many days ago and that nothing rests on: days that
 * were still open when they were replaced, and repeats that found nothing new. Every page stays that a day in force, or
 * a closed day that was restated, was read from, and each that closed a day. Parts of syncs and attempts that then stand
 * for nothing go along. A repeat finds nothing left. Returns how many pages it removed.
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
