import type { Migration } from './migration.js';

/**
 * The mark of the demo's organization: it alone may be removed with everything that it has (docs/demo.md).
 */
export const demo: Migration = {
  name: '0011_demo',
  up: `
-- The last day of the demo's data; null for every organization that is not the demo. Requests cannot set it: app_rw
-- may change an organization's settings, not this.
alter table organizations add column demo_end_day date;
create unique index organizations_one_demo on organizations ((true)) where demo_end_day is not null;
revoke update on organizations from app_rw;
grant update (name, settings) on organizations to app_rw;
grant delete on organizations to app_system;
`,
  down: `
revoke delete on organizations from app_system;
revoke update (name, settings) on organizations from app_rw;
grant update on organizations to app_rw;
drop index organizations_one_demo;
alter table organizations drop column demo_end_day;
`,
};
