import type { Migration } from './migration.js';

/**
 * The head of an audit log goes forward row by row, whoever asks: a role that adds rows could set it back, and every
 * later action of the organization would fail on a number that is taken. And no row has a number or a time that the
 * service could not read any more.
 */
export const auditHeads: Migration = {
  name: '0019_audit_heads',
  up: `
create function refuse_audit_head() returns trigger language plpgsql as $$
begin
  if new.org_id = old.org_id and new.seq = old.seq + 1 and new.at >= old.at and new.prev_hash = old.hash then
    return new;
  end if;
  raise exception 'the head of an audit log only goes on to the next row' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_heads_go_on before update on audit_heads for each row execute function refuse_audit_head();
-- 2^53 - 1: beyond it numbers are no longer told apart
alter table audit_heads add constraint audit_heads_readable check (isfinite(at) and seq <= 9007199254740991);
alter table audit_log add constraint audit_log_readable check (isfinite(at) and seq <= 9007199254740991);
`,
  down: `
alter table audit_log drop constraint audit_log_readable;
alter table audit_heads drop constraint audit_heads_readable;
drop trigger audit_heads_go_on on audit_heads;
drop function refuse_audit_head();
`,
};
