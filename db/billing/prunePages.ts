import type { Database } from '../client.js';
import { type SystemDb, unscoped } from '../orgDb.js';

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
