import pg from 'pg';
import { expect, vi } from 'vitest';

/** Milliseconds before the blocking transactions are reported; a test ends after five minutes. */
const WAIT_MS = 240_000;

const NEWEST = `
select greatest((select max(ingest_xid) from events), (select max(ingest_xid) from event_adjustments),
  (select max(ingest_xid) from call_spans), 0)::text as xid`;

/** Whether every transaction of the server up to $1 has ended, in all databases; and the open ones. */
const HORIZON = `
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1::bigint as is_past,
  array(select concat_ws(' ', datname, application_name, state, left(query, 200)) from pg_stat_activity
    where backend_xid is not null order by xact_start) as open`;

/**
 * Waits until a fold, a sweep and a removal by age reach everything stored by now. They reach up to the oldest running
 * transaction of the whole server, which also has the databases of other tests, some of which may be in creation.
 * Without it they rightly leave recent rows to a later round.
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

/**
 * Opens a transaction in another database of the server, which delays every database of it; returns the function that
 * ends it.
 */
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
