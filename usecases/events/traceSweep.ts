import type { Database } from '../../db/client.js';
import { pointResponsesOf } from '../../db/events/callIdentities.js';
import { lockEventsById, lockLiveEvents } from '../../db/events/events.js';
import {
  type LiveReport,
  type MergedCall,
  storedReport,
  writeMergedCalls,
} from '../../db/events/mergeReports.js';
import { findPairedIds } from '../../db/events/pairedReports.js';
import { callOfStored, linkOf, type StoredEvent } from '../../db/events/storedEvents.js';
import {
  listTouchedTraces,
  listTraceParts,
  noteSwept,
  readTraceSpans,
  type TracePart,
} from '../../db/events/touchedTraces.js';
import { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { SettledCalls } from '../../db/policies/policyAlerts.js';
import { inTurns, Turns } from '../../db/turns.js';
import { SpanTree } from '../../domain/events/callGroups.js';
import { mergeReport } from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { type ResolvedCall, resolveCallsInSteps } from '../../domain/events/resolveCalls.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { pairStoredReports } from './pairStoredReports.js';
import { settleAlertsOfStored } from './settleAlertsOfStored.js';

export interface Sweep {
  superseded: number;
  /** Traces of which only the last spans were compared. */
  longTraces: number;
  /** Whether more traces are waiting. */
  more: boolean;
}

/**
 * Finds spans of one call that arrived in different requests, one an ancestor of the other, in the traces that got
 * spans since the last sweep, and pairs reports that share no id (pairStoredReports.ts). Runs every few seconds; a repeat changes nothing. Organizations take turns, so that long
 * traces of one of them do not delay the others.
 */
export async function sweepTraces(database: Database, prices: Pick<Prices, 'of'>): Promise<Sweep> {
  const found = await listTouchedTraces(database);
  const sweep: Sweep = { superseded: 0, longTraces: 0, more: found.more };
  let open: { orgDb: OrgDb; parts: readonly TracePart[] }[] = [];
  for (const [orgId, traceIds] of found.byOrganization) {
    const orgDb = new OrgDb(database, orgId);
    open.push({ orgDb, parts: await listTraceParts(orgDb, traceIds) });
  }
  for (let round = 0; open.length > 0; round += 1) {
    open = open.filter(({ parts }) => round < parts.length);
    for (const { orgDb, parts } of open) {
      const { traceIds, longTraces } = parts[round] as TracePart;
      const book = await prices.of(orgDb.orgId);
      sweep.longTraces += longTraces;
      sweep.superseded += await repeatOnConflict(() =>
        orgDb.transaction((inside) => resolveTraces(inside, traceIds, book)),
      );
    }
  }
  sweep.superseded += await pairStoredReports(database, prices, found);
  await noteSwept(database, found.below);
  return sweep;
}

async function resolveTraces(orgDb: OrgDb, traceIds: readonly string[], prices: PriceBook): Promise<number> {
  const spans = await readTraceSpans(orgDb, traceIds);
  const events = await lockEventsById(orgDb, [...new Set(spans.flatMap((span) => span.event_id ?? []))]);
  const byId = new Map(events.map((event) => [event.id, event]));
  const reports: StoredEvent[] = [];
  const calls: CallRecord[] = [];
  const links: SpanLink[] = [];
  const turns = new Turns();
  for (const span of spans) {
    const link = linkOf(span);
    const event = span.event_id === null ? undefined : byId.get(span.event_id);
    if (event) {
      // Superseded reports are included, so that their call is not taken for another one.
      reports.push(event);
      calls.push(callOfStored(event, link));
    } else if (link) links.push(link);
    if (turns.isOver()) await turns.next();
  }
  const resolved = await inTurns(resolveCallsInSteps(calls, links));
  const merges = await mergeResolved(orgDb, { reports, calls, links, resolved });
  if (merges.length === 0) return 0;
  const settled = new SettledCalls();
  await writeMergedCalls(orgDb, merges, prices, settled);
  const superseded = merges.flatMap((call) =>
    call.superseded.map(({ id }) => ({ id, liveId: call.kept.id })),
  );
  await pointResponsesOf(orgDb, traceIds, superseded);
  await settleAlertsOfStored(orgDb, settled);
  return superseded.length;
}

/** The spans of some traces, with the events that their calls were resolved to. */
interface ResolvedTraces {
  reports: readonly StoredEvent[];
  calls: readonly CallRecord[];
  links: readonly SpanLink[];
  resolved: readonly ResolvedCall[];
}

/**
 * Pairs each event that still counts, although another span reports its call, with the event that counts for that span.
 * The latter may be in another trace, which superseded the span by its response id.
 */
async function mergeResolved(
  orgDb: OrgDb,
  { reports, calls, links, resolved }: ResolvedTraces,
): Promise<MergedCall[]> {
  const pairs = resolved.flatMap(({ supersededBy }, index) => {
    const loser = reports[index];
    const winner = supersededBy === null ? undefined : reports[supersededBy];
    if (loser === undefined || winner === undefined || loser.supersededBy !== null) return [];
    return [{ loser, winner, winnerIndex: supersededBy as number, loserCall: calls[index] as CallRecord }];
  });
  const replaced = pairs.filter(({ winner }) => winner.supersededBy !== null).map(({ winner }) => winner.id);
  // Of equal calls at once nothing shows which two reports were of one call, so a pair is no proof for a third report.
  const paired = await findPairedIds(orgDb, replaced);
  const elsewhere = await lockLiveEvents(
    orgDb,
    pairs.flatMap(({ winner }) => (paired.has(winner.id) ? [] : (winner.supersededBy ?? []))),
  );
  const swept = new SweptCalls(new SpanTree([...links, ...calls.flatMap((call) => call.trace ?? [])]));
  const turns = new Turns();
  for (const { loser, winner, winnerIndex, loserCall } of pairs) {
    if (turns.isOver()) await turns.next();
    if (winner.supersededBy === null) {
      swept.join(winner, loser, (resolved[winnerIndex] as ResolvedCall).call);
      continue;
    }
    const live = elsewhere.get(winner.supersededBy);
    if (live !== undefined) swept.join(live, loser, loserCall);
  }
  return swept.merged;
}

interface SweptCall extends MergedCall {
  superseded: LiveReport[];
}

/** Events that were found to be one call, pair by pair. */
class SweptCalls {
  readonly #tree: SpanTree;
  readonly #calls = new Map<string, SweptCall>();
  /** The counting event's id by the id of each superseded event. */
  readonly #keptIds = new Map<string, string>();

  constructor(tree: SpanTree) {
    this.#tree = tree;
  }

  /** @param reported the merged call record that comparing the pair returned. */
  join(kept: StoredEvent, loser: StoredEvent, reported: CallRecord): void {
    const [one, other] = [this.#callOf(kept), this.#callOf(loser)];
    if (one === other) return;
    one.call = mergeReport(mergeReport(one.call, reported, this.#tree), other.call, this.#tree);
    this.#calls.delete(other.kept.id);
    for (const report of [other.kept, ...other.superseded]) {
      one.superseded.push(report);
      this.#keptIds.set(report.id, one.kept.id);
    }
  }

  #callOf(event: StoredEvent): SweptCall {
    const id = this.#keptIds.get(event.id) ?? event.id;
    const known = this.#calls.get(id);
    if (known !== undefined) return known;
    const kept = storedReport(event, null);
    const call: SweptCall = { kept, call: kept.call, superseded: [], added: [] };
    this.#calls.set(id, call);
    return call;
  }

  get merged(): MergedCall[] {
    return [...this.#calls.values()].filter(({ superseded }) => superseded.length > 0);
  }
}
