import type { Migration } from './migration.js';

/** Findings that an invoice gave: their run is the invoice's. */
export const invoiceFindings: Migration = {
  name: '0044_invoice_findings',
  up: `
-- A finding is the engine's, of a gap run, or an invoice's, of one of its runs.
alter table findings alter column run_id drop not null;
alter table findings add column invoice_id uuid;
alter table findings add column invoice_run_id uuid;
alter table findings add foreign key (org_id, invoice_id) references invoices (org_id, id);
alter table findings add foreign key (org_id, invoice_run_id) references invoice_runs (org_id, id);
alter table findings add constraint findings_of_a_run
  check (num_nonnulls(run_id, invoice_run_id) >= 1 and (invoice_id is null) = (invoice_run_id is null));
create index findings_of_invoice on findings (org_id, invoice_id) where invoice_id is not null;
-- which line of an invoice charges for a day
create index invoice_line_matches_by_day on invoice_line_matches (org_id, day, provider_account_id, model);
`,
  down: `
drop index invoice_line_matches_by_day;
delete from finding_days d using findings f where f.org_id = d.org_id and f.id = d.finding_id and f.invoice_id is not null;
delete from findings where invoice_id is not null;
alter table findings drop column invoice_id, drop column invoice_run_id;
alter table findings alter column run_id set not null;
`,
};
