import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { ReplayedCall } from '../../domain/policies/enforcement/replayedCall.js';
import type { Biller } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';

/** Calls of one transaction, unless it is told otherwise. */
const PAGE_CALLS = 5_000;

interface CallRow {
  id: string;
  timestamp: bigint;
  status: ReplayedCall['status'];
  billed_by: Biller;
  model: string;
  team_id: string | null;
  feature: string | null;
  session_id: string;
  stop_reason: string;
  unmetered: boolean;
  has_usage: boolean;
  input_tokens: number;
  output_tokens: number;
  cache_read: number;
  cache_creation: number;
  cache_creation_5m: number | null;
  cache_creation_1h: number | null;
  reasoning_tok: number;
  cached_tok: number;
  input_audio: number;
  output_audio: number;
  is_batch: boolean;
  service_tier: string | null;
  prompt_hash: string | null;
  cost_usd: Pico | null;
}

/**
 * Another span stands for a superseded event, and a blocked one was no call. Times alone are read in the index's order
 * (docs/decisions/0042).
 */
const nextCalls = (isFirst: boolean, pageCalls: number) => `
select e.id, e.timestamp, e.status, e.billed_by, e.model, e.team_id, e.feature, e.session_id, e.stop_reason, e.unmetered,
  not e.unmetered and e.usage_source <> 'none' as has_usage, e.input_tokens, e.output_tokens, e.cache_read, e.cache_creation,
  e.cache_creation_5m, e.cache_creation_1h, e.reasoning_tok, e.cached_tok, e.input_audio, e.output_audio, e.is_batch, e.service_tier,
  e.prompt_hash::text as prompt_hash, case when e.cost_source <> 'unpriced' then e.cost_usd end as cost_usd
from (select * from events e where e.org_id = $1 and e.timestamp >= $2::timestamptz and e.timestamp < $3::timestamptz and e.superseded_by is null
  and e.status <> 'blocked' ${isFirst ? '' : 'and (e.timestamp, e.id) > ($2::timestamptz, $4::uuid)'}
  order by e.timestamp fetch first ${pageCalls} rows with ties) e
order by e.timestamp, e.id
limit ${pageCalls}`;

/**
 * The calls of a time in the order in which rules judge them, page by page. Each page is a short transaction of its
 * own, read while the one before it is worked on: what is stored meanwhile behind the place is not seen.
 */
export async function* streamReplayedCalls(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
  pageCalls = PAGE_CALLS,
): AsyncGenerator<ReplayedCall[]> {
  const to = isoFromMicros(window.toMicros);
  const read = (after: ReplayedCall | undefined) =>
    after === undefined
      ? orgDb.rows<CallRow>(nextCalls(true, pageCalls), [orgDb.orgId, isoFromMicros(window.fromMicros), to])
      : orgDb.rows<CallRow>(nextCalls(false, pageCalls), [
          orgDb.orgId,
          isoFromMicros(after.timestampMicros),
          to,
          after.id,
        ]);
  let rows = await read(undefined);
  while (rows.length > 0) {
    const calls = rows.map(fromCallRow);
    const last = calls.length === pageCalls ? calls.at(-1) : undefined;
    const next = last ? read(last) : Promise.resolve([]);
    // Awaited below; until then its failure is not to end the process.
    next.catch(() => undefined);
    yield calls;
    rows = await next;
  }
}

function fromCallRow(row: CallRow): ReplayedCall {
  return {
    id: row.id,
    timestampMicros: row.timestamp,
    status: row.status,
    billedBy: row.billed_by,
    model: row.model,
    teamId: row.team_id,
    feature: row.feature,
    sessionId: row.session_id,
    stopReason: row.stop_reason,
    usage: row.has_usage
      ? {
          input: row.input_tokens - row.input_audio,
          cacheRead: row.cache_read,
          cacheCreation: row.cache_creation,
          cacheCreation5m: row.cache_creation_5m,
          cacheCreation1h: row.cache_creation_1h,
          output: row.output_tokens - row.output_audio,
          inputAudio: row.input_audio,
          outputAudio: row.output_audio,
          reasoning: row.reasoning_tok,
          cached: row.cached_tok,
        }
      : null,
    unmetered: row.unmetered,
    isBatch: row.is_batch,
    serviceTier: row.service_tier,
    promptHash: row.prompt_hash,
    costPico: row.cost_usd,
  };
}
