import type { Migration } from './migration.js';

/**
 * Providers' bills: the raw file as it came (in chunks, each with its sha256), what was read from it row by row,
 * and where it came from. Rows of a source are never edited; a restated day comes with a newer source. The file of an
 * import that failed is removed: nothing of it is kept but why.
 */
export const billing: Migration = {
  name: '0004_billing',
  up: `
create table billing_sources (
  org_id uuid not null,
  id uuid not null,
  kind text not null check (kind in ('file')),
  provider text not null,
  filename text not null,
  declared_format text,
  declared_account text,
  declared_fx_rate numeric(24,12),
  sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  size_bytes bigint not null,
  fetched_at timestamptz not null default now(),
  -- the life of the import
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  done_bytes bigint not null default 0,
  format text,
  provider_account_id text,
  -- 10 = plain file, 20 = saved page, 30 = API, 40 = finalised export: the higher counts
  source_rank smallint,
  row_count bigint,
  amount_usd numeric(24,12),
  period_start date,
  period_end date,
  -- labels that no grammar knows: [{label, rows, amount_usd}]
  unparsed jsonb not null default '[]',
  -- buckets that a later page of the same file told again
  restated_buckets integer not null default 0,
  error_code text,
  error_message text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  heartbeat_at timestamptz,
  primary key (org_id, id)
);
create unique index billing_sources_same_file on billing_sources
  (org_id, provider, sha256, coalesce(declared_account, ''), coalesce(declared_format, ''), coalesce(declared_fx_rate, 0))
  where status not in ('failed', 'cancelled');
create index billing_sources_newest on billing_sources (org_id, created_at desc);
select protect_tenant_table('billing_sources', 'select, insert, update');

-- Chunks are stored one by one while a file arrives, its row when the whole of it is known: an upload may take minutes,
-- and a transaction of that length would hold back every total (docs/decisions/0009). Hence no foreign key; chunks of
-- an upload that broke are removed by it, or by the sweeper when its process died.
create table billing_pages (
  org_id uuid not null,
  source_id uuid not null,
  page_no integer not null,
  sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  body bytea not null,
  received_at timestamptz not null default now(),
  primary key (org_id, source_id, page_no)
);
create index billing_pages_by_time on billing_pages using brin (received_at);
select protect_tenant_table('billing_pages', 'select, insert, delete');

create table billing_rows (
  org_id uuid not null,
  source_id uuid not null,
  row_no bigint not null,
  -- cost rows carry money, usage rows carry quantities of the same consumption: never added to each other
  feed text not null check (feed in ('cost', 'usage')),
  -- which usage report; '' on cost rows
  report text not null,
  provider text not null,
  provider_account_id text not null,
  -- UTC
  day date not null,
  period_start timestamptz not null,
  period_end timestamptz not null,
  charge_category text not null check (charge_category in ('usage', 'tax', 'credit', 'refund', 'purchase', 'adjustment')),
  -- the provider's own label, verbatim
  line_item text not null,
  -- false: usage that no call can show (storage, hosting, tool fees without a count)
  observable boolean not null,
  -- null where the line was not understood: kept as other, shown, never guessed
  model text,
  token_class text not null check (token_class in ('input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output', 'input_audio', 'output_audio', 'requests', 'other')),
  service_tier text not null default 'standard',
  is_batch boolean,
  long_context boolean,
  region text,
  project text,
  api_key text,
  quantity numeric(38,12),
  quantity_unit text,
  -- the money that counts: billed, in USD; null on usage rows
  amount_usd numeric(24,12),
  list_amount_usd numeric(24,12),
  contracted_amount_usd numeric(24,12),
  net_amount_usd numeric(24,12),
  currency text,
  original_amount numeric(38,12),
  check ((feed = 'cost') = (amount_usd is not null)),
  primary key (org_id, source_id, row_no),
  foreign key (org_id, source_id) references billing_sources (org_id, id)
);
create index billing_rows_by_day on billing_rows (org_id, provider, day, source_id);
select protect_tenant_table('billing_rows', 'select, insert, delete');

-- One row for each day that a source covers, also where it bills nothing: which source counts is decided on these,
-- for each (account, day, charge category, feed and report) exactly one. They are written when all
-- rows of a source are there, so rows without a day are of an import under way and count nowhere.
create table billing_days (
  org_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  day date not null,
  feed text not null check (feed in ('cost', 'usage')),
  report text not null,
  charge_category text not null,
  source_id uuid not null,
  source_rank smallint not null,
  source_fetched_at timestamptz not null,
  row_count bigint not null,
  amount_usd numeric(24,12) not null,
  primary key (org_id, provider, day, provider_account_id, feed, report, charge_category, source_id),
  foreign key (org_id, source_id) references billing_sources (org_id, id)
);
select protect_tenant_table('billing_days', 'select, insert');
`,
  down: 'drop table billing_days, billing_rows, billing_pages, billing_sources;',
};
