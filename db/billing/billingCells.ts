import { aheadMicrosOf, timesOfBillingDay } from '../../domain/billing/billingDay.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_HOUR } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import type { HourOfCalls } from '../../domain/reconciliation/matching/cells.js';
import { column, converted, defineEntity } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { hourCountsSql, readHoursOfCalls } from '../usage/hourCounts.js';
import { BILLING_KEYS, BILLING_MEASURE_NAMES, BILLING_QUANTITIES } from '../usage/rollups.js';
import { readFoldState } from '../usage/usage.js';
import { sumOfMeasure, usageLogSql } from '../usage/usageLog.js';

/**
 * SQL of a call's account for comparison: the one that the call names, else its provider key's, else ''
 * (docs/reconciliation.md). It is looked up at comparison and not when the call is stored, so that keys listed later
 * are included. `row` has provider_account_id and provider_key_id; `biller` is the biller's parameter; $1 the
 * organization.
 */
export const keyAccount = (row: string) =>
  `coalesce(nullif(${row}.provider_account_id, ''), key_account.provider_account_id, '')`;

/** The join that `keyAccount` needs: one lookup a row, with and without statistics (docs/decisions/0042). */
export const joinKeyAccount = (row: string, biller: string) =>
  `left join lateral (select provider_account_id from provider_keys
     where org_id = $1 and provider = ${biller} and provider_key_id = ${row}.provider_key_id offset 0) key_account on true`;

