import { ActivityFailure, ApplicationFailure, CancellationScope, isCancellation } from '@temporalio/workflow';

export interface RunEnding {
  /** Notes that the run was cancelled; itself it cannot be. */
  cancelled(): Promise<void>;
  /** Notes why the run has failed. */
  failed(reason: { code: string; message: string }): Promise<void>;
}

/**
 * Does the work of a run, and ends the run where the work is cancelled or one of its activities has failed for good. A
 * cancelled workflow is cancelled all the same; a failure is the run's outcome, and not the workflow's.
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

/** Why an activity has failed for good. Throws whatever else it is given: a cancellation, or a fault of the workflow. */
export function reasonOf(error: unknown): { code: string; message: string } {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  return {
    code: cause instanceof ApplicationFailure && cause.type ? cause.type : 'internal_error',
    message: cause instanceof Error ? cause.message : error.message,
  };
}
