import { ActivityFailure, ApplicationFailure, CancellationScope, isCancellation } from '@temporalio/workflow';

export interface RunEnding {
  /** Records that the run was cancelled; this activity itself cannot be cancelled. */
  cancelled(): Promise<void>;
  /** Records why the run has failed. */
  failed(reason: { code: string; message: string }): Promise<void>;
}

/**
 * Does the work of a run, and ends the run when the work is cancelled or one of its activities has failed for good. A
 * cancelled workflow still ends as cancelled; a failure is the run's outcome, not the workflow's.
 */
export async function withRunEnding(ending: RunEnding, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => ending.cancelled());
      throw error;
    }
    await ending.failed(reasonOf(error));
  }
}

/** The reason of an activity's final failure. Rethrows any other error: a cancellation, or a bug of the workflow. */
export function reasonOf(error: unknown): { code: string; message: string } {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  return {
    code: cause instanceof ApplicationFailure && cause.type ? cause.type : 'internal_error',
    message: cause instanceof Error ? cause.message : error.message,
  };
}
