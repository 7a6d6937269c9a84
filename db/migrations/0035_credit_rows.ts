import type { Migration } from './migration.js';

/** Rows of bills that give money back are few: looking for the answers to claims reads them and no others. */
export const creditRows: Migration = {
  name: '0035_credit_rows',
  up: `
create index billing_rows_giving_back on billing_rows (org_id, provider, day, source_id) where amount_usd < 0;
`,
  down: 'drop index billing_rows_giving_back;',
};
