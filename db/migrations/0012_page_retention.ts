import type { Migration } from './migration.js';

/** Indexes that find pages without a reference (docs/decisions/0012): the chunks that read a page, the days of a source. */
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
