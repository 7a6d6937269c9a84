import { isoFromMicros } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS, BILLING_QUANTITIES } from '../usage/rollups.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';

/** A model of a biller with calls whose cost is unknown, or rests on an assumption. */
export interface UnpricedModel {
  billedBy: Biller;
  model: string;
  unpricedCalls: number;
  /** Calls without usage, which no price can turn into a cost. */
  unmeteredCalls: number;
  /** Calls that were priced with an assumed rate. */
  priceGapCalls: number;
  /** All input and output of the hours in which such calls were made. */
  inputTokens: number;
  outputTokens: number;
  firstSeenMicros: bigint;
  lastSeenMicros: bigint;
}

/** Most models of one answer. */
export const UNPRICED_MODELS_MAX = 1_000;

const MEASURES = ['input_tokens', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio'] as const;

/** Models with unpriced, assumed or unmetered calls in the window's hours; by cells, or by events for a project. */
export async function readUnpricedModels(
  inside: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
): Promise<{ models: UnpricedModel[]; hasMore: boolean }> {
  const models = await inside.rows<UnpricedModel>(
    unpricedSql(inside.projectId === undefined ? CELLS : EVENTS_OF_PROJECT),
    [
      inside.orgId,
      inside.projectId ?? (await readFoldedXid(inside)),
      isoFromMicros(window.fromMicros),
      isoFromMicros(window.toMicros),
      UNPRICED_MODELS_MAX + 1,
    ],
  );
  const hasMore = models.length > UNPRICED_MODELS_MAX;
  return { hasMore, models: models.slice(0, UNPRICED_MODELS_MAX) };
}

const INPUT = MEASURES.join(' + ');

/** Cells of rows of the log, or of signed events. */
const cellsOf = (rows: string) => `
      select billed_by, model, unpriced, unmetered, price_gaps, ${INPUT} as input, output_tokens + output_audio as output, first_seen, last_seen
      from (
        select ${BILLING_KEYS.billed_by} as billed_by, ${BILLING_KEYS.model} as model, ${BILLING_QUANTITIES},
          min(end_at) as first_seen, max(end_at) as last_seen
        from (${rows}) log
        where status <> 'blocked' and ${BILLING_KEYS.hour} >= date_trunc('hour', $3::timestamptz, 'UTC')
          and ${BILLING_KEYS.hour} < $4::timestamptz
        group by 1, 2, ${BILLING_KEYS.hour}
      ) hours`;

/** $2: the transaction up to which cells are complete. */
const CELLS = `
      select billed_by, model, unpriced, unmetered, price_gaps, ${INPUT} as input, output_tokens + output_audio as output,
        first_seen, last_seen
      from billing_cells
      where org_id = $1 and hour >= date_trunc('hour', $3::timestamptz, 'UTC') and hour < $4::timestamptz and status <> 'blocked'
      union all ${cellsOf(usageLogSql('$2'))}`;

/**
 * Longer than any call, days (events.duration_ms): the call's end lies in the window, and its start selects the
 * partition.
 */
const CALL_DAYS_MAX = 12;

const OF_PROJECT = `org_id = $1 and project_id = $2 and superseded_by is null
            and timestamp >= $3::timestamptz - interval '${CALL_DAYS_MAX} days' and timestamp < $4::timestamptz`;
const MODEL = `(billed_by, ${BILLING_KEYS.model})`;

/** $2: the project. Only models that have such calls are summed. */
const EVENTS_OF_PROJECT = cellsOf(`
          select 1::smallint as sign, * from events where ${OF_PROJECT} and ${MODEL} in (
            select billed_by, ${BILLING_KEYS.model} from events
            where ${OF_PROJECT} and (computed_cost_usd is null or price_gaps is not null))`);

function unpricedSql(cells: string): string {
  return `
    with cells as (${cells})
    select billed_by as "billedBy", model, sum(unpriced)::bigint as "unpricedCalls", sum(unmetered)::bigint as "unmeteredCalls",
      sum(price_gaps)::bigint as "priceGapCalls", sum(input)::bigint as "inputTokens", sum(output)::bigint as "outputTokens",
      min(first_seen) as "firstSeenMicros", max(last_seen) as "lastSeenMicros"
    from cells
    where unpriced <> 0 or unmetered <> 0 or price_gaps <> 0
    group by 1, 2
    having sum(unpriced) > 0 or sum(unmetered) > 0 or sum(price_gaps) > 0
    order by sum(unpriced) desc, sum(unmetered) desc, sum(price_gaps) desc, billed_by, model
    limit $5`;
}
