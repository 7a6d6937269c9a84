import { Context } from '@temporalio/activity';

/** Milliseconds between heartbeats; far below the profiles' heartbeat timeout. */
const HEARTBEAT_MS = 3_000;

/**
 * Runs an activity that may take longer than its heartbeat timeout, so that a dead process is noticed soon and a live
 * one is never taken for dead; `details` describe its progress. Heartbeats also deliver cancellations.
 */
export async function withHeartbeat<T>(
  work: () => Promise<T>,
  details: () => unknown = () => undefined,
): Promise<T> {
  const context = Context.current();
  context.heartbeat(details());
  const timer = setInterval(() => context.heartbeat(details()), HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
