import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { type ResolvedCall, resolveCalls } from '../../domain/events/resolveCalls.js';
import { SpanTree } from '../../domain/events/spanTree.js';
import { mergeTellings } from '../../domain/events/telling.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Database } from '../client.js';
import { Judges, judgeCostBy } from '../ingest/judges.js';
import { OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { plainArray, plainItems } from '../pgArray.js';
import type { Prices } from '../prices/priceBookHolder.js';

import { lockEventsById } from './events.js';
import { parsePolicies, readMarkedRules } from './ingestRules.js';
import { publishPolicyAlerts } from './policyAlerts.js';
import { SettledCalls, settleAlerts } from './settledAlerts.js';
import {
  applyPair,
  callOfStored,
  knownCostOf,
  linkOf,
  lockLive,
  placeOf,
  SPAN_COLUMNS,
  type SpanRow,
  storableOf,
} from './storedCalls.js';
import type { StoredEvent } from './storedEvents.js';

/** Spans that one sweep looks at, to the end of a transaction: bounds its memory. */
const SWEEP_SPANS_MAX = 10_000;

/**
 * Finds spans of one call that arrived in different requests, one an ancestor of the other: looks at the traces that
 * got spans since the last sweep. Runs every few seconds; sweeping twice changes nothing. Returns the events that
 * were superseded, and whether more traces are waiting.
 */
export async function sweepTraces(
  database: Database,
  prices: Pick<Prices, 'of'>,
): Promise<{ superseded: number; more: boolean }> {
  const found = await listTouchedTraces(database);
  let superseded = 0;
  for (const [orgId, traces] of found.byOrganization) {
    const orgDb = new OrgDb(database, orgId);
    const book = await prices.of(orgId);
    superseded += await orgDb.transaction((inside) => resolveTraces(inside, traces, book));
  }
  await unscoped(database, 'note how far the sweep has come', (system) =>
    system.run('update sweep_state set swept_xid = greatest(swept_xid, $1)', [found.below]),
  );
  return { superseded, more: found.more };
}

/** Traces that got spans since the last sweep and have more than one: by organization, up to which transaction. */
async function listTouchedTraces(database: Database) {
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
    return { byOrganization, more: below < state.below_xid, below };
  });
}

/** The transaction to sweep up to: whole transactions of at most so many spans, at least one. */
async function findCut(system: SystemDb, from: number, below: number): Promise<number> {
  const [row] = await system.rows<{ ingest_xid: number }>(
    `select ingest_xid from call_spans where ingest_xid >= $1 and ingest_xid < $2
     order by ingest_xid offset ${SWEEP_SPANS_MAX} limit 1`,
    [from, below],
  );
  return row === undefined ? below : Math.max(row.ingest_xid, from + 1);
}

async function resolveTraces(orgDb: OrgDb, traces: readonly string[], prices: PriceBook): Promise<number> {
  const spans = await orgDb.rows<SpanRow>(
    `select event_id, ${SPAN_COLUMNS} from call_spans
     where org_id = $1 and trace_id in (
       select trace_id from call_spans where org_id = $1 and trace_id = any($2::uuid[])
       group by trace_id having count(distinct event_id) > 1)`,
    [orgDb.orgId, plainArray(traces)],
  );
  if (spans.length === 0) return 0;
  const events = await lockEventsById(orgDb, [...new Set(spans.flatMap((span) => span.event_id ?? []))]);
  const byId = new Map(events.map((event) => [event.id, event]));
  const tellings: StoredEvent[] = [];
  const calls: CallRecord[] = [];
  const links: SpanLink[] = [];
  for (const span of spans) {
    const link = linkOf(span);
    const event = span.event_id === null ? undefined : byId.get(span.event_id);
    if (event) {
      // Superseded tellings are shown too: what they stand for already must not be taken for another call.
      tellings.push(event);
      calls.push(callOfStored(event, link));
    } else if (link) links.push(link);
  }
  const resolved = resolveCalls(calls, links);
  const tree = new SpanTree([...links, ...calls.flatMap((call) => call.trace ?? [])]);
  let superseded = 0;
  const settled = new SettledCalls();
  for (const [index, { supersededBy }] of resolved.entries()) {
    const loser = tellings[index];
    if (!loser || supersededBy === null || loser.supersededBy !== null) continue;
    const winner = tellings[supersededBy] as StoredEvent;
    const completed = (resolved[supersededBy] as ResolvedCall).call;
    if (winner.supersededBy === null) {
      if (winner.id === loser.id) continue;
      await joinPair(orgDb, { kept: winner, left: loser, call: completed }, prices, settled);
    } else if (
      !(await joinLive(
        orgDb,
        { relative: winner, loser: { event: loser, call: calls[index] as CallRecord } },
        { tree, prices, settled },
      ))
    )
      continue;
    superseded += 1;
  }
  if (superseded > 0) await settleSwept(orgDb, settled);
  return superseded;
}

/** One event stands for the call from now on, the other one no longer. */
async function joinPair(
  orgDb: OrgDb,
  { kept, left, call }: { kept: StoredEvent; left: StoredEvent; call: CallRecord },
  prices: PriceBook,
  settled: SettledCalls,
): Promise<void> {
  const completed = storableOf(kept, call, prices);
  await applyPair(orgDb, placeOf(kept), placeOf(left), completed);
  settled.note({ event: completed, costBefore: knownCostOf(kept), said: [] }, left.id);
}

/** The alerts follow; of policies, what the completed calls cost is all that can have become another one. */
async function settleSwept(orgDb: OrgDb, settled: SettledCalls): Promise<void> {
  const { policiesText, alertsWanted } = await readMarkedRules(orgDb);
  const ofCost = parsePolicies(policiesText).filter(
    ({ type }) => type === 'approval_required_threshold_cents',
  );
  const { added } = await settleAlerts(orgDb, settled, [], judgeCostBy(new Judges(ofCost)));
  if (alertsWanted)
    await publishPolicyAlerts(
      orgDb,
      added.map(({ id }) => id),
    );
}

/** Joins a telling to the call that stands, in another trace, for its relative. False when that is the telling itself. */
async function joinLive(
  orgDb: OrgDb,
  { relative, loser }: { relative: StoredEvent; loser: { event: StoredEvent; call: CallRecord } },
  { tree, prices, settled }: { tree: SpanTree; prices: PriceBook; settled: SettledCalls },
): Promise<boolean> {
  const live = await lockLive(orgDb, relative.id);
  if (!live || live.id === loser.event.id) return false;
  const { winner, call } = mergeTellings(callOfStored(live, null), loser.call, tree);
  const [kept, left] = winner === 'live' ? [live, loser.event] : [loser.event, live];
  await joinPair(orgDb, { kept, left, call }, prices, settled);
  return true;
}
