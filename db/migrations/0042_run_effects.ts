import type { Migration } from './migration.js';

/** A run ends after its effects: what a gap run and a sync know before they end. */
export const runEffects: Migration = {
  name: '0042_run_effects',
  up: `
alter table gap_runs
  -- when its findings were published; claims are drafted after that, and then the run ends
  add column published_at timestamptz,
  -- how it ends when all that follows goes well
  add column published_status text check (published_status in ('succeeded', 'partial', 'failed')),
  add constraint gap_runs_published_check check ((published_at is null) = (published_status is null));
-- The gap run over what a sync has changed, known before the sync ends.
alter table sync_runs add column gap_run_id uuid;
`,
  down: `
alter table sync_runs drop column gap_run_id;
alter table gap_runs drop constraint gap_runs_published_check, drop column published_status, drop column published_at;
`,
};
