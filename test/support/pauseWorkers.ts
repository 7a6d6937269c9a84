import type pg from 'pg';
import { expect } from 'vitest';

/** Number of the lock that paused workers wait for. */
const HELD = 20_261_121;

/**
 * Pauses the workers of other processes (test/support/workerProcess.ts) before they write into a table while a condition
 * holds, so that a test can kill them in the middle of their work at any later time.
 * @param condition SQL about what is stored, as the worker sees it
 * @returns a function that ends killed workers' sessions and removes the pause
 */
export async function pauseWorkers(
  superuser: pg.Pool,
  { write, table, condition }: { write: 'insert' | 'update'; table: string; condition: string },
): Promise<() => Promise<void>> {
  const holder = await superuser.connect();
  await holder.query('select pg_advisory_lock($1)', [HELD]);
  await superuser.query(`
    create function stand_still() returns trigger language plpgsql as $$ begin
      while current_setting('application_name') = 'killed' and (${condition})
        and not pg_try_advisory_xact_lock_shared(${HELD}) loop perform pg_sleep(0.01); end loop;
      return null; end $$;
    create trigger stand_still before ${write} on ${table} for each statement execute function stand_still();
    grant execute on function stand_still() to app_rw`);
  return async () => {
    await expect
      .poll(async () => {
        const { rowCount } = await superuser.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'killed'`,
        );
        return rowCount;
      })
      .toBe(0);
    await holder.query('select pg_advisory_unlock($1)', [HELD]);
    holder.release();
    await superuser.query(`drop trigger stand_still on ${table}; drop function stand_still()`);
  };
}
