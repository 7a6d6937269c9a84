import type { Migration } from './migration.js';

/**
 * The columns of a bucket that the list of matches and the coverage read without opening its evidence: an id that stays the same
 * from run to run, the number of calls, and how many of the billed tokens were seen (docs/reconciliation.md).
 */
export const matches: Migration = {
  name: '0028_matches',
  up: `
alter table gap_buckets
  -- of the day's bucket: the same for the same account, model and day in every run
  add column match_id uuid generated always as (case when width = 'day' then md5(
    org_id::text || '/' || provider || '/' || ((bucket at time zone 'UTC')::date - date '1970-01-01')::text
    || '/' || length(provider_account_id)::text || '/' || provider_account_id || '/' || model)::uuid end) stored,
  -- observed calls; null in buckets of runs before this column
  add column event_count bigint check (event_count >= 0),
  -- tokens of all classes: billed (null where the bill gives none), observed, and what of the billed ones was observed
  add column billed_tokens numeric(38,12),
  add column observed_tokens numeric(38,12),
  add column covered_tokens numeric(38,12),
  add check (covered_tokens <= billed_tokens and covered_tokens <= observed_tokens);
-- Totals, shares and the order of lists read nothing else of a bucket; its evidence is read for the rows of one page alone.
create index gap_buckets_figures on gap_buckets (org_id, run_id, provider, provider_account_id, width, bucket)
  include (model, match_status, grade, flagged, reason, provider_cost_usd, our_cost_usd, matched_usd, rate_usd, match_id,
    event_count, billed_tokens, observed_tokens, covered_tokens);
`,
  down: `
drop index gap_buckets_figures;
alter table gap_buckets drop column covered_tokens, drop column observed_tokens, drop column billed_tokens,
  drop column event_count, drop column match_id;
`,
};
