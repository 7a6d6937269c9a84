import { createHash } from 'node:crypto';
import pg from 'pg';
import { publicId } from '../../../domain/ids.js';

const EVIDENCE = { pricing_snapshot: { version: 'bench' } };

/** Stores drafts of an organization, each for one dispute of one day; returns their public ids. */
export async function storeDrafts(url: string, orgId: string, count: number): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('begin');
    const { rows } = await client.query<{ id: string }>(
      `insert into claims (org_id, id, provider, provider_account_id, period_start, period_end, total_recoverable_cents,
         confidence_tier, evidence, evidence_sha256, created_by)
       select $1, gen_random_uuid(), 'openai', 'acc-1', '2026-03-10', '2026-03-10', 12345, 'HIGH', $2::jsonb, $3, 'bench'
       from generate_series(1, $4::int) returning id`,
      [
        orgId,
        JSON.stringify(EVIDENCE),
        createHash('sha256').update(JSON.stringify(EVIDENCE)).digest(),
        count,
      ],
    );
    const ids = rows.map(({ id }) => id);
    await client.query(
      `insert into claim_events (org_id, claim_id, version, command_id, to_status, at, actor)
       select $1, id, 1, 'made:' || id, 'draft', now(), 'bench' from unnest($2::uuid[]) id`,
      [orgId, ids],
    );
    await storeDisputes(client, orgId, ids);
    await client.query('commit');
    return ids.map((id) => publicId('clm', id));
  } finally {
    await client.end();
  }
}

/** One dispute for each claim, over a separate finding. */
async function storeDisputes(client: pg.Client, orgId: string, claimIds: readonly string[]): Promise<void> {
  await client.query(
    `with run as (
       insert into gap_runs (org_id, id, period, status, window_start, window_end, finished_at)
       values ($1, gen_random_uuid(), '30d', 'succeeded', '2026-03-01', '2026-03-31', now()) returning id
     ), found as (
       insert into findings (org_id, id, run_id, provider, provider_account_id, model, kind, variant, direction, blame, claimable,
         first_day, last_day, billed_usd, expected_usd, impact_usd, recoverable_usd, grade, probability, match_probability, visibility,
         provisional, critical, missing_gates, lines, waterfall, cause, reason, advice, weight_set, status, decided_at, decided_by)
       select $1, claim, run.id, 'openai', 'acc-1', 'model-' || claim, 'cache_read_rate_mismatch', 'full_rate', 'overcharge', 'provider', true,
         '2026-03-10', '2026-03-10', 1000, 876.55, 123.45, 123.45, 'HIGH', 0.97, 0.99, 'V3',
         false, false, '[]', '[]', '[{"signal":"prior","level":"kind","bits":-3}]', 'Cached input was charged at the full rate.',
         'Cached input was charged at the full rate.', '[]', 'default-1', 'confirmed', now(), 'bench'
       from run, unnest($2::uuid[]) claim returning id, model
     ), disputed as (
       insert into disputes (org_id, id, finding_id, claim_id, provider, provider_account_id, model, kind, period_start, period_end,
         amount_cents, provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, opened_by)
       select $1, id, id, id, 'openai', 'acc-1', model, 'cache_read_rate_mismatch', '2026-03-10', '2026-03-10',
         12345, 1000, 876.55, 'HIGH', 'Cached input was charged at the full rate.',
         '{"probability":0.97,"waterfall":[{"signal":"prior","level":"kind","bits":-3}],"weight_set":"default-1"}', 'bench'
       from found returning id, model
     )
     insert into dispute_days (org_id, dispute_id, day, provider, provider_account_id, model, kind, variant,
       billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd)
     select $1, id, '2026-03-10', 'openai', 'acc-1', model, 'cache_read_rate_mismatch', 'full_rate', 1000, 876.55, 123.45, 123.45, 0, 0
     from disputed`,
    [orgId, claimIds],
  );
}
