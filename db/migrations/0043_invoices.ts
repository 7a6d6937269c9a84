import type { Migration } from './migration.js';

const OUTBOX_BEFORE = `'gap_run.start', 'gap_run.cancel', 'billing_import.start', 'billing_sync.start', 'connection.schedule', 'reprice.start', 'reprice.cancel', 'webhook.deliver', 'savings_run.start', 'claim.wake', 'weights.recompute'`;
const MESSAGES_BEFORE = `'alert.created', 'claim.created', 'claim.reminder', 'claim.status_changed', 'dispute.opened', 'dispute.resolved', 'gap_run.completed', 'webhook.test'`;
const STEPS_BEFORE = `'events', 'payloads', 'idempotency_keys', 'audit_log', 'rate_limits', 'alerts', 'webhook_messages', 'savings_runs', 'gap_runs'`;

/** Invoices as files, what was read from them, and how they compare with bills. Their bytes are in the blob store. */
export const invoices: Migration = {
  name: '0043_invoices',
  up: `
create table invoices (
  org_id uuid not null references organizations (id),
  id uuid not null,
  provider text not null,
  sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  -- where the blob store holds the file
  blob_key text not null,
  filename text not null,
  size_bytes bigint not null check (size_bytes > 0),
  declared_account text,
  -- US dollars for one unit of the invoice's currency
  declared_fx_rate numeric(24,12) check (declared_fx_rate > 0),
  uploaded_by text,
  status text not null default 'received' check (status in ('received', 'extracting', 'matching', 'reconciled', 'needs_review', 'failed')),
  failure_code text check (failure_code in ('invalid_pdf', 'invoice_encrypted', 'too_many_pages', 'resource_limit', 'no_line_items', 'ocr_unavailable', 'internal_error')),
  failure_message text,
  -- counts readings, corrections and confirmations: what is compared with bills is of one of them
  revision integer not null default 0,
  pages integer,
  engine text check (engine in ('text', 'tesseract', 'document_ai')),
  document_kind text check (document_kind in ('invoice', 'credit_note', 'receipt')),
  layout text,
  number text,
  number_normalised text,
  issuer text,
  -- as printed, and as bills name it
  account text,
  provider_account_id text,
  issue_date date,
  due_date date,
  period_start date,
  period_end date,
  -- every amount is in it, but for those that are called usd
  currency text,
  subtotal numeric(38,12),
  discounts numeric(38,12),
  tax numeric(38,12),
  credits numeric(38,12),
  total numeric(38,12),
  amount_paid numeric(38,12),
  amount_due numeric(38,12),
  -- the fields with text, box, confidence and engine; amounts are decimal texts
  fields jsonb,
  checks jsonb not null default '[]',
  arithmetic_ok boolean,
  extraction_confidence double precision check (extraction_confidence between 0 and 1),
  duplicate_of uuid,
  replaces uuid,
  confirmed_at timestamptz,
  confirmed_by text,
  confirm_note text,
  -- the comparison with the provider's bill of the period
  tie text check (tie in ('exact', 'close', 'contradicts', 'not_comparable')),
  tie_reason text check (tie_reason in ('no_bill', 'incomplete_bill', 'no_usage', 'no_rate', 'shared_period', 'receipt', 'duplicate', 'replaced', 'account_unknown', 'period_unknown')),
  -- what of the invoice is compared, and what was billed, in one currency
  tie_currency text,
  compared_amount numeric(38,12),
  billed_amount numeric(38,12),
  review_reasons text[] not null default '{}',
  created_at timestamptz not null default now(),
  processed_at timestamptz,
  primary key (org_id, id),
  unique (org_id, provider, sha256),
  foreign key (org_id, duplicate_of) references invoices (org_id, id),
  foreign key (org_id, replaces) references invoices (org_id, id),
  check ((status = 'failed') = (failure_code is not null)),
  check ((confirmed_at is null) = (confirmed_by is null)),
  check (duplicate_of <> id),
  check (replaces <> id)
);
create index invoices_newest on invoices (org_id, created_at desc, id);
create index invoices_by_number on invoices (org_id, provider, number_normalised) where number_normalised is not null;
create index invoices_by_period on invoices (org_id, provider, period_start);
create index invoices_duplicates on invoices (org_id, duplicate_of) where duplicate_of is not null;
create index invoices_replacing on invoices (org_id, replaces) where replaces is not null;
select protect_tenant_table('invoices', 'select, insert, update, delete');

create table invoice_lines (
  org_id uuid not null,
  invoice_id uuid not null,
  -- from 1, in the order of the document
  line_no integer not null check (line_no > 0),
  -- as it was read, with text, box, confidence and engine of each field
  extracted jsonb not null,
  -- what a person wrote instead, by field
  corrected jsonb,
  corrected_at timestamptz,
  corrected_by text,
  -- what counts
  description text not null,
  quantity numeric(38,12),
  unit_price numeric(38,12),
  amount numeric(38,12) not null,
  tax numeric(38,12),
  period_start date,
  period_end date,
  kind text not null check (kind in ('usage', 'prepaid_purchase', 'subscription', 'credit', 'tax', 'discount', 'proration', 'other')),
  model text,
  token_class text,
  -- null: not compared
  match_status text check (match_status in ('matched', 'partial', 'unmatched', 'not_billed_by_api')),
  matched_amount numeric(38,12),
  difference numeric(38,12),
  -- tokens of our calls of the same model, class and days
  observed_tokens numeric(38,12),
  primary key (org_id, invoice_id, line_no),
  foreign key (org_id, invoice_id) references invoices (org_id, id),
  check ((corrected is null) = (corrected_at is null))
);
select protect_tenant_table('invoice_lines', 'select, insert, update, delete');

-- The billed days that a line is compared with, in the currency of the comparison; a model that is not named is ''.
create table invoice_line_matches (
  org_id uuid not null,
  invoice_id uuid not null,
  line_no integer not null,
  provider_account_id text not null,
  day date not null,
  model text not null,
  token_class text not null,
  charge_category text not null,
  billed_amount numeric(38,12) not null,
  billed_quantity numeric(38,12),
  primary key (org_id, invoice_id, line_no, provider_account_id, day, model, token_class, charge_category),
  foreign key (org_id, invoice_id, line_no) references invoice_lines (org_id, invoice_id, line_no)
);
select protect_tenant_table('invoice_line_matches', 'select, insert, update, delete');

-- The extraction of an uploaded file, a retry of it, or another comparison of what was read.
create table invoice_runs (
  org_id uuid not null,
  id uuid not null,
  invoice_id uuid not null,
  cause text not null check (cause in ('upload', 'retry', 'rematch')),
  -- in which order the engines try; null: as the settings say
  engines text[] check (engines <@ array['text', 'tesseract', 'document_ai']),
  requested_by text,
  -- where the invoice goes back to when a retry fails
  status_before text not null check (status_before in ('received', 'extracting', 'matching', 'reconciled', 'needs_review', 'failed')),
  status text not null check (status in ('queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled')),
  stage text not null default 'queued',
  -- what is extracted, and until when it has one of the places of its organization
  extracting_until timestamptz,
  -- where the blob store holds what was extracted
  extraction_key text,
  -- degrees by which pages that are not upright are turned, by their number
  page_turns jsonb not null default '{}',
  result jsonb,
  error_code text,
  error_message text,
  cancel_requested_at timestamptz,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, invoice_id) references invoices (org_id, id)
);
-- Single flight, by invoice.
create unique index invoice_runs_open on invoice_runs (org_id, invoice_id) where status in ('queued', 'running');
create index invoice_runs_newest on invoice_runs (org_id, invoice_id, created_at desc, id);
select protect_tenant_table('invoice_runs', 'select, insert, update, delete');

-- The invoices that a claim cites: one that is cited is not deleted.
create table claim_invoices (
  org_id uuid not null,
  claim_id uuid not null,
  invoice_id uuid not null,
  cited_at timestamptz not null default now(),
  primary key (org_id, claim_id, invoice_id),
  foreign key (org_id, claim_id) references claims (org_id, id) on delete cascade,
  foreign key (org_id, invoice_id) references invoices (org_id, id)
);
create index claim_invoices_of_invoice on claim_invoices (org_id, invoice_id);
select protect_tenant_table('claim_invoices', 'select, insert, delete');

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in (${OUTBOX_BEFORE}, 'invoice_run.start', 'invoice_run.cancel'));

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}, 'invoice.processed', 'invoice.failed'));

alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}, 'blobs'));
`,
  down: `
delete from retention_runs where step = 'blobs';
alter table retention_runs drop constraint retention_runs_step_check;
alter table retention_runs add constraint retention_runs_step_check check (step in (${STEPS_BEFORE}));
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type like 'invoice.%';
delete from webhook_deliveries d using webhook_messages m where d.org_id = m.org_id and d.message_id = m.id and m.type like 'invoice.%';
delete from webhook_messages where type like 'invoice.%';
delete from outbox where kind like 'invoice\\_run.%';
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}));
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in (${OUTBOX_BEFORE}));
drop table claim_invoices, invoice_runs, invoice_line_matches, invoice_lines, invoices;
`,
};
