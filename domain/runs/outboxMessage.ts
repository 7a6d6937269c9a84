import { type CancellableRunKind, describeRun, isRunKind, RUN_KINDS, type RunKind } from './runKinds.js';

/** Messages to the workflow engine about a run. */
export type RunMessage = `${RunKind}.start` | `${CancellableRunKind}.cancel`;

export const RUN_MESSAGES: readonly RunMessage[] = RUN_KINDS.flatMap((kind) => [
  runMessage(kind, 'start'),
  ...(describeRun(kind).cancel ? [runMessage(kind, 'cancel')] : []),
]);

export function runMessage(kind: RunKind, verb: 'start' | 'cancel'): RunMessage {
  if (verb === 'cancel' && !describeRun(kind).cancel)
    throw new TypeError(`a ${kind} cannot be asked to stop`);
  return `${kind}.${verb}` as RunMessage;
}

/** What a message says about a run; undefined for a message about something else. */
export function readRunMessage(message: string): { kind: RunKind; verb: 'start' | 'cancel' } | undefined {
  const [kind = '', verb] = message.split('.');
  return isRunKind(kind) && (verb === 'start' || verb === 'cancel') ? { kind, verb } : undefined;
}

export const OUTBOX_KINDS = [
  ...RUN_MESSAGES,
  'connection.schedule',
  'webhook.deliver',
  'claim.wake',
  'weights.recompute',
] as const;
export type OutboxKind = (typeof OUTBOX_KINDS)[number];

/** Something that a workflow has to be told, written in the transaction of the row that it follows. */
export interface OutboxMessage {
  orgId: string;
  id: number;
  kind: OutboxKind;
  /** uuid of what it is about. */
  subjectId: string;
  /** This delivery included. */
  attempts: number;
}

/** Messages that one call to the engine delivers. */
export type MessageGroup = readonly [OutboxMessage, ...OutboxMessage[]];

/** Messages that wake a workflow: several at a time are one word to it. */
const WAKINGS: ReadonlySet<OutboxKind> = new Set(['webhook.deliver', 'claim.wake', 'weights.recompute']);

/**
 * Messages that wake the same workflow are one group: each transaction that told of something has left one, and a burst
 * of them is one word to it. Every other message is delivered by itself.
 */
export function groupWakings(messages: readonly OutboxMessage[]): MessageGroup[] {
  const groups = new Map<string, [OutboxMessage, ...OutboxMessage[]]>();
  for (const message of messages) {
    const { kind, orgId, subjectId, id } = message;
    const about = kind === 'weights.recompute' ? '' : subjectId;
    const name = WAKINGS.has(kind) ? `${kind} ${orgId} ${about}` : `${orgId} ${id}`;
    const group = groups.get(name);
    if (group) group.push(message);
    else groups.set(name, [message]);
  }
  return [...groups.values()];
}
