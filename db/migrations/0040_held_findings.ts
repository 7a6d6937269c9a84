import type { Migration } from './migration.js';

/** Findings whose days a dispute holds under another kind: they count as decided until the dispute is resolved. */
export const heldFindings: Migration = {
  name: '0040_held_findings',
  up: `
alter table findings
  -- the live dispute; null: whatever the status is, people have decided it. No foreign key: a dispute refers to its finding
  add column held_by uuid;
create index findings_held on findings (org_id, held_by) where held_by is not null;
`,
  down: `
set local role app_system;
update findings set status = 'open', decided_at = null, decided_by = null, decision_reason = null where held_by is not null;
reset role;
drop index findings_held;
alter table findings drop column held_by;
`,
};
