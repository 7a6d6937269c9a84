import type { Migration } from './migration.js';

/** Findings that an invoice gave: their run is the invoice's. */
export const invoiceFindings: Migration = {
  name: '0044_invoice_findings',
  up: `
-- a gap run, or a run of the invoice
alter table findings drop constraint findings_org_id_run_id_fkey;
-- null: the engine found it by comparing bills with calls
alter table findings add column invoice_id uuid;
alter table findings add foreign key (org_id, invoice_id) references invoices (org_id, id);
create index findings_of_invoice on findings (org_id, invoice_id) where invoice_id is not null;
`,
  down: `
delete from finding_days d using findings f where f.org_id = d.org_id and f.id = d.finding_id and f.invoice_id is not null;
delete from findings where invoice_id is not null;
alter table findings drop column invoice_id;
alter table findings add foreign key (org_id, run_id) references gap_runs (org_id, id);
`,
};
