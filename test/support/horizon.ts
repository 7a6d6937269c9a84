import pg from 'pg';
import { expect, vi } from 'vitest';

/** A test ends after five minutes: who held it up is told before that. */
const WAIT_MS = 240_000;

const NEWEST = `
select greatest((select max(ingest_xid) from events), (select max(ingest_xid) from event_adjustments),
  (select max(ingest_xid) from call_spans), 0)::text as xid`;

/** Is every transaction of the server up to $1 past, of whichever database; and those that are still open. */
const HORIZON = `
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1::bigint as is_past,
  array(select concat_ws(' ', datname, application_name, state, left(query, 200)) from pg_stat_activity
    where backend_xid is not null order by xact_start) as open`;

/**
 * Waits until a fold, a sweep and a removal by age reach everything that is stored by now. They go up to the oldest
 * transaction that is still running on the whole server, and the databases of other tests, of which one may just be made,
 * are on the same one. Without it they rightly leave to a later round what was told a moment ago.
 */
export async function untilNothingHoldsBack(superuser: pg.Pool): Promise<void> {
  const { rows: newest } = await superuser.query<{ xid: string }>(NEWEST);
  await vi.waitFor(
    async () => {
      const { rows } = await superuser.query<{ is_past: boolean; open: string[] }>(HORIZON, [newest[0]?.xid]);
      expect(rows[0]?.is_past, `open: ${rows[0]?.open.join('; ')}`).toBe(true);
    },
    { timeout: WAIT_MS, interval: 20 },
  );
}

/** Opens a transaction in another database of the server, which holds back every database of it; returns what ends it. */
export async function holdBack(url: string): Promise<() => Promise<void>> {
  const elsewhere = new URL(url);
  elsewhere.pathname = '/postgres';
  const client = new pg.Client({ connectionString: elsewhere.toString() });
  await client.connect();
  await client.query('begin; select pg_current_xact_id()');
  return async () => {
    await client.query('rollback');
    await client.end();
  };
}
