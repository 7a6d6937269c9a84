import pg from 'pg';

/**
 * Recomputes the totals from the stored events in one pass each, as the superuser and with separate SQL; the
 * folded totals must equal them exactly. First and last times are not compared: they only widen, so those of a
 * report that was superseded after the fold stay.
 */
const LIVE = `select * from events where superseded_by is null`;

const SUMS = `count(*), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_creation), sum(reasoning_tok),
  sum(cost_usd), sum(coalesce(computed_cost_usd, 0)), sum(coalesce(reported_cost_usd, 0)),
  count(*) filter (where cost_source = 'unpriced')`;

const SUM_NAMES = `calls, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cost_usd,
  computed_cost_usd, reported_cost_usd, unpriced`;

const HOUR = `date_trunc('hour', timestamp, 'UTC')`;
const DAY = `date_trunc('day', timestamp, 'UTC')`;

/** Dimension → bucket and key. */
const DIMENSIONS: Record<string, [bucket: string, key: string]> = {
  model: [HOUR, 'model'],
  provider: [HOUR, 'provider'],
  team: [HOUR, `coalesce(team_id, '')`],
  feature: [HOUR, `coalesce(feature, '')`],
  project: [HOUR, `coalesce(project_id, '')`],
  key: [HOUR, 'api_key_id'],
  user: [DAY, `coalesce(user_id, '')`],
  session: [DAY, 'session_id'],
  source: [HOUR, `service_name || chr(31) || scope_name`],
};

const ROLLUPS = Object.entries(DIMENSIONS)
  .map(
    ([dimension, [bucket, key]]) => `
    select org_id, '${dimension}', ${bucket}, ${key}, ${SUMS}
    from (${LIVE}) live where status <> 'blocked' group by 1, 3, 4`,
  )
  .join(' union all ');

const LABELS = `
  select org_id, (timestamp at time zone 'UTC')::date, provider, model, coalesce(team_id, ''), coalesce(feature, ''), ${SUMS}
  from (${LIVE}) live where status <> 'blocked' group by 1, 2, 3, 4, 5, 6`;

const CELLS = `
  select org_id, date_trunc('hour', end_at, 'UTC'), billed_by, coalesce(provider_account_id, ''), coalesce(provider_key_id, ''),
    coalesce(response_model, model), coalesce(service_tier, ''), is_batch, context_band, status, count(*),
    sum(input_tokens - input_audio), sum(cache_read), sum(cache_creation - coalesce(cache_creation_1h, 0)),
    sum(coalesce(cache_creation_1h, 0)), sum(output_tokens - output_audio), sum(input_audio), sum(output_audio),
    sum(reasoning_tok), sum(coalesce(computed_cost_usd, 0))
  from (${LIVE}) live where status <> 'blocked' group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10`;

/** By each biller's clock; no call here is billed by Google. */
const SOURCES = `
  select org_id, billed_by, (end_at at time zone 'UTC')::date, coalesce(provider_account_id, ''), coalesce(provider_key_id, ''),
    coalesce(response_model, model), service_name, count(*),
    count(*) filter (where unmetered or usage_missing && '{cache_read,cache_write_5m,cache_write_1h}'),
    count(response_model) filter (where status <> 'error'), count(*) filter (where status = 'error' and http_status >= 400)
  from (${LIVE}) live where status <> 'blocked' and billed_by <> 'google' group by 1, 2, 3, 4, 5, 6, 7`;

const CHECKS: Record<string, { folded: string; recomputed: string }> = {
  usage_rollups: {
    folded: `select org_id, dimension, bucket, key, ${SUM_NAMES} from usage_rollups where calls <> 0`,
    recomputed: ROLLUPS,
  },
  label_cells: {
    folded: `select org_id, day, provider, model, team_id, feature, ${SUM_NAMES} from label_cells where calls <> 0`,
    recomputed: LABELS,
  },
  billing_cells: {
    folded: `select org_id, hour, billed_by, provider_account_id, provider_key_id, model, service_tier, is_batch, context_band,
      status, calls, input_tokens, cache_read, cache_write_5m, cache_write_1h, output_tokens, input_audio, output_audio,
      reasoning_tok, computed_cost_usd from billing_cells where calls <> 0`,
    recomputed: CELLS,
  },
  source_days: {
    folded: `select org_id, billed_by, day, provider_account_id, provider_key_id, model, service_name, calls, without_cache,
      named_by_answer, refused from source_days where calls <> 0 and billed_by <> 'google'`,
    recomputed: SOURCES,
  },
};

export interface TotalsCheck {
  table: string;
  rows: number;
  /** Number of rows that only one of the two has. */
  differing: number;
}

/** Compares each table of totals with the events. Everything must have been folded. */
export async function checkTotals(url: string): Promise<TotalsCheck[]> {
  return withClient(url, async (client) => {
    const checks: TotalsCheck[] = [];
    for (const [table, { folded, recomputed }] of Object.entries(CHECKS)) {
      const result = await client.query<{ rows: number; differing: number }>(
        `with folded as materialized (${folded}), recomputed as materialized (${recomputed})
         select (select count(*)::int from folded) as rows,
           (select count(*)::int from (select * from folded except all select * from recomputed) missing)
           + (select count(*)::int from (select * from recomputed except all select * from folded) surplus) as differing`,
      );
      checks.push({ table, rows: result.rows[0]?.rows ?? 0, differing: result.rows[0]?.differing ?? -1 });
    }
    return checks;
  });
}

/** Number of events that count, and of all stored ones. */
export async function countEvents(url: string): Promise<{ live: number; stored: number }> {
  return withClient(url, async (client) => {
    const result = await client.query<{ live: number; stored: number }>(
      'select count(*) filter (where superseded_by is null)::int as live, count(*)::int as stored from events',
    );
    return result.rows[0] ?? { live: 0, stored: 0 };
  });
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, options: '-c timezone=UTC' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
