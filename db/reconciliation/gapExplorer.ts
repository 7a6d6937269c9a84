import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Direction } from '../../domain/reconciliation/engine/index.js';

import type {
  BucketReason,
  ClassLine,
  Grade,
  MatchStatus,
  Visibility,
  WaterfallStep,
} from '../../domain/reconciliation/matching/cells.js';
import type { ComparedBucket } from '../../domain/reconciliation/statement/statementFigures.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import { COUNTED_SOURCES_TEXT, countedSourcesSql, IS_DAILY_USAGE } from '../billing/billingRows.js';
import { column, defineEntity } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

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

/** The size of the gap of a row named b, by which lists are ordered. */
export const DELTA = 'abs(b.provider_cost_usd - b.our_cost_usd)';

export const BUCKET_COLUMNS = defineEntity<PublishedBucket>('gap_buckets', {
  bucketMicros: column(),
  provider: column(),
  accountId: column('provider_account_id'),
  model: column(),
  runId: column(),
  matchStatus: column(),
  grade: column(),
  confidenceScore: column(),
  visibility: column(),
  provisional: column(),
  flagged: column(),
  reason: column(),
  gapMinutes: column(),
  unobservedMinutes: column(),
  providerCostPico: column('provider_cost_usd'),
  ourCostPico: column('our_cost_usd'),
  ratePico: column('rate_usd'),
  volumePico: column('volume_usd'),
  ownPricingPico: column('own_pricing_usd'),
}).columnsOf('b');

const PUBLISHED_COLUMNS = `p.run_id, p.provider, p.provider_account_id, p.day, p.published_at,
       p.day::timestamptz as starts, (p.day + 1)::timestamptz as ends`;

/**
 * SQL of `published`: the run that each day of a window, narrowed by `where`, is read from, so that a running run
 * changes nothing. Beginning and end of the day are columns, because under row-level security only a comparison of
 * plain columns can use the index of the buckets; one that converts a date to a time reads all of them.
 */
export const publishedDaysSql = (where: string) =>
  `published as materialized (select ${PUBLISHED_COLUMNS} from gap_published p where ${where})`;

/**
 * Buckets of a published day `p`: OFFSET 0 makes it one lookup for each day, with and without statistics
 * (docs/decisions/0042).
 */
const lookUpBuckets = (where: string) =>
  `cross join lateral (select * from gap_buckets
    where org_id = $1 and run_id = p.run_id and provider = p.provider and provider_account_id = p.provider_account_id and ${where} offset 0)`;

export const BUCKETS_OF_DAYS = `from published p ${lookUpBuckets("width = 'day' and bucket = p.starts")} b`;

/** Whether the model of a bucket has hourly buckets on the published day `p`. */
const HAS_HOURS = `exists (select from gap_buckets h where h.org_id = $1 and h.run_id = p.run_id and h.provider = p.provider
    and h.provider_account_id = p.provider_account_id and h.width = 'hour' and h.bucket >= p.starts and h.bucket < p.ends
    and h.model = gap_buckets.model)`;

/** Hourly buckets where a model's day has them, else daily ones. */
const BUCKETS_OF_HOURS = `from published p ${lookUpBuckets(
  `width in ('hour', 'day') and bucket >= p.starts and bucket < p.ends and (width = 'hour' or not ${HAS_HOURS})`,
)} b`;

const publishedInWindow = publishedDaysSql(
  'p.org_id = $1 and p.day >= $2::date and p.day < $3::date and ($4::text is null or p.provider = $4)',
);
const bucketsSql = (hourly: boolean) => (hourly ? BUCKETS_OF_HOURS : BUCKETS_OF_DAYS);

interface BucketWindow {
  fromDay: string;
  toDay: string;
  provider: string | null;
  hourly: boolean;
}

interface BucketPosition {
  bucketMicros: bigint;
  deltaPico: Pico;
  /** Index among those of the same time and gap, from 1. */
  place: number;
}

/** A bucket of the list, with its index among those of the same time and gap. */
export type PlacedBucket = PublishedBucket & { place: number };

