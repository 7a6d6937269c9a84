import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import type { Direction } from '../../domain/reconciliation/inference/finding.js';
import type {
  ClassLine,
  Grade,
  MatchStatus,
  WaterfallStep,
} from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import {
  BUCKET_COLUMNS,
  BUCKETS_OF_DAYS,
  DELTA,
  fromPublishedRow,
  type PublishedBucket,
  type PublishedBucketRow,
  publishedDaysSql,
} from './gapExplorer.js';

/** A published day of one account and model, with all that it rests on. */
export interface MatchRecord extends PublishedBucket {
  matchId: string;
  /** Null in what was compared before calls were counted with it. */
  eventCount: number | null;
  lines: ClassLine[];
  waterfall: WaterfallStep[];
  publishedAtMicros: bigint;
}

/** Which records: days are half-open; what is undefined does not narrow. */
export interface MatchFilter {
  fromDay: string;
  toDay: string;
  provider: string | undefined;
  accountId: string | undefined;
  grade: Grade | undefined;
  matchStatus: MatchStatus | undefined;
}

/** Where a record stands in the order of the list. */
export interface MatchPosition {
  /** |billed − ours| */
  deltaPico: Pico;
  matchId: string;
}

const PUBLISHED = publishedDaysSql(
  `p.org_id = $1 and p.day >= $2::date and p.day < $3::date and ($4::text is null or p.provider = $4)
       and ($5::text is null or p.provider_account_id = $5)`,
);
const RECORDS = `${BUCKETS_OF_DAYS} where ($6::text is null or b.grade = $6) and ($7::text is null or b.match_status = $7)`;

const valuesOf = (orgDb: OrgDb, filter: MatchFilter) => [
  orgDb.orgId,
  filter.fromDay,
  filter.toDay,
  filter.provider ?? null,
  filter.accountId ?? null,
  filter.grade ?? null,
  filter.matchStatus ?? null,
];

type MatchRow = PublishedBucketRow & {
  match_id: string;
  event_count: number | null;
  cells: StoredLine[];
  waterfall: WaterfallStep[];
  published_at: bigint;
};

/** A class as it is kept with its bucket: quantities and dollars as decimal texts. */
export type StoredLine = {
  [Name in keyof ClassLine]: bigint extends ClassLine[Name]
    ? string
    : null extends ClassLine[Name]
      ? string | null
      : ClassLine[Name];
};

/**
 * Records by |billed − ours|, the largest first, then by id. Order and page are found in an index that holds nothing
 * else; what a record rests on is read for the page alone. `limit` counts from `offset`, or from after `after`.
 */
export async function listMatches(
  orgDb: OrgDb,
  filter: MatchFilter,
  page: { limit: number; offset: number; after: MatchPosition | undefined },
): Promise<MatchRecord[]> {
  const rows = await orgDb.rows<MatchRow>(
    `with ${PUBLISHED},
     page as materialized (
       select p.published_at, b.run_id, b.provider, b.provider_account_id, b.bucket, b.model, b.match_id, ${DELTA} as delta
       ${RECORDS} and ($8::numeric is null or ${DELTA} < $8 or (${DELTA} = $8 and b.match_id > $9::uuid))
       order by delta desc, b.match_id limit $10 offset $11)
     select ${BUCKET_COLUMNS}, b.match_id, b.event_count, b.cells, b.waterfall, page.published_at
     from page cross join lateral (select * from gap_buckets where org_id = $1 and run_id = page.run_id and provider = page.provider
       and provider_account_id = page.provider_account_id and width = 'day' and bucket = page.bucket and model = page.model offset 0) b
     order by page.delta desc, b.match_id`,
    [
      ...valuesOf(orgDb, filter),
      page.after ? decimalFromPico(page.after.deltaPico) : null,
      page.after?.matchId ?? null,
      page.limit,
      page.after ? 0 : page.offset,
    ],
  );
  return rows.map((row) => ({
    ...fromPublishedRow(row),
    matchId: row.match_id,
    eventCount: row.event_count,
    lines: row.cells.map(fromStoredLine),
    waterfall: row.waterfall,
    publishedAtMicros: row.published_at,
  }));
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

/** What all records of a filter sum to: the billed amounts that calls explain, and the rest of them. */
export async function sumMatches(
  orgDb: OrgDb,
  filter: MatchFilter,
): Promise<{ matchedPico: Pico; unmatchedPico: Pico }> {
  const [row] = await orgDb.rows<{ matched: Pico; unmatched: Pico }>(
    `with ${PUBLISHED}
     select coalesce(sum(b.matched_usd), 0) as matched, coalesce(sum(b.provider_cost_usd - b.matched_usd), 0) as unmatched ${RECORDS}`,
    valuesOf(orgDb, filter),
  );
  return { matchedPico: row?.matched ?? 0n, unmatchedPico: row?.unmatched ?? 0n };
}

/** A day of one account and model, `YYYY-MM-DD`. */
export interface MatchDay {
  provider: string;
  accountId: string;
  model: string;
  day: string;
}

/** A finding that has part in a record's day. */
export interface MatchFinding {
  findingId: string;
  kind: FindingKind;
  direction: Direction;
  grade: Grade;
  status: string;
  /** On that day alone: billed − what would have been right. */
  impactPico: Pico;
}

interface MatchFindingRow {
  at: number;
  finding_id: string;
  kind: FindingKind;
  direction: Direction;
  grade: Grade;
  status: string;
  impact_usd: Pico;
}

/** The findings of each of these days, in the order of the days; those that later runs no longer find are left out. */
export async function listMatchFindings(orgDb: OrgDb, days: readonly MatchDay[]): Promise<MatchFinding[][]> {
  const found = days.map((): MatchFinding[] => []);
  if (days.length === 0) return found;
  const rows = await orgDb.rows<MatchFindingRow>(
    `select t.at, f.id as finding_id, f.kind, f.direction, f.grade, f.status, d.impact_usd
     from unnest($2::text[], $3::text[], $4::text[], $5::date[]) with ordinality as t (provider, account, model, day, at)
     cross join lateral (select * from findings where org_id = $1 and provider = t.provider and provider_account_id = t.account
       and model = t.model and first_day <= t.day and last_day >= t.day and status <> 'gone' and invoice_id is null offset 0) f
     cross join lateral (select impact_usd from finding_days where org_id = $1 and finding_id = f.id and day = t.day offset 0) d
     order by t.at, abs(d.impact_usd) desc, f.id`,
    [orgDb.orgId, ...namesOf(days)],
  );
  for (const row of rows)
    found[row.at - 1]?.push({
      findingId: row.finding_id,
      kind: row.kind,
      direction: row.direction,
      grade: row.grade,
      status: row.status,
      impactPico: row.impact_usd,
    });
  return found;
}

/** The dispute that each of these days is in, in the order of the days: one that is open before one that is resolved. */
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
