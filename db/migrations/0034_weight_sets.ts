import type { Migration } from './migration.js';

/** Weights learned from the outcomes of an organization's claims, version by version (docs/learning.md). */
export const weightSets: Migration = {
  name: '0034_weight_sets',
  up: `
-- The newest is what runs judge by. None is ever changed or removed: findings and claims name the one that they rest on.
create table weight_sets (
  org_id uuid not null references organizations (id),
  version integer not null check (version > 0),
  -- version of the set that it was learned on top of
  base text not null,
  -- LearnedWeights of domain/reconciliation/weights/learn.ts
  learned jsonb not null check (jsonb_typeof(learned) = 'object'),
  outcomes integer not null check (outcomes >= 0),
  -- drafts of claims whose tier it changed: what they were and what they are
  rescored jsonb not null default '[]' check (jsonb_typeof(rescored) = 'array'),
  made_at timestamptz not null,
  primary key (org_id, version)
);
select protect_tenant_table('weight_sets', 'select, insert');
`,
  down: 'drop table weight_sets;',
};
