/** Work that outlives a request, in one shape for gap runs, imports and whatever else is polled. */
export const RUN_STATUSES = ['queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** A run in one of these is over; the others go on. */
export const RUN_TERMINAL_STATUSES: ReadonlySet<RunStatus> = new Set([
  'succeeded',
  'partial',
  'failed',
  'cancelled',
]);

/** Why a run ended without a result, beside the error codes of the work itself. */
export const RUN_ERROR_CODES = [
  'dispatch_failed',
  'run_lost',
  'internal_error',
  'units_failed',
  'chunks_failed',
  'connection_ended',
] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];

/** Share of the work that is done, in whole percent; 100 only when all is. Without any work: 0 until it has ended. */
export function percentDone(done: number, total: number, isOver: boolean): number {
  if (isOver) return 100;
  return total === 0 ? 0 : Math.min(99, Math.floor((done * 100) / total));
}
