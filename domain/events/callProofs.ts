import type { Pace, Steps } from '../steps.js';
import type { CallRecord } from './event.js';
import { responseKey } from './telling.js';

const WORK_OF_CALL = 128;

/** What proves calls of a set to be one, and where their spans are. */
export interface CallProofs {
  /** Indices of calls by what proves them one: the same event, or a response id at its biller. */
  byProof: ReadonlyMap<string, readonly number[]>;
  /** The last call of each span. */
  bySpan: ReadonlyMap<string, number>;
  /** Whether any two calls share a response id, a trace or all that makes them unique: else nothing is sent twice. */
  mayRepeat: boolean;
}

/** As unique as the event: the same request of the same model at the same time, blocked or let through. */
export function callIdentity(call: CallRecord): string {
  return `${call.provider} ${call.requestId} ${call.startMicros} ${call.model} ${call.status === 'blocked'}`;
}

export function* listProofs(calls: readonly CallRecord[], pace: Pace): Steps<CallProofs> {
  const byProof = new Map<string, number[]>();
  const bySpan = new Map<string, number>();
  const traces = new Set<string>();
  let mayRepeat = false;
  const note = (proof: string, index: number) => {
    const same = byProof.get(proof);
    if (same === undefined) byProof.set(proof, [index]);
    else {
      same.push(index);
      mayRepeat = true;
    }
  };
  for (const [index, call] of calls.entries()) {
    if (pace.isDue(WORK_OF_CALL)) yield;
    const { trace } = call;
    const key = responseKey(call);
    if (key === null && trace === null) continue;
    note(`event ${callIdentity(call)}`, index);
    if (key !== null) note(`response ${key}`, index);
    if (trace === null) continue;
    if (traces.has(trace.traceId)) mayRepeat = true;
    traces.add(trace.traceId);
    bySpan.set(trace.traceId + trace.spanId, index);
  }
  return { byProof, bySpan, mayRepeat };
}
