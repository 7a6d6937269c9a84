import type { TestDatabase } from '../../support/database.js';

/** Disables autovacuum, so that tables have only the statistics that a test requested. */
export async function withoutAutovacuum({ superuser }: TestDatabase): Promise<void> {
  await superuser.query(`
    do $$ declare name regclass; begin
      for name in select oid::regclass from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
        execute format('alter table %s set (autovacuum_enabled = false)', name);
      end loop;
    end $$`);
}
