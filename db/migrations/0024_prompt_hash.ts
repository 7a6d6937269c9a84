import type { Migration } from './migration.js';

/**
 * A digest of the prompts of a call, by which equal calls are recognized (docs/decisions/0027), and the way from an
 * alert to those that it represents (docs/decisions/0025).
 */
export const promptHash: Migration = {
  name: '0024_prompt_hash',
  up: `
-- the first 64 bits of a digest of the prompts; null where nobody sent any, or the organization keeps none
alter table events add column prompt_hash bigint;
create index alerts_merged on alerts (org_id, merged_into) where merged_into is not null;
`,
  down: `
drop index alerts_merged;
alter table events drop column prompt_hash;
`,
};
