import type { Migration } from './migration.js';

/** Rules that wrappers judge calls by, and the way to the calls that they blocked (docs/decisions/0027). */
export const enforcementRules: Migration = {
  name: '0022_enforcement_rules',
  up: `
create table enforcement_rules (
  org_id uuid not null references organizations (id),
  id uuid not null,
  name text check (length(name) between 1 and 256),
  type text not null check (type in ('token_ceiling', 'session_budget_usd', 'duplicate_window_seconds', 'max_tool_calls', 'model_downgrade')),
  -- by the names on the wire; an amount of dollars as a decimal text, since a number of JSON is no exact one
  config jsonb not null check (jsonb_typeof(config) = 'object'),
  -- {team_id, feature, model}: those that the rule names
  scope jsonb not null default '{}' check (jsonb_typeof(scope) = 'object'),
  enabled boolean not null,
  mode text not null check (mode in ('block', 'observe')),
  -- the order in which rules are asked; of the clock, not of the transaction's beginning
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  created_by text not null,
  -- a removed rule is in no list, and still names the calls that it blocked
  removed_at timestamptz,
  primary key (org_id, id),
  check (type <> 'model_downgrade' or (scope ? 'model' and scope->>'model' <> config->>'to_model'))
);
create index enforcement_rules_in_order on enforcement_rules (org_id, created_at, id) where removed_at is null;
select protect_tenant_table('enforcement_rules', 'select, insert, update');
-- Wrappers with a workspace's key ask for the rules too; they hold for the whole organization.
select limit_to_project('enforcement_rules', 'true');

-- The few calls that were blocked among all. What may change of an event later stands outside it, so that such a
-- change need not touch any index.
create index events_blocked on events (org_id, timestamp) where status = 'blocked';

-- A blocked call costs nothing. Earlier ones were in no total, but were told with the cost that they would have had, so
-- nothing has to be counted anew.
set local role app_system;
update events set cost_usd = 0, computed_cost_usd = 0, reported_cost_usd = null, cost_source = 'computed', price_gaps = null, context_band = 0
where status = 'blocked' and (cost_usd <> 0 or computed_cost_usd is distinct from 0 or cost_source <> 'computed' or price_gaps is not null or context_band <> 0);
reset role;
`,
  // The former costs of blocked calls are not known any more.
  down: `
drop index events_blocked;
drop table enforcement_rules;
`,
};
