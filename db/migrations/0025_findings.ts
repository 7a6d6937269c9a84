import type { Migration } from './migration.js';

/**
 * Findings of the reconciliation engine: a finding is a run of days of one series (provider, account, model) with one
 * explanation. A later run replaces the findings of the series that it explained anew, and keeps id and decision of those
 * that it finds again. Days are rows of their own, so that every total is a sum of rows.
 */
export const findings: Migration = {
  name: '0025_findings',
  up: `
create table findings (
  org_id uuid not null,
  id uuid not null,
  -- the run that last wrote it
  run_id uuid not null,
  provider text not null,
  -- '' where calls of unknown account were compared with the sum over all
  provider_account_id text not null,
  model text not null,
  -- a key of the violation taxonomy, or 'unexplained' (domain/reconciliation/taxonomy.ts)
  kind text not null,
  variant text not null,
  direction text not null check (direction in ('overcharge', 'undercharge')),
  blame text not null check (blame in ('provider', 'own', 'none')),
  claimable boolean not null,
  first_day date not null,
  last_day date not null check (last_day >= first_day),
  billed_usd numeric(24,12) not null,
  expected_usd numeric(24,12) not null,
  -- billed − expected, signed: the sum over its days
  impact_usd numeric(24,12) not null,
  recoverable_usd numeric(24,12) not null check (recoverable_usd >= 0),
  grade text not null check (grade in ('HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED')),
  probability double precision not null check (probability between 0 and 1),
  match_probability double precision not null check (match_probability between 0 and 1),
  visibility text not null check (visibility in ('V0', 'V1', 'V2', 'V3')),
  provisional boolean not null,
  critical boolean not null,
  missing_gates jsonb not null check (jsonb_typeof(missing_gates) = 'array'),
  next_best jsonb,
  lines jsonb not null check (jsonb_typeof(lines) = 'array'),
  waterfall jsonb not null check (jsonb_typeof(waterfall) = 'array'),
  reason text not null,
  advice jsonb not null check (jsonb_typeof(advice) = 'array'),
  weight_set text not null,
  -- gone: somebody had decided on it, and later runs no longer find it
  status text not null default 'open' check (status in ('open', 'confirmed', 'dismissed', 'gone')),
  decided_at timestamptz,
  decided_by text,
  decision_reason text check (length(decision_reason) <= 4000),
  found_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  foreign key (org_id, run_id) references gap_runs (org_id, id),
  check (billed_usd - expected_usd = impact_usd),
  check (recoverable_usd = 0 or (claimable and direction = 'overcharge')),
  check (status = 'open' or decided_at is not null)
);
create index findings_of_series on findings (org_id, provider, provider_account_id, model, first_day);
create index findings_by_impact on findings (org_id, status, (abs(impact_usd)) desc, id);
select protect_tenant_table('findings', 'select, insert, update, delete');

create table finding_days (
  org_id uuid not null,
  finding_id uuid not null,
  day date not null,
  billed_usd numeric(24,12) not null,
  expected_usd numeric(24,12) not null,
  impact_usd numeric(24,12) not null,
  -- impact = rate + volume + own pricing, to the pico-dollar
  rate_usd numeric(24,12) not null,
  volume_usd numeric(24,12) not null,
  own_pricing_usd numeric(24,12) not null,
  probability double precision not null check (probability between 0 and 1),
  primary key (org_id, finding_id, day),
  foreign key (org_id, finding_id) references findings (org_id, id) on delete cascade,
  check (impact_usd = rate_usd + volume_usd + own_pricing_usd),
  check (billed_usd - expected_usd = impact_usd)
);
select protect_tenant_table('finding_days', 'select, insert, update, delete');
`,
  down: 'drop table finding_days, findings;',
};
