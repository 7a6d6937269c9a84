import type { Migration } from './migration.js';

/**
 * The rate by which a connection's day was converted: a day is asked for again when its settings name another
 * (docs/decisions/0012).
 */
export const fetchedRates: Migration = {
  name: '0031_fetched_rates',
  up: `
alter table billing_days
  -- of days that a connection fetched: what its settings said for the day's month; null: nothing
  add column fx_rate numeric(24,12);
grant update (fx_rate) on billing_days to app_rw;
-- days that are there stay as they were read until somebody gives another rate
set local role app_system;
update billing_days d set fx_rate = (c.settings ->> 'fxRate')::numeric from billing_connections c
  where c.org_id = d.org_id and c.id = d.connection_id and c.settings ? 'fxRate';
reset role;
`,
  down: `
revoke update (fx_rate) on billing_days from app_rw;
alter table billing_days drop column fx_rate;
`,
};
