import type { Migration } from './migration.js';

/**
 * Bills that are fetched: the connection with its sealed credentials, its sync runs, every version of every page as it
 * came, and what makes several copies of a day count once (docs/decisions/0011).
 */
export const billingConnections: Migration = {
  name: '0007_billing_connections',
  up: `
create table billing_connections (
  org_id uuid not null,
  id uuid not null,
  provider text not null,
  name text not null check (length(name) between 1 and 256),
  -- connecting until the first sync has ended well; failing while the last one did not
  status text not null check (status in ('connecting', 'active', 'failing', 'paused', 'ended')),
  provider_account_id text not null check (provider_account_id <> ''),
  -- '' for the whole account, else the parts in order, e.g. 'project:proj_a,project:proj_b'
  scope text not null default '',
  settings jsonb not null default '{}',
  -- sealed by platform/secretBox, bound to organization and connection; null once the connection has ended, or when
  -- the operator has given up credentials that no key opens
  ciphertext bytea,
  secret_key_id text,
  -- the first UTC day that the connection answers for
  backfill_from date not null,
  -- UTC day on which the days that may still be restated were last asked for again
  revised_on date,
  last_synced_at timestamptz,
  last_failed_at timestamptz,
  last_error_code text,
  last_error_message text,
  next_sync_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  removed_at timestamptz,
  primary key (org_id, id),
  check ((ciphertext is null) = (secret_key_id is null)),
  check ((status = 'ended') = (removed_at is not null)),
  check (removed_at is null or ciphertext is null)
);
-- An account is looked for across organizations, under an advisory lock: two of them may not bill it twice.
create index billing_connections_by_account on billing_connections (provider, provider_account_id) where removed_at is null;
create index billing_connections_newest on billing_connections (org_id, created_at desc, id);
select protect_tenant_table('billing_connections', 'select, insert, update');

create table sync_runs (
  org_id uuid not null,
  id uuid not null,
  connection_id uuid not null,
  trigger text not null check (trigger in ('connect', 'schedule', 'request', 'settings')),
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  -- what the run waits for, as an error code and a sentence, and until when
  waiting_code text,
  waiting_message text,
  waiting_until timestamptz,
  done_chunks integer not null default 0,
  total_chunks integer not null default 0,
  -- the UTC day on which it asks again for all days that may still be restated; null when it does not
  revises_on date,
  result jsonb,
  error_code text,
  error_message text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, connection_id) references billing_connections (org_id, id)
);
-- Single flight: the open sync of a connection is the one that a second request gets.
create unique index sync_runs_open on sync_runs (org_id, connection_id) where status in ('queued', 'running');
create index sync_runs_newest on sync_runs (org_id, connection_id, created_at desc, id);
select protect_tenant_table('sync_runs', 'select, insert, update');

-- What a run asks for, in its order: the workflow goes by the number and carries no data.
create table sync_chunks (
  org_id uuid not null,
  run_id uuid not null,
  ordinal integer not null,
  report text not null,
  feed text not null check (feed in ('cost', 'usage')),
  bucket_width text not null check (bucket_width in ('1d', '1h')),
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  status text not null default 'pending' check (status in ('pending', 'done', 'failed')),
  -- the source under which the attempt at work stores rows of changed days: one that was overtaken changes nothing
  source_id uuid,
  restarts integer not null default 0,
  result jsonb,
  error_code text,
  error_message text,
  primary key (org_id, run_id, ordinal),
  foreign key (org_id, run_id) references sync_runs (org_id, id)
);
select protect_tenant_table('sync_chunks', 'select, insert, update');

-- Every version of every page, verbatim. A page whose bytes are those of the last version only moves last_seen_at.
create table billing_fetched_pages (
  org_id uuid not null,
  id uuid not null,
  connection_id uuid not null,
  -- the run that first saw it
  run_id uuid not null,
  report text not null,
  -- report, bucket width, span and page number: page tokens differ from one time to the next
  request_key text not null,
  request_path text not null,
  page_no integer not null,
  sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  body bytea not null,
  provider_request_id text,
  fetched_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (org_id, id),
  foreign key (org_id, connection_id) references billing_connections (org_id, id)
);
create index billing_fetched_pages_versions on billing_fetched_pages (org_id, connection_id, request_key, fetched_at desc, id desc);
select protect_tenant_table('billing_fetched_pages', 'select, insert, update');

-- Which version of each page a run read, and where it goes on: a killed fetch continues behind the last row.
create table sync_pages (
  org_id uuid not null,
  run_id uuid not null,
  ordinal integer not null,
  page_no integer not null,
  page_id uuid not null,
  next_cursor text,
  -- half-open times of the page's buckets, microseconds as texts: [[start, end]]
  buckets jsonb not null,
  fetched_at timestamptz not null,
  primary key (org_id, run_id, ordinal, page_no),
  foreign key (org_id, run_id, ordinal) references sync_chunks (org_id, run_id, ordinal),
  foreign key (org_id, page_id) references billing_fetched_pages (org_id, id)
);
select protect_tenant_table('sync_pages', 'select, insert, delete');

alter table billing_sources drop constraint billing_sources_kind_check;
alter table billing_sources add constraint billing_sources_kind_check check (kind in ('file', 'api'));
alter table billing_sources add column connection_id uuid;
alter table billing_sources add constraint billing_sources_connection foreign key (org_id, connection_id) references billing_connections (org_id, id);
alter table billing_sources add constraint billing_sources_of_connection check ((kind = 'api') = (connection_id is not null));

alter table billing_days
  add column scope text not null default '',
  add column connection_id uuid,
  -- when the provider last said the same; null: as fetched
  add column confirmed_at timestamptz,
  -- when a newer fetch of the same connection said otherwise: such a copy counts no more
  add column superseded_at timestamptz,
  add column content_hash text;
create index billing_days_of_connection on billing_days (org_id, connection_id, day) where connection_id is not null and superseded_at is null;
grant update (confirmed_at, superseded_at) on billing_days to app_rw;
grant delete on billing_days to app_rw;

-- Of copies in the order in which they would count, the places of those that do where the first is of a part of the
-- account: each whose parts none before it has. Copies of the whole account (scope '') are then cross-checks.
create function disjoint_scopes(scopes text[]) returns integer[] language plpgsql immutable parallel safe as $$
declare
  taken text[] := '{}';
  places integer[] := '{}';
  parts text[];
begin
  for place in 1 .. coalesce(array_length(scopes, 1), 0) loop
    parts := string_to_array(scopes[place], ',');
    if scopes[place] <> '' and not parts && taken then
      taken := taken || parts;
      places := places || place;
    end if;
  end loop;
  return places;
end $$;

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check
  check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule'));
`,
  down: `
delete from outbox where kind in ('billing_sync.start', 'connection.schedule');
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('gap_run.start', 'gap_run.cancel', 'billing_import.start'));
drop function disjoint_scopes(text[]);
delete from billing_days where connection_id is not null;
revoke update (confirmed_at, superseded_at), delete on billing_days from app_rw;
drop index billing_days_of_connection;
alter table billing_days drop column scope, drop column connection_id, drop column confirmed_at, drop column superseded_at, drop column content_hash;
delete from billing_rows r using billing_sources s where s.org_id = r.org_id and s.id = r.source_id and s.kind = 'api';
alter table billing_sources drop constraint billing_sources_of_connection, drop constraint billing_sources_connection, drop constraint billing_sources_kind_check;
delete from billing_sources where kind = 'api';
alter table billing_sources drop column connection_id, add constraint billing_sources_kind_check check (kind in ('file'));
drop table sync_pages, billing_fetched_pages, sync_chunks, sync_runs, billing_connections;
`,
};
