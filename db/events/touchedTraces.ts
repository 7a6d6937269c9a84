import { TRACE_SPANS_MAX } from '../../domain/events/event.js';
import type { Database } from '../client.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { plainArray, plainItems } from '../pgArray.js';
import { SPAN_COLUMNS, type SpanRow } from './storedEvents.js';

/** Most spans of one sweep, rounded up to the end of a transaction: bounds its memory. */
const SWEEP_SPANS_MAX = 10_000;

export interface TouchedTraces {
  byOrganization: ReadonlyMap<string, readonly string[]>;
  /** The transactions that were searched: up to `below`, without it. */
  from: number;
  below: number;
  more: boolean;
}

/**
 * Traces with new spans since the last sweep and more than one span, by organization, and the transaction up to which
 * they were searched.
 */
export async function listTouchedTraces(database: Database): Promise<TouchedTraces> {
  return unscoped(database, 'the sweep looks for traces with new spans', async (system) => {
    const [state] = await system.rows<{ from_xid: number; below_xid: number }>(
      'select swept_xid as from_xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as below_xid from sweep_state',
    );
    if (!state) throw new Error('the sweep state is one row');
    const below = await findCut(system, state.from_xid, state.below_xid);
    const rows = await system.rows<{ org_id: string; traces: string }>(
      `select org_id, array_agg(distinct trace_id)::text as traces from call_spans s
       where ingest_xid >= $1 and ingest_xid < $2 and trace_id is not null and exists (
         select from call_spans o where o.org_id = s.org_id and o.trace_id = s.trace_id and o.span_id <> s.span_id)
       group by org_id`,
      [state.from_xid, below],
    );
    const byOrganization = new Map(rows.map((row) => [row.org_id, plainItems(row.traces)]));
    return { byOrganization, more: below < state.below_xid, from: state.from_xid, below };
  });
}

/** Records the sweep's position. */
export async function noteSwept(database: Database, below: number): Promise<void> {
  await unscoped(database, 'note how far the sweep has come', (system) =>
    system.run('update sweep_state set swept_xid = greatest(swept_xid, $1)', [below]),
  );
}

/** The transaction to sweep up to: complete transactions with a limited number of spans, at least one. */
async function findCut(system: SystemDb, from: number, below: number): Promise<number> {
  const [row] = await system.rows<{ ingest_xid: number }>(
    `select ingest_xid from call_spans where ingest_xid >= $1 and ingest_xid < $2
     order by ingest_xid offset ${SWEEP_SPANS_MAX} limit 1`,
    [from, below],
  );
  return row === undefined ? below : Math.max(row.ingest_xid, from + 1);
}

/** Traces that are resolved together, and the number of those with more spans than are compared. */
export interface TracePart {
  traceIds: readonly string[];
  longTraces: number;
}

/** Groups traces into parts of at most TRACE_SPANS_MAX spans; longer traces are counted up to the limit. */
export async function listTraceParts(orgDb: OrgDb, traceIds: readonly string[]): Promise<TracePart[]> {
  const rows = await orgDb.rows<{ trace_id: string; spans: number }>(
    `select t.trace_id, s.spans from unnest($2::uuid[]) as t (trace_id)
     cross join lateral (
       select count(*)::int as spans, count(distinct event_id)::int as events from (
         select event_id from call_spans where org_id = $1 and trace_id = t.trace_id limit ${TRACE_SPANS_MAX + 1}) as counted) as s
     where s.events > 1 or s.spans > ${TRACE_SPANS_MAX}
     order by s.spans, t.trace_id`,
    [orgDb.orgId, plainArray(traceIds)],
  );
  const parts: { traceIds: string[]; longTraces: number }[] = [];
  let room = 0;
  for (const { trace_id, spans } of rows) {
    let part = parts.at(-1);
    if (part === undefined || spans > room) {
      part = { traceIds: [], longTraces: 0 };
      parts.push(part);
      room = TRACE_SPANS_MAX;
    }
    part.traceIds.push(trace_id);
    if (spans > TRACE_SPANS_MAX) part.longTraces += 1;
    room -= spans;
  }
  return parts;
}

/** The latest spans of each trace, as many as are compared with each other. */
export async function readTraceSpans(orgDb: OrgDb, traceIds: readonly string[]): Promise<SpanRow[]> {
  return orgDb.rows<SpanRow>(
    `select s.* from unnest($2::uuid[]) as t (id)
     cross join lateral (
       select event_id, ${SPAN_COLUMNS} from call_spans where org_id = $1 and trace_id = t.id
       order by ingest_xid desc, span_id limit ${TRACE_SPANS_MAX}) s`,
    [orgDb.orgId, plainArray(traceIds)],
  );
}
