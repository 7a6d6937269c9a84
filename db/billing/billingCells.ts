import { aheadMicrosOf, timesOfBillingDay } from '../../domain/billing/billingDay.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_HOUR } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import type { HourCount } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb } from '../orgDb.js';
import { hourCountsSql, readHourCounts } from '../usage/hourCounts.js';
import { BILLING_KEYS, BILLING_MEASURE_NAMES, BILLING_QUANTITIES } from '../usage/rollups.js';
import { readFoldState } from '../usage/usage.js';
import { sumOfMeasure, usageLogSql } from '../usage/usageLog.js';
import { joinKeyAccount, keyAccount } from './keyAccounts.js';

/** Observed consumption of one hour (by the calls' end) in the grain that a bill is compared in. */
export interface ObservedCell {
  /** Start of the UTC hour. */
  hourMicros: bigint;
  billedBy: string;
  /** The one that the calls name, else their provider key's; '' without one. */
  providerAccountId: string;
  providerKeyId: string;
  model: string;
  /** As the clients sent it; '' where absent. */
  serviceTier: string;
  isBatch: boolean;
  contextBand: number;
  status: string;
  calls: number;
  inputTokens: bigint;
  cacheRead: bigint;
  cacheWrite5m: bigint;
  cacheWrite1h: bigint;
  outputTokens: bigint;
  inputAudio: bigint;
  outputAudio: bigint;
  reasoningTok: bigint;
  computedCostPico: Pico;
  unpriced: number;
  priceGaps: number;
  unmetered: number;
  firstSeenMicros: bigint;
  lastSeenMicros: bigint;
}

interface CellRow {
  hour: bigint;
  billed_by: string;
  provider_account_id: string;
  provider_key_id: string;
  model: string;
  service_tier: string;
  is_batch: boolean;
  context_band: number;
  status: string;
  calls: number;
  input_tokens: number;
  cache_read: number;
  cache_write_5m: number;
  cache_write_1h: number;
  output_tokens: number;
  input_audio: number;
  output_audio: number;
  reasoning_tok: number;
  computed_cost_usd: Pico;
  unpriced: number;
  price_gaps: number;
  unmetered: number;
  first_seen: bigint;
  last_seen: bigint;
}

function fromCellRow(row: CellRow): ObservedCell {
  return {
    ...fromMeasures(row),
    hourMicros: row.hour,
    billedBy: row.billed_by,
    providerKeyId: row.provider_key_id,
    firstSeenMicros: row.first_seen,
    lastSeenMicros: row.last_seen,
  };
}

function fromMeasures(row: Omit<DayRow, 'hours'>): Omit<DayCell, 'hours'> {
  return {
    providerAccountId: row.provider_account_id,
    model: row.model,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    contextBand: row.context_band,
    status: row.status,
    calls: row.calls,
    inputTokens: BigInt(row.input_tokens),
    cacheRead: BigInt(row.cache_read),
    cacheWrite5m: BigInt(row.cache_write_5m),
    cacheWrite1h: BigInt(row.cache_write_1h),
    outputTokens: BigInt(row.output_tokens),
    inputAudio: BigInt(row.input_audio),
    outputAudio: BigInt(row.output_audio),
    reasoningTok: BigInt(row.reasoning_tok),
    computedCostPico: row.computed_cost_usd,
    unpriced: row.unpriced,
    priceGaps: row.price_gaps,
    unmetered: row.unmetered,
  };
}

const KEYS = Object.keys(BILLING_KEYS).join(', ');
const SUMS = BILLING_MEASURE_NAMES.map((name) => `${sumOfMeasure(name)} as ${name}`).join(', ');

/** What a bill is compared by. */
const DAY_KEYS = 'provider_account_id, model, service_tier, is_batch, context_band, status';
const TOKENS =
  'input_tokens + cache_read + cache_write_5m + cache_write_1h + output_tokens + input_audio + output_audio';

/** The columns of a part, under the account that it is compared under. */
const COLUMNS = [...Object.keys(BILLING_KEYS), ...BILLING_MEASURE_NAMES, 'first_seen', 'last_seen']
  .map((name) => (name === 'provider_account_id' ? `${keyAccount('p')} as ${name}` : `p.${name}`))
  .join(', ');

interface DayScope {
  provider: Biller;
  /** `YYYY-MM-DD`, by the calls' end. */
  day: string;
  /** By how many hours the biller's clock is ahead of UTC, where it keeps one distance (`timesOfBillingDay`). */
  offsetHours?: number;
}

const FOLDED_PARTS = `
  select ${KEYS}, ${BILLING_MEASURE_NAMES.join(', ')}, first_seen, last_seen from billing_cells
  where org_id = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and billed_by = $4 and status <> 'blocked'`;

/** What is not folded: from transaction $5 on. */
const UNFOLDED_PARTS = `
  select ${Object.values(BILLING_KEYS).join(', ')}, ${BILLING_QUANTITIES}, min(end_at), max(end_at)
  from (${usageLogSql('$5')}) log
  where end_at >= $2::timestamptz and end_at < $3::timestamptz and billed_by = $4 and status <> 'blocked'
  group by 1, 2, 3, 4, 5, 6, 7, 8, 9`;

/** `cells`: organization $1, a time from $2 to $3, biller $4. */
const cellsSql = (parts: string) =>
  `with parts as (${parts}), cells as (select ${COLUMNS} from parts p ${joinKeyAccount('p', '$4')})`;
