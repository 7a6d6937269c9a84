import {
  claimOutboxMessages,
  killOutboxMessage,
  markOutboxDispatched,
  retryOutboxMessage,
} from '../../db/runs/outbox.js';
import { noteRunWaitingForEngine } from '../../db/runs/runTable.js';
import { type OutboxMessage, readRunMessage } from '../../domain/runs/runKinds.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { endRun } from './endRun.js';

/** Seconds after which a claimed message is due again when its dispatcher has not confirmed it. */
const LEASE_SECONDS = 30;

/** Takes due messages of all organizations under a lease. */
export function takeDueMessages({ database }: UseCaseDeps, limit: number): Promise<OutboxMessage[]> {
  return claimOutboxMessages(database, limit, LEASE_SECONDS);
}

export function noteDelivered({ database }: UseCaseDeps, messages: readonly OutboxMessage[]): Promise<void> {
  return markOutboxDispatched(database, messages);
}

/** Schedules another attempt for a message; the run that it starts shows that it waits. */
export async function putMessageBack(
  deps: UseCaseDeps,
  message: OutboxMessage,
  reason: string,
  delaySeconds: number,
): Promise<void> {
  await retryOutboxMessage(deps.database, message, reason, delaySeconds);
  const about = readRunMessage(message.kind);
  if (about?.verb === 'start')
    await noteRunWaitingForEngine(orgDbOf(deps, message.orgId), about.kind, message.subjectId);
}

/** Gives a message up. Its run could never start, so it fails visibly instead of waiting forever. */
export async function giveMessageUp(
  deps: UseCaseDeps,
  message: OutboxMessage,
  reason: string,
): Promise<void> {
  await killOutboxMessage(deps.database, message, reason);
  const about = readRunMessage(message.kind);
  if (about?.verb !== 'start') return;
  const error = {
    code: 'dispatch_failed',
    message: `the workflow engine refused to start the work: ${reason}`,
  };
  await endRun(orgDbOf(deps, message.orgId), about.kind, message.subjectId, { status: 'failed', error });
}
