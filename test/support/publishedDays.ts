import { randomUUID } from 'node:crypto';
import type { TestApi, TestOrganization } from './api.js';
import type { TestDatabase } from './database.js';

/** A day of one account and model as a run would have published it; the defaults are those of a matched dollar. */
export interface PublishedDay {
  day: string;
  provider?: string;
  account?: string;
  model?: string;
  /** Adds an hour of the day. */
  hour?: number;
  status?: 'matched' | 'partial' | 'unmatched';
  grade?: 'HIGH' | 'MEDIUM' | 'LOW' | 'UNVERIFIED';
  score?: number | null;
  billedUsd?: string;
  ourUsd?: string;
  matchedUsd?: string;
  rateUsd?: string | null;
  volumeUsd?: string | null;
  ownUsd?: string | null;
  reason?: string | null;
  flagged?: boolean;
  provisional?: boolean;
  eventCount?: number | null;
  billedTokens?: string | null;
  observedTokens?: string | null;
  coveredTokens?: string | null;
  cells?: object[];
  waterfall?: object[];
}

/** A run that has published these days; returns its id. A day that was published before is this run's from now on. */
export async function publishDays(
  { superuser }: Pick<TestDatabase, 'superuser'>,
  orgId: string,
  days: readonly PublishedDay[],
): Promise<string> {
  const runId = randomUUID();
  await superuser.query(
    `insert into gap_runs (org_id, id, period, status, window_start, window_end, finished_at) values ($1, $2, '90d', 'succeeded', now(), now(), now())`,
    [orgId, runId],
  );
  await superuser.query(
    `insert into gap_buckets (org_id, run_id, width, bucket, provider, provider_account_id, model, match_status, grade, confidence_score, visibility,
       provisional, flagged, reason, provider_cost_usd, our_cost_usd, rate_usd, volume_usd, own_pricing_usd, matched_usd, cells, waterfall,
       event_count, billed_tokens, observed_tokens, covered_tokens)
     select $1, $2, case when hour is null then 'day' else 'hour' end, day::timestamp at time zone 'UTC' + make_interval(hours => coalesce(hour, 0)),
       provider, account, model, status, grade, score, 'V2', provisional, flagged, reason, billed, ours, rate, volume, own, matched, cells, waterfall,
       events, billed_tokens, observed_tokens, covered_tokens
     from jsonb_to_recordset($3::jsonb) as t (day date, hour int, provider text, account text, model text, status text, grade text, score float8,
       provisional bool, flagged bool, reason text, billed numeric, ours numeric, rate numeric, volume numeric, own numeric, matched numeric,
       cells jsonb, waterfall jsonb, events bigint, billed_tokens numeric, observed_tokens numeric, covered_tokens numeric)`,
    [orgId, runId, JSON.stringify(days.map(rowOf))],
  );
  await superuser.query(
    `insert into gap_published (org_id, provider, provider_account_id, day, run_id, counted_sources)
     select distinct org_id, provider, provider_account_id, (bucket at time zone 'UTC')::date, run_id, 'x' from gap_buckets where org_id = $1 and run_id = $2
     on conflict (org_id, provider, day, provider_account_id) do update set run_id = excluded.run_id, published_at = now()`,
    [orgId, runId],
  );
  return runId;
}

function rowOf(given: PublishedDay): object {
  const status = given.status ?? 'matched';
  const billed = given.billedUsd ?? '1';
  return {
    day: given.day,
    hour: given.hour,
    provider: given.provider ?? 'openai',
    account: given.account ?? 'org-1',
    model: given.model ?? 'gpt-6-sol',
    status,
    grade: given.grade ?? (status === 'unmatched' ? 'UNVERIFIED' : 'HIGH'),
    score: given.score === undefined ? (status === 'unmatched' ? null : 0.99) : given.score,
    provisional: given.provisional ?? false,
    flagged: given.flagged ?? false,
    reason: given.reason ?? null,
    billed,
    ours: given.ourUsd ?? (status === 'unmatched' ? '0' : billed),
    rate: given.rateUsd ?? null,
    volume: given.volumeUsd ?? null,
    own: given.ownUsd ?? null,
    matched: given.matchedUsd ?? (status === 'unmatched' ? '0' : billed),
    cells: given.cells ?? [],
    waterfall: given.waterfall ?? [],
    events: given.eventCount === undefined ? 1 : given.eventCount,
    billed_tokens: given.billedTokens ?? null,
    observed_tokens: given.observedTokens ?? null,
    covered_tokens: given.coveredTokens ?? null,
  };
}

/** A new organization with a run that has published these days, and the run's id. */
export async function addPublishedDays(
  api: TestApi,
  days: readonly PublishedDay[],
): Promise<TestOrganization & { runId: string }> {
  const org = await api.addOrganization();
  return { ...org, runId: await publishDays(api.database, org.orgId, days) };
}

/** `YYYY-MM-DD`, `days` before today, UTC. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}