/** Newest bucket first, then the largest gap; an index provides the page. */
export async function listPublishedBuckets(
  orgDb: OrgDb,
  window: BucketWindow,
  filter: { flaggedOnly: boolean; unmatchedOnly: boolean },
  page: { limit: number; offset: number; after: BucketPosition | undefined },
): Promise<PlacedBucket[]> {
  const { after } = page;
  return orgDb.rows<PlacedBucket>(
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
}

const valuesOf = (orgDb: OrgDb, window: BucketWindow) => [
  orgDb.orgId,
  window.fromDay,
  window.toDay,
  window.provider,
];

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

/** Billed usage of a window of days, and how much of it is matched at each grade. */
interface MonthTotals {
  billedPico: Pico;
  matchedPico: Pico;
  /** Matched amounts by grade; the rest of `billedPico` is unmatched. */
  matchedByGrade: Partial<Record<Grade, Pico>>;
}

/**
 * SQL of the provider-days that count as compared, `valid`, with their `published` runs, beside `counted`. A day counts
 * as compared when every account of the day is published by a run that read the present counted copies; restated and
 * unmatched days do not. $2 and $3 are the days; `alsoWhere` narrows billing_days, which is named d.
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
  const rows = await orgDb.rows<{ grade: Grade | null; amountPico: Pico }>(
    `with ${comparedDaysSql()}
     select null as grade, coalesce(sum(amount_usd), 0) as "amountPico" from counted where feed = 'cost' and charge_category = 'usage'
     union all
     select b.grade, sum(b.matched_usd) ${BUCKETS_OF_DAYS} group by b.grade`,
    [orgDb.orgId, fromDay, toDay],
  );
  const totals: MonthTotals = { billedPico: 0n, matchedPico: 0n, matchedByGrade: {} };
  for (const { grade, amountPico } of rows) {
    if (grade === null) totals.billedPico = amountPico;
    else {
      totals.matchedByGrade[grade] = amountPico;
      totals.matchedPico += amountPico;
    }
  }
  return totals;
}

/** The daily buckets of a half-open window of days, of provider-days that count as compared. */
export async function listComparedBuckets(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<ComparedBucket[]> {
  return orgDb.rows<ComparedBucket>(
    `with ${comparedDaysSql()}
     select b.provider, b.provider_account_id as "accountId", p.day, b.grade, b.reason, b.provider_cost_usd as "providerCostPico",
       b.matched_usd as "matchedPico", b.rate_usd as "ratePico"
     ${BUCKETS_OF_DAYS}`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
}

/** The latest month with billed usage before the month of `beforeDay`, as its first day; undefined: there is none. */
export async function findLastBilledMonth(orgDb: OrgDb, beforeDay: string): Promise<string | undefined> {
  const rows = await orgDb.rows<{ month: string | null }>(
    `select date_trunc('month', max(day))::date as month from billing_days
     where org_id = $1 and feed = 'cost' and day < date_trunc('month', $2::date)`,
    [orgDb.orgId, beforeDay],
  );
  return rows[0]?.month ?? undefined;
}

/** A published day of one account and model, with all its inputs. */
export interface MatchRecord extends PublishedBucket {
  matchId: string;
  /** null: compared before calls were counted. */
  eventCount: number | null;
  lines: ClassLine[];
  waterfall: WaterfallStep[];
  publishedAtMicros: bigint;
}

/** Filter of matches: days are half-open; undefined fields do not narrow. */
export interface MatchFilter {
  fromDay: string;
  toDay: string;
  provider: string | undefined;
  accountId: string | undefined;
  grade: Grade | undefined;
  matchStatus: MatchStatus | undefined;
}

interface MatchPosition {
  deltaPico: Pico;
  matchId: string;
}

const PUBLISHED = publishedDaysSql(
  `p.org_id = $1 and p.day >= $2::date and p.day < $3::date and ($4::text is null or p.provider = $4)
       and ($5::text is null or p.provider_account_id = $5)`,
);
const RECORDS = `${BUCKETS_OF_DAYS} where ($6::text is null or b.grade = $6) and ($7::text is null or b.match_status = $7)`;

const matchValuesOf = (orgDb: OrgDb, filter: MatchFilter) => [
  orgDb.orgId,
  filter.fromDay,
  filter.toDay,
  filter.provider ?? null,
  filter.accountId ?? null,
  filter.grade ?? null,
  filter.matchStatus ?? null,
];

type StoredMatch = Omit<MatchRecord, 'lines'> & { cells: StoredLine[] };

/** A token class as stored with its bucket: quantities and dollars as decimal texts. */
export type StoredLine = {
  [Name in keyof ClassLine]: bigint extends ClassLine[Name]
    ? string
    : null extends ClassLine[Name]
      ? string | null
      : ClassLine[Name];
};

/** By |billed − ours| descending, then id; an index provides the page. */
export async function listMatches(
  orgDb: OrgDb,
  filter: MatchFilter,
  page: { limit: number; offset: number; after: MatchPosition | undefined },
): Promise<MatchRecord[]> {
  const rows = await orgDb.rows<StoredMatch>(
    `with ${PUBLISHED},
     page as materialized (
       select p.published_at, b.run_id, b.provider, b.provider_account_id, b.bucket, b.model, b.match_id, ${DELTA} as delta
       ${RECORDS} and ($8::numeric is null or ${DELTA} < $8 or (${DELTA} = $8 and b.match_id > $9::uuid))
       order by delta desc, b.match_id limit $10 offset $11)
     select ${BUCKET_COLUMNS}, b.match_id as "matchId", b.event_count as "eventCount", b.cells, b.waterfall,
       page.published_at as "publishedAtMicros"
     from page cross join lateral (select * from gap_buckets where org_id = $1 and run_id = page.run_id and provider = page.provider
       and provider_account_id = page.provider_account_id and width = 'day' and bucket = page.bucket and model = page.model offset 0) b
     order by page.delta desc, b.match_id`,
    [
      ...matchValuesOf(orgDb, filter),
      page.after ? decimalFromPico(page.after.deltaPico) : null,
      page.after?.matchId ?? null,
      page.limit,
      page.after ? 0 : page.offset,
    ],
  );
  return rows.map(({ cells, ...match }) => ({ ...match, lines: cells.map(fromStoredLine) }));
}

export function fromStoredLine(line: StoredLine): ClassLine {
  const exact = (text: string): bigint => picoFromDecimal(text) ?? 0n;
  const known = (text: string | null) => (text === null ? null : exact(text));
  return {
    ...line,
    billedQuantity: known(line.billedQuantity),
    observedQuantity: exact(line.observedQuantity),
    billedPico: exact(line.billedPico),
    expectedOfBilledPico: known(line.expectedOfBilledPico),
    expectedOfObservedPico: known(line.expectedOfObservedPico),
  };
}

/** Sums of all matches of a filter: the billed amounts that calls explain, and the rest. */
export async function sumMatches(
  orgDb: OrgDb,
  filter: MatchFilter,
): Promise<{ matchedPico: Pico; unmatchedPico: Pico }> {
  const [row] = await orgDb.rows<{ matched: Pico; unmatched: Pico }>(
    `with ${PUBLISHED}
     select coalesce(sum(b.matched_usd), 0) as matched, coalesce(sum(b.provider_cost_usd - b.matched_usd), 0) as unmatched ${RECORDS}`,
    matchValuesOf(orgDb, filter),
  );
  return { matchedPico: row?.matched ?? 0n, unmatchedPico: row?.unmatched ?? 0n };
}

export interface MatchDay {
  provider: string;
  accountId: string;
  model: string;
  day: string;
}

/** A finding that includes a match's day. */
export interface MatchFinding {
  findingId: string;
  kind: FindingKind;
  direction: Direction;
  grade: Grade;
  status: string;
  /** On that day alone: billed minus right. */
  impactPico: Pico;
}

/** The findings of each of these days, in the order of the days, without those that later runs no longer find. */
export async function listMatchFindings(orgDb: OrgDb, days: readonly MatchDay[]): Promise<MatchFinding[][]> {
  const found = days.map((): MatchFinding[] => []);
  if (days.length === 0) return found;
  const rows = await orgDb.rows<MatchFinding & { at: number }>(
    `select t.at, f.id as "findingId", f.kind, f.direction, f.grade, f.status, d.impact_usd as "impactPico"
     from unnest($2::text[], $3::text[], $4::text[], $5::date[]) with ordinality as t (provider, account, model, day, at)
     cross join lateral (select * from findings where org_id = $1 and provider = t.provider and provider_account_id = t.account
       and model = t.model and first_day <= t.day and last_day >= t.day and status <> 'gone' and invoice_id is null offset 0) f
     cross join lateral (select impact_usd from finding_days where org_id = $1 and finding_id = f.id and day = t.day offset 0) d
     order by t.at, abs(d.impact_usd) desc, f.id`,
    [orgDb.orgId, ...namesOf(days)],
  );
  for (const { at, ...finding } of rows) found[at - 1]?.push(finding);
  return found;
}

/** The dispute of each of these days, in the order of the days: an open one before a resolved one. */
export async function listMatchDisputes(orgDb: OrgDb, days: readonly MatchDay[]): Promise<(string | null)[]> {
  const found = days.map((): string | null => null);
  if (days.length === 0) return found;
  const rows = await orgDb.rows<{ at: number; dispute_id: string }>(
    `select distinct on (t.at) t.at, d.id as dispute_id
     from unnest($2::text[], $3::text[], $4::text[], $5::date[]) with ordinality as t (provider, account, model, day, at)
     cross join lateral (select dispute_id, live from dispute_days where org_id = $1 and provider = t.provider
       and provider_account_id = t.account and model = t.model and day = t.day offset 0) dd
     cross join lateral (select id, opened_at from disputes where org_id = $1 and id = dd.dispute_id offset 0) d
     order by t.at, dd.live desc, d.opened_at desc, d.id`,
    [orgDb.orgId, ...namesOf(days)],
  );
  for (const row of rows) found[row.at - 1] = row.dispute_id;
  return found;
}

const namesOf = (days: readonly MatchDay[]) => [
  textArray(days.map((one) => one.provider)),
  textArray(days.map((one) => one.accountId)),
  textArray(days.map((one) => one.model)),
  plainArray(days.map((one) => one.day)),
];