/** Observed usage of one hour (by the calls' end) by the columns that bills are compared by. */
export interface ObservedCell {
  /** Start of the UTC hour. */
  hourMicros: bigint;
  billedBy: string;
  /** The account that the calls name, else their provider key's; '' without one. */
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

const sumOf = (name: string) => sumOfMeasure(name);
const tokensOf = (name: string) => converted<bigint, number>(BigInt, sumOfMeasure(name));

const MEASURES = {
  calls: column<number>(sumOf('calls')),
  inputTokens: tokensOf('input_tokens'),
  cacheRead: tokensOf('cache_read'),
  cacheWrite5m: tokensOf('cache_write_5m'),
  cacheWrite1h: tokensOf('cache_write_1h'),
  outputTokens: tokensOf('output_tokens'),
  inputAudio: tokensOf('input_audio'),
  outputAudio: tokensOf('output_audio'),
  reasoningTok: tokensOf('reasoning_tok'),
  computedCostPico: column<Pico>(sumOf('computed_cost_usd')),
  unpriced: column<number>(sumOf('unpriced')),
  priceGaps: column<number>(sumOf('price_gaps')),
  unmetered: column<number>(sumOf('unmetered')),
};

/** A cell of a whole day, over rows of `cells`; its hours are read separately. */
const DAY_CELL = defineEntity<Omit<DayCell, 'hours'>>('cells', {
  providerAccountId: column(),
  model: column(),
  serviceTier: column(),
  isBatch: column(),
  contextBand: column(),
  status: column(),
  ...MEASURES,
});

/** Also over rows of `cells`; the day is added by the reader. */
const MODEL_DAY = defineEntity<Omit<ObservedModelDay, 'day'>>('cells', {
  providerAccountId: column(),
  model: column(),
  ...MEASURES,
});

const KEYS = Object.keys(BILLING_KEYS).join(', ');

/** The columns by which a day's bill is compared. */
const DAY_KEYS = 'provider_account_id, model, service_tier, is_batch, context_band, status';
/** Whole tokens in the order of TOKEN_CLASSES, as `readHoursOfCalls` parses them. */
const TOKENS = `concat_ws('/', input_tokens, cache_read, cache_write_5m, cache_write_1h, output_tokens, input_audio, output_audio)`;

/** The columns of a part, under the account for comparison. */
const COLUMNS = [...Object.keys(BILLING_KEYS), ...BILLING_MEASURE_NAMES, 'first_seen', 'last_seen']
  .map((name) => (name === 'provider_account_id' ? `${keyAccount('p')} as ${name}` : `p.${name}`))
  .join(', ');

interface DayScope {
  provider: Biller;
  /** `YYYY-MM-DD`, by the calls' end. */
  day: string;
  /** Hours by which the biller's clock is ahead of UTC, if constant (`timesOfBillingDay`). */
  offsetHours?: number;
}

const FOLDED_PARTS = `
  select ${KEYS}, ${BILLING_MEASURE_NAMES.join(', ')}, first_seen, last_seen from billing_cells
  where org_id = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and billed_by = $4 and status <> 'blocked'`;

/** Unfolded rows: from transaction $5 on. */
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
 * Observed cells of one biller's day by hour of its clock, without blocked calls; in a transaction with one snapshot.
 */
export async function listObservedCells(inside: OrgDb, scope: DayScope): Promise<ObservedCell[]> {
  const { aheadMicros } = timesOf(scope);
  const rows = await readOfDay<ObservedCell>(
    inside,
    scope,
    `select ${DAY_CELL.columns}, hour as "hourMicros", billed_by as "billedBy", provider_key_id as "providerKeyId",
       min(first_seen) as "firstSeenMicros", max(last_seen) as "lastSeenMicros"
     from cells group by ${KEYS} having sum(calls) <> 0 order by ${KEYS}`,
    'day_observed_cells',
  );
  return DAY_CELL.read(rows).map((row) => ({ ...row, hourMicros: row.hourMicros + aheadMicros }));
}

/** A cell of a whole day over all provider keys, and its hours with calls. */
export interface DayCell
  extends Omit<
    ObservedCell,
    'hourMicros' | 'billedBy' | 'providerKeyId' | 'firstSeenMicros' | 'lastSeenMicros'
  > {
  hours: HourOfCalls[];
}

/** The same day with its hours summed, over all provider keys. */
export async function listObservedDay(inside: OrgDb, scope: DayScope): Promise<DayCell[]> {
  const rows = await readOfDay<Omit<DayCell, 'hours'> & { hours: string | null }>(
    inside,
    scope,
    // Grouped once and then sorted: grouping by hour first would take three times as long.
    `select * from (
       select ${DAY_CELL.columns}, ${hourCountsSql('hour', TOKENS, 'true', 'calls')} as hours
       from cells group by ${DAY_KEYS} having sum(calls) <> 0 offset 0) days
     order by "providerAccountId", model, "serviceTier", "isBatch", "contextBand", status`,
    'day_observed',
  );
  const aheadHours = Number(timesOf(scope).aheadMicros / MICROS_PER_HOUR);
  return DAY_CELL.read(rows).map((row) => ({ ...row, hours: readHoursOfCalls(row.hours, aheadHours) }));
}

function timesOf({ provider, day, offsetHours }: DayScope) {
  const times = timesOfBillingDay(provider, day, offsetHours ?? 0);
  return { ...times, aheadMicros: aheadMicrosOf(provider, day, offsetHours ?? 0) };
}

/** Runs a statement over the cells of a day, folded and unfolded. */
async function readOfDay<T>(inside: OrgDb, scope: DayScope, sql: string, name: string): Promise<T[]> {
  const { startMicros, endMicros } = timesOf(scope);
  const values = [inside.orgId, isoFromMicros(startMicros), isoFromMicros(endMicros), scope.provider];
  const { foldedXid, isAll } = await readFoldState(inside);
  if (isAll) return inside.rows<T>(`${CELLS_OF_DAY.folded} ${sql}`, values, `${name}_folded`);
  return inside.rows<T>(`${CELLS_OF_DAY.all} ${sql}`, [...values, foldedXid], name);
}

/**
 * Calls of one account, model and day of the biller's clock. Failed calls are excluded, because they are not billed.
 */
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

/** Observed usage of each day from `fromDay` to `toDay`, both inclusive. In a transaction with one snapshot. */
export async function listObservedModelDays(
  inside: OrgDb,
  scope: { provider: Biller; fromDay: string; toDay: string },
): Promise<ObservedModelDay[]> {
  const { startMicros } = timesOfBillingDay(scope.provider, scope.fromDay, 0);
  const { endMicros } = timesOfBillingDay(scope.provider, scope.toDay, 0);
  // The offset of the first day is used for all days: at a change of summer time one hour belongs to the neighbouring
  // day.
  const ahead = aheadMicrosOf(scope.provider, scope.fromDay, 0) / MICROS_PER_HOUR;
  const { foldedXid, isAll } = await readFoldState(inside);
  const values = [inside.orgId, isoFromMicros(startMicros), isoFromMicros(endMicros), scope.provider];
  const rows = await inside.rows<ObservedModelDay>(
    `${isAll ? CELLS_OF_DAY.folded : CELLS_OF_DAY.all}
     select to_char(hour at time zone 'UTC' + interval '${ahead} hours', 'YYYY-MM-DD') as day, ${MODEL_DAY.columns}
     from cells where status <> 'error' group by 1, 2, 3 having sum(calls) <> 0 order by 1, 2, 3`,
    isAll ? values : [...values, foldedXid],
  );
  return MODEL_DAY.read(rows);
}
