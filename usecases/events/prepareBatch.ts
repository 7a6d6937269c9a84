import type { StorableEvent } from '../../db/events/eventColumns.js';
import type { RefusedItems } from '../../db/events/ingest.js';
import { inTurns, Turns } from '../../db/turns.js';
import { countedBy, SCOPE_NOT_COUNTED } from '../../domain/events/clients.js';
import type { CallRecord, MappedBatch, SpanLink } from '../../domain/events/event.js';
import { apiKeyHash, eventId, resolveCallsInSteps } from '../../domain/events/resolveCalls.js';
import type { OrganizationSettings } from '../../domain/installation/settings.js';
import { priceOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';

export interface IngestRequest {
  orgId: string;
  /** `key_…` of the sending key: part of every call's hash. */
  keyId: string;
  /** Set on calls without a project: the project of the key's workspace. */
  defaultProjectId: string | null;
  batch: MappedBatch;
}

/** Requests of one organization, prepared for one transaction. */
export interface PreparedBatch {
  events: StorableEvent[];
  /** Index of the request of each event. */
  owners: number[];
  /** Spans that are not calls, or whose calls do not count. */
  links: SpanLink[];
  /** Refused items, counted by sender and reason. */
  refusals: RefusedItems[];
  /** Calls of each request that do not count. */
  leftOut: number[];
}

/**
 * Converts the calls of several requests to rows: leaves out calls that do not count, merges two reports of a call into
 * one live row, then hashes and prices each. It yields to other requests meanwhile.
 */
export async function prepareBatch(
  requests: readonly IngestRequest[],
  prices: PriceBook,
  settings: OrganizationSettings,
): Promise<PreparedBatch> {
  const counts = countedBy(settings.countedScopes);
  const calls: CallRecord[] = [];
  const owners: number[] = [];
  const links = requests.flatMap((request) => request.batch.links);
  const leftOut = requests.map(() => 0);
  const refused = requests.flatMap(({ batch, defaultProjectId: projectId }) =>
    batch.rejections.map(
      ({ serviceName, scopeName, reason }): Refused => ({ projectId, serviceName, scopeName, reason }),
    ),
  );
  requests.forEach((request, index) => {
    for (const call of request.batch.calls) {
      if (counts(call)) {
        calls.push(call);
        owners.push(index);
        continue;
      }
      // Kept as a span that is not a call, because it shows the nesting of other spans.
      if (call.trace !== null) links.push(call.trace);
      leftOut[index] = (leftOut[index] as number) + 1;
      const { serviceName, scopeName } = call;
      refused.push({
        projectId: request.defaultProjectId,
        serviceName,
        scopeName,
        reason: SCOPE_NOT_COUNTED,
      });
    }
  });
  const resolved = await inTurns(resolveCallsInSteps(calls, links));
  const events: StorableEvent[] = [];
  const turns = new Turns();
  for (const [index, { call }] of resolved.entries()) {
    const request = requests[owners[index] as number] as IngestRequest;
    events.push(storable(call, request.keyId, request.defaultProjectId, prices));
    if (turns.isOver()) await turns.next();
  }
  resolved.forEach(({ supersededBy }, index) => {
    if (supersededBy === null) return;
    const [report, winner] = [events[index] as StorableEvent, events[supersededBy] as StorableEvent];
    report.supersededBy = winner.id;
    // No report names a project, and only this report's key belongs to a workspace.
    winner.projectId ??= report.projectId;
  });
  return { events, owners, links, refusals: countRefused(refused), leftOut };
}

/** Removes the payloads. It runs last, because policies read them before. */
export function dropPayloads({ events }: PreparedBatch): void {
  for (const event of events) event.call = withoutPayload(event.call);
}

/**
 * A call without prompts, answers and the client's additions, and without the hash that would confirm a guessed prompt;
 * labels, usage and times stay.
 */
function withoutPayload(call: CallRecord): CallRecord {
  return { ...call, payload: null, toolInput: null, toolOutput: null, service: null, promptHash: null };
}

/** Hashes and prices a call. */
function storable(
  call: CallRecord,
  keyId: string,
  defaultProjectId: string | null,
  prices: PriceBook,
): StorableEvent {
  const hash = apiKeyHash(keyId, call);
  return {
    id: eventId(call, hash),
    apiKeyHash: hash,
    apiKeyId: keyId,
    call,
    price: priceOf(call, prices),
    projectId: call.projectId ?? defaultProjectId,
    supersededBy: null,
  };
}

type Refused = Omit<RefusedItems, 'count'>;

function countRefused(refused: readonly Refused[]): RefusedItems[] {
  const counts = new Map<string, RefusedItems>();
  for (const item of refused) {
    const key = JSON.stringify([item.projectId, item.serviceName, item.scopeName, item.reason]);
    const entry = counts.get(key);
    if (entry) entry.count += 1;
    else counts.set(key, { ...item, count: 1 });
  }
  return [...counts.values()].sort((a, b) => (a.reason < b.reason ? -1 : 1));
}
