import { LRUCache } from 'lru-cache';
import type { StorableEvent } from '../../db/events/eventColumns.js';
import { SpanTree } from '../../domain/events/callGroups.js';
import {
  compareReports,
  isReportedInParts,
  type RankedReport,
  responseKey,
} from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';

/** Most calls that are remembered; the oldest are forgotten first. */
export const KNOWN_CALLS_MAX = 20_000;
/**
 * Time after which a remembered call is looked up again, milliseconds: its identities are renewed only then, so that they
 * outlive the call's last report (callIdentities.ts).
 */
const KNOWN_MS = 3_600_000;
/**
 * Time after a call of an organization was reported again during which its calls are remembered, milliseconds. Remembering
 * a call costs this process about 10 µs, which an organization whose calls are reported once must not pay.
 */
const REPEATS_MS = 600_000;

/** The event that counted for a call when this process last stored a report of it. */
export interface KnownCall {
  eventId: string;
  /** Its place in its trace. */
  trace: SpanLink | null;
  report: RankedReport;
  /** When it was looked up, on the clock of `performance.now`. */
  sinceMs: number;
}

/** Reports of a batch of whose calls this process remembers events. */
export interface AssumedReports {
  /** The stored event that is assumed to count, by the id of the report. */
  winners: ReadonlyMap<string, KnownCall>;
  /** Ids of reports that are richer than the remembered event. They are stored as calls, without a claim of the known id. */
  richer: ReadonlySet<string>;
  /** Reports of the same call that the batch merged into those of `winners`: the ids of both. */
  mergedInto: ReadonlyMap<string, string>;
}

export const NOTHING_ASSUMED: AssumedReports = {
  winners: new Map(),
  richer: new Set(),
  mergedInto: new Map(),
};

const NO_TREE = new SpanTree([]);

/**
 * The calls that this process stored last, by response id, of organizations whose calls are reported more than once. The
 * second report of a call is then stored as superseded, where otherwise it would be stored as a call, be found to be none
 * and be changed. `resolveDuplicateReports` verifies under its locks that the remembered event still counts and is the
 * richer report: this cache is never believed.
 */
export class KnownCalls {
  /** Until when calls are remembered, by organization, on the clock of `performance.now`. */
  readonly #repeatsUntilMs = new Map<string, number>();
  // A Map searches its removed entries for the oldest one at each new call: the API took 111 µs a call instead of 100.
  readonly #calls = new LRUCache<string, KnownCall>({ max: KNOWN_CALLS_MAX });

  /** Marks the reports of remembered calls in a prepared batch, and the poorer ones as superseded. */
  assume(orgId: string, events: readonly StorableEvent[]): AssumedReports {
    const winners = new Map<string, KnownCall>();
    const richer = new Set<string>();
    for (const event of events) {
      const key = event.supersededBy === null ? keyOf(orgId, event.call) : undefined;
      const known = key === undefined ? undefined : this.#find(key);
      if (known === undefined || known.eventId === event.id || isReportedInParts(event.call)) continue;
      if (compareReports(event.call, known.report, NO_TREE) < 0) winners.set(event.id, known);
      else {
        richer.add(event.id);
        event.isResponseKnown = true;
      }
    }
    if (winners.size + richer.size === 0) return NOTHING_ASSUMED;
    const mergedInto = dropMixedGroups(winners, events);
    for (const event of events) {
      const known = winners.get(mergedInto.get(event.id) ?? event.id);
      if (known === undefined) continue;
      event.supersededBy = known.eventId;
      event.isResponseKnown = true;
    }
    return { winners, richer, mergedInto };
  }

  #find(key: string): KnownCall | undefined {
    const known = this.#calls.peek(key);
    if (known === undefined || performance.now() - known.sinceMs < KNOWN_MS) return known;
    this.#calls.delete(key);
    return undefined;
  }

  /** Notes that a call of the organization was reported again. */
  noteRepeat(orgId: string): void {
    this.#repeatsUntilMs.set(orgId, performance.now() + REPEATS_MS);
  }

  /** Whether the organization's new calls are worth remembering. */
  expectsRepeats(orgId: string): boolean {
    const untilMs = this.#repeatsUntilMs.get(orgId);
    if (untilMs === undefined) return false;
    if (performance.now() < untilMs) return true;
    this.#repeatsUntilMs.delete(orgId);
    return false;
  }

  /** Remembers the event that counts for a call, after the commit. */
  remember(orgId: string, { id, call }: { id: string; call: CallRecord }): void {
    const key = keyOf(orgId, call);
    if (key === undefined) return;
    const { status, responseId, reportedClasses, startMicros, endMicros, requestId } = call;
    const { scopeName, model, provider, trace } = call;
    const ranks = { status, responseId, reportedClasses, startMicros, endMicros, requestId };
    const before = this.#calls.peek(key);
    const sinceMs = before?.eventId === id ? before.sinceMs : performance.now();
    this.#calls.set(key, {
      eventId: id,
      trace,
      report: { ...ranks, scopeName, model, provider, trace },
      sinceMs,
    });
  }

  /** Forgets the calls of reports for which an assumption was wrong. */
  forget(orgId: string, events: readonly StorableEvent[]): void {
    for (const { call } of events) {
      const key = keyOf(orgId, call);
      if (key !== undefined) this.#calls.delete(key);
    }
  }
}

/** An assumption about a call was wrong; the batch must be stored without assumptions. */
export class KnownCallsChanged extends Error {}

function keyOf(orgId: string, call: CallRecord): string | undefined {
  const key = responseKey(call);
  return key === null ? undefined : `${orgId} ${key}`;
}

/**
 * The reports that the batch merged into each of `winners`. Where one of them has another response id, or none, nothing is
 * assumed of the call.
 */
function dropMixedGroups(
  winners: Map<string, KnownCall>,
  events: readonly StorableEvent[],
): Map<string, string> {
  const byId = new Map(events.map((event) => [event.id, event]));
  const mixed = new Set<string>();
  const mergedInto = new Map<string, string>();
  for (const { id, call, supersededBy } of events) {
    const winner = supersededBy === null || !winners.has(supersededBy) ? undefined : byId.get(supersededBy);
    if (winner === undefined) continue;
    const key = responseKey(call);
    if (key === null || key !== responseKey(winner.call)) mixed.add(winner.id);
    else mergedInto.set(id, winner.id);
  }
  for (const id of mixed) winners.delete(id);
  for (const [id, winnerId] of mergedInto) if (mixed.has(winnerId)) mergedInto.delete(id);
  return mergedInto;
}
