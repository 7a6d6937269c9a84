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
  'follow_up_failed',
  'chunks_failed',
  'connection_ended',
] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];

const RUN_COMPLETE: ReadonlySet<RunStatus> = new Set(['succeeded', 'partial']);

/** Share of the work that is done, in whole percent; 100 only of a run that went through all of it. */
export function percentDone(done: number, total: number, status: RunStatus): number {
  if (RUN_COMPLETE.has(status)) return 100;
  return total === 0 ? 0 : Math.min(99, Math.floor((done * 100) / total));
}
