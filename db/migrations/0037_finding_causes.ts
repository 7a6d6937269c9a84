import type { Migration } from './migration.js';

const CAUSED = 'too much|too little|above what these events cost|below what these events cost';
/** The sentence of a reason that has the amount and the days. */
const AMOUNT = ` The bill is [$][0-9]+[.][0-9]{2} (${CAUSED}) on ([0-9-]{10}|[0-9]+ days from [0-9-]{10} to [0-9-]{10})[.]`;

/**
 * The cause of a finding, apart from its dollars and days: a dispute over some days of a finding has a sentence of its own
 * amount. Reasons that are there rounded to the nearest cent, and claims round down: their amounts are written anew.
 */
export const findingCauses: Migration = {
  name: '0037_finding_causes',
  up: `
create function cause_of(reason text) returns text language sql immutable as $$
  select regexp_replace(reason, '${AMOUNT}', '') $$;
create function reason_with(reason text, impact_usd numeric, first_day date, last_day date, days bigint) returns text language sql immutable as $$
  select cause_of(reason) || ' The bill is $' || to_char(trunc(abs(impact_usd), 2), 'FM999,999,999,990.00') || ' '
    || substring(reason from ' The bill is [$][0-9]+[.][0-9]{2} (${CAUSED}) on ') || ' on '
    || case when days = 1 then first_day::text else days || ' days from ' || first_day || ' to ' || last_day end || '.' $$;
create function with_causes(findings jsonb) returns jsonb language sql immutable as $$
  select coalesce(jsonb_agg(one || jsonb_build_object('cause', cause_of(one ->> 'reason')) order by at), '[]')
  from jsonb_array_elements(findings) with ordinality as f(one, at) $$;

alter table findings add column cause text;
set local role app_system;
update findings set cause = cause_of(reason);
update findings f set reason = reason_with(f.reason, f.impact_usd, f.first_day, f.last_day, n.days)
from (select org_id, finding_id, count(*) as days from finding_days group by 1, 2) n
where n.org_id = f.org_id and n.finding_id = f.id and f.reason ~ '${AMOUNT}';
update disputes p set reason = reason_with(p.reason, p.provider_cost_usd - p.our_cost_usd, p.period_start, p.period_end, n.days)
from (select org_id, dispute_id, count(*) as days from dispute_days group by 1, 2) n
where n.org_id = p.org_id and n.dispute_id = p.id and p.reason ~ '${AMOUNT}';
-- what runs have found and the next one reads again
update series_explanations set explanation = jsonb_set(explanation, '{findings}', with_causes(explanation -> 'findings'));
update gap_run_series set explanation = jsonb_set(explanation, '{findings}', with_causes(explanation -> 'findings')) where explanation is not null;
update gap_run_accounts set findings = with_causes(findings);
reset role;
alter table findings alter column cause set not null;
drop function with_causes(jsonb), reason_with(text, numeric, date, date, bigint), cause_of(text);
`,
  down: 'alter table findings drop column cause;',
};