const CELLS_OF_DAY = {
  folded: cellsSql(FOLDED_PARTS),
  all: cellsSql(`${FOLDED_PARTS} union all ${UNFOLDED_PARTS}`),
};

/**
 * Observed cells of one biller and one of its days (`YYYY-MM-DD`, by the calls' end), by hour; the hours are those of the
 * clock by which it bills. In a transaction with one snapshot. Blocked calls never reached the biller; cells that were folded before they were left out may name them. Work grows
 * with the day's cells and the events that are not folded.
 */
export async function listObservedCells(inside: OrgDb, scope: DayScope): Promise<ObservedCell[]> {
  const { aheadMicros } = timesOf(scope);
  const rows = await readOfDay<CellRow>(
    inside,
    scope,
    `select ${KEYS}, ${SUMS}, min(first_seen) as first_seen, max(last_seen) as last_seen
     from cells group by ${KEYS} having sum(calls) <> 0 order by ${KEYS}`,
    'day_observed_cells',
  );
  return rows.map((row) => fromCellRow({ ...row, hour: row.hour + aheadMicros }));
}

interface DayRow
  extends Omit<CellRow, 'hour' | 'billed_by' | 'provider_key_id' | 'first_seen' | 'last_seen'> {
  hours: string | null;
}

/** A cell of a whole day, by any key of the provider, and its hours with calls. */
export interface DayCell
  extends Omit<
    ObservedCell,
    'hourMicros' | 'billedBy' | 'providerKeyId' | 'firstSeenMicros' | 'lastSeenMicros'
  > {
  hours: HourCount[];
}

/**
 * The same day with its hours added up, as bills are compared with it: each cell with the hours that have calls. Keys of the
 * provider are not told apart.
 */
export async function listObservedDay(inside: OrgDb, scope: DayScope): Promise<DayCell[]> {
  const rows = await readOfDay<DayRow>(
    inside,
    scope,
    // Grouped once and then put in order: a group for each hour first would take three times as long.
    `select * from (
       select ${DAY_KEYS}, ${SUMS}, ${hourCountsSql('hour', `(${TOKENS})`, 'true', 'calls')} as hours
       from cells group by ${DAY_KEYS} having sum(calls) <> 0 offset 0) days order by ${DAY_KEYS}`,
    'day_observed',
  );
  return rows.map((row) => ({
    ...fromMeasures(row),
    hours: readHourCounts(row.hours, Number(timesOf(scope).aheadMicros / MICROS_PER_HOUR)),
  }));
}

/** The times of the biller's day, and by how much its clock is ahead of UTC when it begins. */
function timesOf({ provider, day, offsetHours }: DayScope) {
  const times = timesOfBillingDay(provider, day, offsetHours ?? 0);
  return { ...times, aheadMicros: aheadMicrosOf(provider, day, offsetHours ?? 0) };
}

/** Runs a statement over the cells of a day: what is folded and what is not. */
async function readOfDay<T>(inside: OrgDb, scope: DayScope, sql: string, name: string): Promise<T[]> {
  const { startMicros, endMicros } = timesOf(scope);
  const values = [inside.orgId, isoFromMicros(startMicros), isoFromMicros(endMicros), scope.provider];
  const { foldedXid, isAll } = await readFoldState(inside);
  if (isAll) return inside.rows<T>(`${CELLS_OF_DAY.folded} ${sql}`, values, `${name}_folded`);
  return inside.rows<T>(`${CELLS_OF_DAY.all} ${sql}`, [...values, foldedXid], name);
}

/** Calls of one account, model and day of the biller's clock; failed ones are charged to nobody and left out. */
export interface ObservedModelDay
  extends Omit<
    ObservedCell,
    | 'hourMicros'
    | 'billedBy'
    | 'providerKeyId'
    | 'serviceTier'
    | 'isBatch'
    | 'contextBand'
    | 'status'
    | 'firstSeenMicros'
    | 'lastSeenMicros'
  > {
  day: string;
}

/** What was observed on each day from `fromDay` to `toDay`, both inclusive. In a transaction with one snapshot. */
export async function listObservedModelDays(
  inside: OrgDb,
  scope: { provider: Biller; fromDay: string; toDay: string },
): Promise<ObservedModelDay[]> {
  const { startMicros } = timesOfBillingDay(scope.provider, scope.fromDay, 0);
  const { endMicros } = timesOfBillingDay(scope.provider, scope.toDay, 0);
  // The distance at the first day stands for all: where summer time begins, an hour goes to the day beside it.
  const ahead = aheadMicrosOf(scope.provider, scope.fromDay, 0) / MICROS_PER_HOUR;
  const { foldedXid, isAll } = await readFoldState(inside);
  const values = [inside.orgId, isoFromMicros(startMicros), isoFromMicros(endMicros), scope.provider];
  const rows = await inside.rows<Omit<DayRow, 'hours'> & { day: string }>(
    `${isAll ? CELLS_OF_DAY.folded : CELLS_OF_DAY.all}
     select to_char(hour at time zone 'UTC' + interval '${ahead} hours', 'YYYY-MM-DD') as day, provider_account_id, model, ${SUMS}
     from cells where status <> 'error' group by 1, 2, 3 having sum(calls) <> 0 order by 1, 2, 3`,
    isAll ? values : [...values, foldedXid],
  );
  return rows.map((row) => ({ ...fromMeasures(row), day: row.day }));
}
