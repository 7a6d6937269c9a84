import { isoFromMicros } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS, BILLING_QUANTITIES } from '../usage/rollups.js';
import { usageLogSql } from '../usage/usageLog.js';

/** A model of a biller with calls of which no cost is computed, or one that rests on an assumption. */
export interface UnpricedModel {
  billedBy: Biller;
  model: string;
  /** Calls that have usage and no price. */
  unpricedCalls: number;
  /** Calls that sent no usage: no price makes a cost of them. */
  unmeteredCalls: number;
  /** Calls that were priced, with an assumed rate. */
  priceGapCalls: number;
  /** All input and output of the hours in which such calls were made. */
  inputTokens: number;
  outputTokens: number;
  firstSeenMicros: bigint;
  lastSeenMicros: bigint;
}

/** Models of one answer at most; each stands for many calls. */
export const UNPRICED_MODELS_MAX = 1_000;

const MEASURES = ['input_tokens', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio'] as const;

/**
 * Models seen in the UTC hours that a window touches, with calls whose price is missing or assumed or that sent no usage,
 * those with the most unpriced calls first. Reads the billing cells and the events that are in none yet, in one snapshot; work grows with the
 * hours and models of the window. Billing cells are of the whole organization: with a handle of a project its events
 * themselves are read.
 */
export async function listUnpricedModels(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
): Promise<{ models: UnpricedModel[]; hasMore: boolean }> {
  return orgDb.transaction(async (inside) => {
    const [state] = await inside.rows<{ folded_xid: number }>(
      'select folded_xid from rollup_state where org_id = $1',
      [inside.orgId],
    );
    const rows = await inside.rows<{
      billed_by: Biller;
      model: string;
      unpriced: number;
      unmetered: number;
      price_gaps: number;
      input_tokens: number;
      output_tokens: number;
      first_seen: bigint;
      last_seen: bigint;
    }>(unpricedSql(inside.projectId === undefined ? CELLS : EVENTS_OF_PROJECT), [
      inside.orgId,
      inside.projectId ?? state?.folded_xid ?? 0,
      isoFromMicros(window.fromMicros),
      isoFromMicros(window.toMicros),
      UNPRICED_MODELS_MAX + 1,
    ]);
    return {
      hasMore: rows.length > UNPRICED_MODELS_MAX,
      models: rows.slice(0, UNPRICED_MODELS_MAX).map((row) => ({
        billedBy: row.billed_by,
        model: row.model,
        unpricedCalls: row.unpriced,
        unmeteredCalls: row.unmetered,
        priceGapCalls: row.price_gaps,
        inputTokens: row.input_tokens,
        outputTokens: row.output_tokens,
        firstSeenMicros: row.first_seen,
        lastSeenMicros: row.last_seen,
      })),
    };
  }, 'repeatable read');
}

const INPUT = MEASURES.join(' + ');

/** Cells of rows of the log, or of events with a sign. */
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

/** More than a call lasts (events.duration_ms): its end lies in the window, its start finds it. */
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
    select billed_by, model, sum(unpriced)::bigint as unpriced, sum(unmetered)::bigint as unmetered, sum(price_gaps)::bigint as price_gaps,
      sum(input)::bigint as input_tokens, sum(output)::bigint as output_tokens,
      min(first_seen) as first_seen, max(last_seen) as last_seen
    from cells
    where unpriced <> 0 or unmetered <> 0 or price_gaps <> 0
    group by 1, 2
    having sum(unpriced) > 0 or sum(unmetered) > 0 or sum(price_gaps) > 0
    order by sum(unpriced) desc, sum(unmetered) desc, sum(price_gaps) desc, billed_by, model
    limit $5`;
}
