import { isoFromMicros } from '../../domain/period.js';
import type { ReplayedCall } from '../../domain/policies/enforcement/judges.js';
import type { OrgDb } from '../orgDb.js';

const PAGE_CALLS = 5_000;

type CallRow = Omit<ReplayedCall, 'usage'> & NonNullable<ReplayedCall['usage']> & { hasUsage: boolean };

/**
 * Excludes superseded and blocked events. A keyset of times alone is read in the index's order (docs/decisions/0042).
 */
const nextCalls = (isFirst: boolean, pageCalls: number) => `
select e.id, e.timestamp as "timestampMicros", e.status, e.billed_by as "billedBy", e.model, e.team_id as "teamId", e.feature,
  e.session_id as "sessionId", e.stop_reason as "stopReason", e.unmetered, not e.unmetered and e.usage_source <> 'none' as "hasUsage",
  e.input_tokens - e.input_audio as input, e.output_tokens - e.output_audio as output, e.cache_read as "cacheRead",
  e.cache_creation as "cacheCreation", e.cache_creation_5m as "cacheCreation5m", e.cache_creation_1h as "cacheCreation1h",
  e.reasoning_tok as reasoning, e.cached_tok as cached, e.input_audio as "inputAudio", e.output_audio as "outputAudio",
  e.is_batch as "isBatch", e.service_tier as "serviceTier", e.prompt_hash::text as "promptHash",
  case when e.cost_source <> 'unpriced' then e.cost_usd end as "costPico"
from (select * from events e where e.org_id = $1 and e.timestamp >= $2::timestamptz and e.timestamp < $3::timestamptz and e.superseded_by is null
  and e.status <> 'blocked' ${isFirst ? '' : 'and (e.timestamp, e.id) > ($2::timestamptz, $4::uuid)'}
  order by e.timestamp fetch first ${pageCalls} rows with ties) e
order by e.timestamp, e.id
limit ${pageCalls}`;

/** Calls in the order in which rules judge them; the next page, a separate transaction, is read ahead. */
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
    // Awaited below; until then its failure must not crash the process.
    next.catch(() => undefined);
    yield calls;
    rows = await next;
  }
}

function fromCallRow({ hasUsage, ...row }: CallRow): ReplayedCall {
  const { input, cacheRead, cacheCreation, cacheCreation5m, cacheCreation1h, ...others } = row;
  const { output, inputAudio, outputAudio, reasoning, cached, ...call } = others;
  const inputs = { input, cacheRead, cacheCreation, cacheCreation5m, cacheCreation1h, inputAudio };
  return { ...call, usage: hasUsage ? { ...inputs, output, outputAudio, reasoning, cached } : null };
}
