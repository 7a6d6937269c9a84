import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';

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
