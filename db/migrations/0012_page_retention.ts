import type { Migration } from './migration.js';

/** What finds the pages that nothing rests on any more (docs/decisions/0012): which chunks read a page, which days a source tells. */
export const pageRetention: Migration = {
  name: '0012_page_retention',
  up: `
create index sync_pages_of_page on sync_pages (org_id, page_id);
create index billing_days_of_source on billing_days (org_id, source_id);
`,
  down: `
drop index billing_days_of_source;
drop index sync_pages_of_page;
`,
};
