import {
  listGenerationsOf,
  lockRecords,
  notePassedOn,
  putRecords,
  type RecordPlace,
  type StoredRecord,
} from '../../db/events/observationRecords.js';
import type { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { Turns } from '../../db/turns.js';
import type { MappedBatch, ReportedObservations } from '../../domain/events/event.js';
import { ItemFault, type JsonObject, type MapContext } from '../../domain/events/itemFault.js';
import { rejectionOf } from '../../domain/events/observations/langfuseBatch.js';
import {
  callOfGeneration,
  isCallable,
  joinFields,
  type ObservationPart,
  type ObservationRecord,
  traceMark,
} from '../../domain/events/observations/observationRecord.js';

/**
 * Observations that clients report in parts. The parts of a request join those of earlier requests in a transaction of
 * their own; every observation that is complete enough then is a call, in the form of all its parts. Ingest stores it,
 * or completes the event that an earlier part made (resolveDuplicateReports.ts). A request that fails between the two
 * is repeated by its client, and joins nothing new.
 */

/** Calls of traces with new labels that one request completes; it bounds the work of one label. */
export const COMPLETED_MAX = 1_000;

/** A key's reports. */
export interface Reporter {
  orgDb: OrgDb;
  keyId: string;
}

/** The observations of a request, joined with earlier parts. */
export interface JoinedObservations {
  /** The records of the request's generations, and of earlier ones whose traces have new labels. */
  generations: readonly ObservationRecord[];
  traces: ReadonlyMap<string, StoredRecord>;
  parts: readonly ObservationPart[];
}

/** Joins the parts of a request with those of earlier ones. */
export async function joinObservations(
  { orgDb, keyId }: Reporter,
  { parts }: ReportedObservations,
): Promise<JoinedObservations> {
  if (parts.length === 0) return { generations: [], traces: new Map(), parts };
  return repeatOnConflict(() =>
    orgDb.transaction(async (inside) => {
      const records = await lockRecords(inside, keyId, placesOf(parts));
      const byPlace = new Map(records.map((record) => [placeKey(record), record]));
      // Updates may lack the trace that an earlier part named.
      const others = new Set(records.flatMap(({ traceId }) => traceId ?? []));
      for (const { traceId } of parts) if (traceId !== null) others.delete(traceId);
      for (const trace of await lockRecords(inside, keyId, [...others].map(placeOfTrace)))
        byPlace.set(placeKey(trace), trace);
      const changed = addParts(byPlace, parts);
      await putRecords(inside, keyId, changed);
      const traces = [...byPlace.values()].filter(({ kind }) => kind === 'trace');
      const relabelled = traces.filter((trace) => traceMark(trace) !== (trace.passedOn ?? ''));
      const earlier = await listGenerationsOf(
        inside,
        keyId,
        relabelled.map(({ id }) => id),
        COMPLETED_MAX,
      );
      const own = changed.filter(({ kind }) => kind === 'generation');
      const known = new Set(own.map(({ id }) => id));
      return {
        generations: [...own, ...earlier.filter(({ id }) => !known.has(id))],
        traces: new Map(traces.map((trace) => [trace.id, trace])),
        parts,
      };
    }),
  );
}

const placeKey = ({ kind, id }: RecordPlace) => `${kind} ${id}`;

const placeOfTrace = (id: string): RecordPlace => ({ kind: 'trace', id });

/** The records of the parts and of the traces that they name, each once. */
function placesOf(parts: readonly ObservationPart[]): RecordPlace[] {
  const places = new Map<string, RecordPlace>();
  for (const { kind, id, traceId } of parts) {
    places.set(placeKey({ kind, id }), { kind, id });
    if (traceId !== null) places.set(placeKey(placeOfTrace(traceId)), placeOfTrace(traceId));
  }
  return [...places.values()];
}

/** Adds parts to their records; returns the changed records, each once. */
function addParts(byPlace: Map<string, StoredRecord>, parts: readonly ObservationPart[]): StoredRecord[] {
  const changed = new Set<string>();
  for (const part of parts) {
    const key = placeKey(part);
    const record = byPlace.get(key);
    if (record === undefined) continue;
    changed.add(key);
    const traceId = leastTrace(record.traceId, part.traceId);
    byPlace.set(key, { ...record, traceId, fields: joinFields(record.fields, part.fields) });
  }
  return [...changed].map((key) => byPlace.get(key) as StoredRecord);
}

/** An observation has one trace; of two different ones the smaller id, in whatever order they come. */
function leastTrace(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

/** Maps joined observations to calls; a wrong one rejects the last item of the request that reported it. */
export async function mapObservations(
  { keyId }: Reporter,
  { generations, traces, parts }: JoinedObservations,
  { itemIds }: ReportedObservations,
  context: MapContext,
): Promise<Pick<MappedBatch, 'calls' | 'rejections'>> {
  const contents = new Map<string, JsonObject[]>();
  const lastIndex = new Map<string, number>();
  for (const { kind, id, content, index } of parts) {
    if (kind !== 'generation') continue;
    lastIndex.set(id, index);
    contents.set(id, [...(contents.get(id) ?? []), ...(content === null ? [] : [content])]);
  }
  const calls: MappedBatch['calls'] = [];
  const rejections: MappedBatch['rejections'] = [];
  const turns = new Turns();
  for (const record of generations) {
    if (!isCallable(record)) continue;
    const trace = record.traceId === null ? undefined : traces.get(record.traceId);
    try {
      calls.push(
        callOfGeneration({ record, trace, contents: contents.get(record.id) ?? [], keyId }, context),
      );
    } catch (fault) {
      if (!(fault instanceof ItemFault)) throw fault;
      const index = lastIndex.get(record.id);
      // An observation of an earlier request was rejected there.
      if (index !== undefined) rejections.push(rejectionOf(fault, index, itemIds[index] ?? ''));
    }
    if (turns.isOver()) await turns.next();
  }
  return { calls, rejections };
}

/** Records after the calls are stored that they have the labels of their traces. */
export async function noteLabelsPassedOn(
  { orgDb, keyId }: Reporter,
  { traces }: JoinedObservations,
): Promise<void> {
  const passed = [...traces.values()].flatMap((trace) => {
    const mark = traceMark(trace);
    return mark === (trace.passedOn ?? '') ? [] : [{ id: trace.id, mark }];
  });
  await notePassedOn(orgDb, keyId, passed);
}
