import { timesOfBillingDay } from '../../domain/billing/billingDay.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, microsOfDay } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { joinKeyAccount, keyAccount } from './keyAccounts.js';
import { BILLING_KEYS, BILLING_MEASURE_NAMES, BILLING_QUANTITIES } from './rollups.js';
import { readFoldedXid } from './usage.js';
import { sumOfMeasure, usageLogSql } from './usageLog.js';

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
    hourMicros: row.hour,
    billedBy: row.billed_by,
    providerAccountId: row.provider_account_id,
    providerKeyId: row.provider_key_id,
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
    firstSeenMicros: row.first_seen,
    lastSeenMicros: row.last_seen,
  };
}

const KEYS = Object.keys(BILLING_KEYS).join(', ');
const SUMS = BILLING_MEASURE_NAMES.map((name) => `${sumOfMeasure(name)} as ${name}`).join(', ');

/** The columns of a part, under the account that it is compared under. */
const COLUMNS = [...Object.keys(BILLING_KEYS), ...BILLING_MEASURE_NAMES, 'first_seen', 'last_seen']
  .map((name) => (name === 'provider_account_id' ? `${keyAccount('p')} as ${name}` : `p.${name}`))
  .join(', ');

/**
 * Observed cells of one biller and one of its days (`YYYY-MM-DD`, by the calls' end), by hour; the hours are those of the
 * clock by which it bills. What is folded and what is not is read in one
 * snapshot. Blocked calls never reached the biller; cells that were folded before they were left out may name them. Work grows
 * with the day's cells and the events that are not folded.
 */
export async function listObservedCells(
  orgDb: OrgDb,
  scope: { provider: Biller; day: string; offsetHours?: number },
): Promise<ObservedCell[]> {
  const { startMicros, endMicros } = timesOfBillingDay(scope.provider, scope.day, scope.offsetHours ?? 0);
  const aheadMicros = microsOfDay(scope.day) - startMicros;
  const rows = await orgDb.transaction(async (inside) => {
    return inside.rows<CellRow>(
      `with parts as (
         select ${KEYS}, ${BILLING_MEASURE_NAMES.join(', ')}, first_seen, last_seen from billing_cells
         where org_id = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and billed_by = $4 and status <> 'blocked'
         union all
         select ${Object.values(BILLING_KEYS).join(', ')}, ${BILLING_QUANTITIES}, min(end_at), max(end_at)
         from (${usageLogSql('$5')}) log
         where end_at >= $2::timestamptz and end_at < $3::timestamptz and billed_by = $4 and status <> 'blocked'
         group by 1, 2, 3, 4, 5, 6, 7, 8, 9
       )
       select ${KEYS}, ${SUMS}, min(first_seen) as first_seen, max(last_seen) as last_seen
       from (select ${COLUMNS} from parts p ${joinKeyAccount('p', '$4')}) cells
       group by ${KEYS} having sum(calls) <> 0 order by ${KEYS}`,
      [
        inside.orgId,
        isoFromMicros(startMicros),
        isoFromMicros(endMicros),
        scope.provider,
        await readFoldedXid(inside),
      ],
      'day_observed_cells',
    );
  }, 'repeatable read');
  return rows.map((row) => fromCellRow({ ...row, hour: row.hour + aheadMicros }));
}
