import type { Migration } from './migration.js';

/**
 * Gap runs and what they found. A run writes buckets under its own id; publishing points each (provider, account,
 * day) at the run in one transaction, and reads go through these pointers, so no half result is ever seen.
 */
export const gapRuns: Migration = {
  name: '0005_gap_runs',
  up: `
create table gap_runs (
  org_id uuid not null,
  id uuid not null,
  period text not null check (period in ('7d', '30d', '90d')),
  -- null: all providers that have bills
  provider text,
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  window_start timestamptz not null,
  window_end timestamptz not null,
  done_units integer not null default 0,
  total_units integer not null default 0,
  -- {provider: {account: ISO time of its first event}}, read once when the run is planned
  observed_since jsonb not null default '{}',
  result jsonb,
  error_code text,
  error_message text,
  cancel_requested_at timestamptz,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id)
);
-- Single flight: the open run of an organization, period and provider is the one that a second request gets.
create unique index gap_runs_open on gap_runs (org_id, period, provider) nulls not distinct where status in ('queued', 'running');
create index gap_runs_newest on gap_runs (org_id, created_at desc, id);
select protect_tenant_table('gap_runs', 'select, insert, update');

-- The provider-days of a run in their order: the workflow goes by the number and carries no data.
create table gap_run_units (
  org_id uuid not null,
  run_id uuid not null,
  ordinal integer not null,
  provider text not null,
  day date not null,
  status text not null default 'pending' check (status in ('pending', 'done', 'failed')),
  error_message text,
  -- what the bill alone shows
  rate_mismatches jsonb not null default '[]',
  -- by account: which sources counted when the unit was matched
  counted_sources jsonb not null default '{}',
  primary key (org_id, run_id, ordinal),
  unique (org_id, run_id, provider, day),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('gap_run_units', 'select, insert, update, delete');

create table gap_buckets (
  org_id uuid not null,
  run_id uuid not null,
  -- hours stand beside the day that they sum to
  width text not null check (width in ('day', 'hour')),
  bucket timestamptz not null,
  provider text not null,
  -- '' where calls without an account are compared with the sum over all
  provider_account_id text not null,
  model text not null,
  match_status text not null check (match_status in ('matched', 'partial', 'unmatched')),
  grade text not null check (grade in ('HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED')),
  confidence_score double precision check (confidence_score between 0 and 1),
  visibility text not null check (visibility in ('V0', 'V1', 'V2', 'V3')),
  provisional boolean not null,
  flagged boolean not null,
  -- why a gap is not flagged, or what the line is (BUCKET_REASONS)
  reason text,
  gap_minutes integer,
  unobserved_minutes integer,
  provider_cost_usd numeric(24,12) not null,
  our_cost_usd numeric(24,12) not null,
  expected_cost_usd numeric(24,12),
  -- gap = rate + volume + own pricing, to the pico-dollar; null where the bill has no quantity
  rate_usd numeric(24,12),
  volume_usd numeric(24,12),
  own_pricing_usd numeric(24,12),
  matched_usd numeric(24,12) not null,
  -- class by class: quantities, amounts, rates, parts, and the waterfall of the link score in bits
  cells jsonb not null,
  waterfall jsonb not null,
  primary key (org_id, run_id, provider, provider_account_id, width, bucket, model),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('gap_buckets', 'select, insert, update, delete');

create table gap_published (
  org_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  day date not null,
  run_id uuid not null,
  -- the sources that counted when the run read them: other ones count now where the day was restated since
  counted_sources text not null,
  published_at timestamptz not null default now(),
  primary key (org_id, provider, day, provider_account_id),
  foreign key (org_id, run_id) references gap_runs (org_id, id)
);
select protect_tenant_table('gap_published', 'select, insert, update, delete');
`,
  down: 'drop table gap_published, gap_buckets, gap_run_units, gap_runs;',
};
