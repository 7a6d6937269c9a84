/** What the API and a thread that reads bodies say to each other: each message is answered by one. */
import { DomainError, type ErrorCode, type FieldIssue } from '../../domain/errors.js';
import type { CallRecord, MappedBatch } from '../../domain/events/event.js';
import { jsonCharsBound } from '../../domain/events/jsonValues.js';
import { PROMPT_SCAN_CHARS } from '../../domain/policies/policy.js';
import type { Provider } from '../../domain/providers.js';
import type { BodyKind } from './decodeBody.js';
import { type PackedCall, packCall } from './packedCalls.js';

export type ToThread =
  | { type: 'read'; kind: BodyKind; bytes: Uint8Array; nowMicros: bigint; oldestMicros: bigint }
  | { type: 'providers'; providers: readonly (Provider | undefined)[] }
  | { type: 'next' }
  /** The body is not wanted any more. */
  | { type: 'stop' };

export type FromThread =
  | { type: 'items'; items: number }
  /** Models whose calls name no provider. */
  | { type: 'models'; models: readonly string[] }
  | { type: 'part'; part: BatchPart }
  | { type: 'done'; ignored: number }
  | { type: 'stopped' }
  | { type: 'failed'; failure: Failure };

export interface Failure {
  /** undefined: a fault of ours. */
  code: ErrorCode | undefined;
  message: string;
  issues: readonly FieldIssue[];
}

/** Some of a mapped batch, so little that it is taken up without a pause that anybody notices. */
export interface BatchPart extends Pick<MappedBatch, 'links' | 'rejections'> {
  calls: readonly PackedCall[];
}

const CALLS_A_PART = 256;
const LINKS_A_PART = 2_048;
/** Of what calls carry, as JSON. */
const CHARS_A_PART = 1_048_576;

export function* partsOf({ calls, links, rejections }: MappedBatch): Generator<BatchPart> {
  let from = 0;
  let chars = 0;
  for (const [at, call] of calls.entries()) {
    chars += charsOf(call);
    const next = at + 1;
    if (next < calls.length && next - from < CALLS_A_PART && chars < CHARS_A_PART) continue;
    yield { calls: calls.slice(from, next).map(packCall), links: [], rejections: [] };
    from = next;
    chars = 0;
  }
  for (let at = 0; at < links.length; at += LINKS_A_PART)
    yield { calls: [], links: links.slice(at, at + LINKS_A_PART), rejections: [] };
  for (let at = 0; at < rejections.length; at += LINKS_A_PART)
    yield { calls: [], links: [], rejections: rejections.slice(at, at + LINKS_A_PART) };
}

function charsOf({ payload, toolInput, toolOutput, service, prompts }: CallRecord): number {
  const carried = [payload, toolInput, toolOutput, service];
  const said = prompts().reduce((sum, text) => sum + Math.min(text.length, PROMPT_SCAN_CHARS), 0);
  return carried.reduce<number>((sum, json) => sum + jsonCharsBound(json, CHARS_A_PART), said);
}

export function failureOf(error: unknown): Failure {
  if (error instanceof DomainError) {
    const { code, message, issues } = error;
    return { code, message, issues };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: undefined, message, issues: [] };
}

export function errorOf({ code, message, issues }: Failure): Error {
  return code === undefined ? new Error(message) : new DomainError(code, message, { issues });
}
