import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type {
  BucketReason,
  Grade,
  MatchStatus,
  Visibility,
} from '../../domain/reconciliation/matching/cells.js';
import type { ComparedBucket } from '../../domain/reconciliation/statement/statementFigures.js';
import { COUNTED_SOURCES_TEXT, IS_DAILY_USAGE } from '../billing/billedDays.js';
import { countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';

/** A bucket as the gap explorer shows it. */
export interface PublishedBucket {
  bucketMicros: bigint;
  provider: string;
  accountId: string;
  model: string;
  runId: string;
  matchStatus: MatchStatus;
  grade: Grade;
  confidenceScore: number | null;
  visibility: Visibility;
  provisional: boolean;
  flagged: boolean;
  reason: BucketReason | null;
  gapMinutes: number | null;
  unobservedMinutes: number | null;
  providerCostPico: Pico;
  ourCostPico: Pico;
  ratePico: Pico | null;
  volumePico: Pico | null;
  ownPricingPico: Pico | null;
}

export interface PublishedBucketRow {
  bucket: bigint;
  provider: string;
  provider_account_id: string;
  model: string;
  run_id: string;
  match_status: MatchStatus;
  grade: Grade;
  confidence_score: number | null;
  visibility: Visibility;
  provisional: boolean;
  flagged: boolean;
  reason: BucketReason | null;
  gap_minutes: number | null;
  unobserved_minutes: number | null;
  provider_cost_usd: Pico;
  our_cost_usd: Pico;
  rate_usd: Pico | null;
  volume_usd: Pico | null;
  own_pricing_usd: Pico | null;
}

/** The size of a gap, of a row named b: what lists are ordered by. */
export const DELTA = 'abs(b.provider_cost_usd - b.our_cost_usd)';

/** Columns of a published bucket, of rows named b. */
export const BUCKET_COLUMNS = `b.bucket, b.provider, b.provider_account_id, b.model, b.run_id, b.match_status, b.grade, b.confidence_score, b.visibility,
  b.provisional, b.flagged, b.reason, b.gap_minutes, b.unobserved_minutes, b.provider_cost_usd, b.our_cost_usd, b.rate_usd, b.volume_usd, b.own_pricing_usd`;

export function fromPublishedRow(row: PublishedBucketRow): PublishedBucket {
  return {
    bucketMicros: row.bucket,
    provider: row.provider,
    accountId: row.provider_account_id,
    model: row.model,
    runId: row.run_id,
    matchStatus: row.match_status,
    grade: row.grade,
    confidenceScore: row.confidence_score,
    visibility: row.visibility,
    provisional: row.provisional,
    flagged: row.flagged,
    reason: row.reason,
    gapMinutes: row.gap_minutes,
    unobservedMinutes: row.unobserved_minutes,
    providerCostPico: row.provider_cost_usd,
    ourCostPico: row.our_cost_usd,
    ratePico: row.rate_usd,
    volumePico: row.volume_usd,
    ownPricingPico: row.own_pricing_usd,
  };
}

/** Columns of a published day `p`. */
const PUBLISHED_COLUMNS = `p.run_id, p.provider, p.provider_account_id, p.day, p.published_at,
       p.day::timestamptz as starts, (p.day + 1)::timestamptz as ends`;

/**
 * SQL of `published`: which run each day of a window, narrowed by `where`, is read from, so that a run that is under way
 * changes nothing. Beginning and end of the day are columns of it: under row-level security only a comparison of plain
 * columns can be looked up in the index of the buckets, one that converts a date to a time reads all of them.
 */
export const publishedDaysSql = (where: string) =>
  `published as materialized (select ${PUBLISHED_COLUMNS} from gap_published p where ${where})`;

/** Buckets of a published day `p`: by OFFSET 0 a lookup for each day, with and without statistics (docs/decisions/0042). */
const lookUpBuckets = (where: string) =>
  `cross join lateral (select * from gap_buckets
    where org_id = $1 and run_id = p.run_id and provider = p.provider and provider_account_id = p.provider_account_id and ${where} offset 0)`;

/** The days' buckets `b` of `published`, which is named p. */
export const BUCKETS_OF_DAYS = `from published p ${lookUpBuckets("width = 'day' and bucket = p.starts")} b`;

/** Whether the model of a bucket has hours on the published day `p`. */
const HAS_HOURS = `exists (select from gap_buckets h where h.org_id = $1 and h.run_id = p.run_id and h.provider = p.provider
    and h.provider_account_id = p.provider_account_id and h.width = 'hour' and h.bucket >= p.starts and h.bucket < p.ends
    and h.model = gap_buckets.model)`;

/** Likewise the hours, where a model's day has them, and days elsewhere. */
const BUCKETS_OF_HOURS = `from published p ${lookUpBuckets(
  `width in ('hour', 'day') and bucket >= p.starts and bucket < p.ends and (width = 'hour' or not ${HAS_HOURS})`,
)} b`;

const publishedInWindow = publishedDaysSql(
  'p.org_id = $1 and p.day >= $2::date and p.day < $3::date and ($4::text is null or p.provider = $4)',
);
const bucketsSql = (hourly: boolean) => (hourly ? BUCKETS_OF_HOURS : BUCKETS_OF_DAYS);

export interface BucketWindow {
  fromDay: string;
  toDay: string;
  provider: string | null;
  hourly: boolean;
}

/** Where a bucket stands in the order of the list. */
export interface BucketPosition {
  bucketMicros: bigint;
  /** |billed − ours| */
  deltaPico: Pico;
  /** Among those of the same time and gap, from 1. */
  place: number;
}

/** A bucket of the list, with its place among those of the same time and gap. */
export type PlacedBucket = PublishedBucket & { place: number };

/**
 * Order: newest bucket first, then the largest gap. `limit` counts from `offset`, or from after `after`. The page is
 * found in an index; the rest of a bucket is read for the page alone.
 */
export async function listPublishedBuckets(
  orgDb: OrgDb,
  window: BucketWindow,
  filter: { flaggedOnly: boolean; unmatchedOnly: boolean },
  page: { limit: number; offset: number; after: BucketPosition | undefined },
): Promise<PlacedBucket[]> {
  const { after } = page;
  const rows = await orgDb.rows<PublishedBucketRow & { place: number }>(
    `with ${publishedInWindow},
     page as materialized (
       select b.run_id, b.provider, b.provider_account_id, b.width, b.bucket, b.model, ${DELTA} as delta,
         row_number() over (partition by b.bucket, ${DELTA} order by b.provider, b.provider_account_id, b.model) as place
       ${bucketsSql(window.hourly)} where (not $5 or b.flagged) and (not $6 or b.match_status = 'unmatched')
         and ($7::timestamptz is null or b.bucket < $7 or (b.bucket = $7 and ${DELTA} <= $8::numeric))
       order by b.bucket desc, delta desc, place limit $9 offset $10)
     select ${BUCKET_COLUMNS}, page.place
     from page cross join lateral (select * from gap_buckets where org_id = $1 and run_id = page.run_id and provider = page.provider
       and provider_account_id = page.provider_account_id and width = page.width and bucket = page.bucket and model = page.model offset 0) b
     order by page.bucket desc, page.delta desc, page.place`,
    [
      ...valuesOf(orgDb, window),
      filter.flaggedOnly,
      filter.unmatchedOnly,
      after ? isoFromMicros(after.bucketMicros) : null,
      after ? decimalFromPico(after.deltaPico) : null,
      page.limit,
      after ? after.place : page.offset,
    ],
  );
  return rows.map((row) => ({ ...fromPublishedRow(row), place: row.place }));
}

const valuesOf = (orgDb: OrgDb, window: BucketWindow) => [
  orgDb.orgId,
  window.fromDay,
  window.toDay,
  window.provider,
];

/** How many buckets a window holds, and how many of them are flagged. */
export async function countPublishedBuckets(
  orgDb: OrgDb,
  window: BucketWindow,
): Promise<{ total: number; flagged: number }> {
  const rows = await orgDb.rows<{ total: number; flagged: number }>(
    `with ${publishedInWindow}
     select count(*)::bigint as total, (count(*) filter (where b.flagged))::bigint as flagged ${bucketsSql(window.hourly)}`,
    valuesOf(orgDb, window),
  );
  return rows[0] ?? { total: 0, flagged: 0 };
}

/** Of a window of days: what was billed as usage, and how much of it is matched at each grade. */
export interface MonthTotals {
  billedPico: Pico;
  matchedPico: Pico;
  /** Matched amounts by grade; what is missing to `billedPico` is unmatched. */
  matchedByGrade: Partial<Record<Grade, Pico>>;
}

/**
 * SQL of the provider-days that count as compared, `valid`, with their `published` runs, beside `counted`: every account of
 * the day is published by a run that read the very sources that count now. A restated or unmatched day is none of them. $2
 * and $3 are the days; `alsoWhere` narrows billing_days, which is named d.
 */
export const comparedDaysSql = (alsoWhere = '') =>
  `counted as materialized (${countedSourcesSql(`d.org_id = $1 and d.day >= $2 and d.day < $3 ${alsoWhere}`)}),
     current as (select provider, day, provider_account_id, ${COUNTED_SOURCES_TEXT} as counted_sources
       from counted group by provider, day, provider_account_id having bool_or(${IS_DAILY_USAGE})),
     valid as (select c.provider, c.day from current c
       left join lateral (select counted_sources from gap_published
         where org_id = $1 and provider = c.provider and day = c.day and provider_account_id = c.provider_account_id offset 0) p on true
       group by c.provider, c.day having bool_and(p.counted_sources is not null and p.counted_sources = c.counted_sources)),
     published as materialized (select ${PUBLISHED_COLUMNS} from valid
       cross join lateral (select * from gap_published where org_id = $1 and provider = valid.provider and day = valid.day offset 0) p)`;

/** Billed usage against published matches; days that do not count as compared are billed and unmatched. */
export async function sumMonth(orgDb: OrgDb, fromDay: string, toDay: string): Promise<MonthTotals> {
  const rows = await orgDb.rows<{ grade: Grade | null; amount_usd: Pico }>(
    `with ${comparedDaysSql()}
     select null as grade, coalesce(sum(amount_usd), 0) as amount_usd from counted where feed = 'cost' and charge_category = 'usage'
     union all
     select b.grade, sum(b.matched_usd) ${BUCKETS_OF_DAYS} group by b.grade`,
    [orgDb.orgId, fromDay, toDay],
  );
  const totals: MonthTotals = { billedPico: 0n, matchedPico: 0n, matchedByGrade: {} };
  for (const row of rows) {
    if (row.grade === null) totals.billedPico = row.amount_usd;
    else {
      totals.matchedByGrade[row.grade] = row.amount_usd;
      totals.matchedPico += row.amount_usd;
    }
  }
  return totals;
}

interface ComparedBucketRow {
  provider: string;
  account: string;
  day: string;
  grade: Grade;
  reason: BucketReason | null;
  provider_cost_usd: Pico;
  matched_usd: Pico;
  rate_usd: Pico | null;
}

/** The daily buckets of a half-open window of days, of provider-days that count as compared. */
export async function listComparedBuckets(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<ComparedBucket[]> {
  const rows = await orgDb.rows<ComparedBucketRow>(
    `with ${comparedDaysSql()}
     select b.provider, b.provider_account_id as account, p.day, b.grade, b.reason, b.provider_cost_usd, b.matched_usd, b.rate_usd
     ${BUCKETS_OF_DAYS}`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    day: row.day,
    grade: row.grade,
    reason: row.reason,
    providerCostPico: row.provider_cost_usd,
    matchedPico: row.matched_usd,
    ratePico: row.rate_usd,
  }));
}

/** The latest month before `beforeDay`'s that has billed usage, as its first day; undefined when none has. */
export async function findLastBilledMonth(orgDb: OrgDb, beforeDay: string): Promise<string | undefined> {
  const rows = await orgDb.rows<{ month: string | null }>(
    `select date_trunc('month', max(day))::date as month from billing_days
     where org_id = $1 and feed = 'cost' and day < date_trunc('month', $2::date)`,
    [orgDb.orgId, beforeDay],
  );
  return rows[0]?.month ?? undefined;
}
