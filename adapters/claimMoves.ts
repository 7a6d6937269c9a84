import {
  WithStartWorkflowOperation,
  type WorkflowClient,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { ClaimCommand, ClaimState } from '../domain/claims/lifecycle.js';
import { DomainError, type ErrorCode } from '../domain/errors.js';
import { type ClaimInput, claimWorkflowId, MOVE_UPDATE, WORKFLOW_NAMES } from '../workflows/contract.js';
import type { EngineCalls } from './engineCalls.js';

/**
 * What came of a move of a claim. `refused`: a rule has refused it, and the row is as it was. `unsent`: the engine is left
 * alone for now, so nothing was asked of it. `unknown`: it did not say; the row alone knows.
 */
export type MoveAnswer =
  | { kind: 'moved'; state: ClaimState }
  | { kind: 'refused'; error: DomainError }
  | { kind: 'unsent' }
  | { kind: 'unknown'; cause: unknown };

interface MoveRequest {
  input: ClaimInput;
  command: ClaimCommand;
  taskQueue: string;
}

/** Has the workflow of a claim carry a move out; starts it where there is none. Throws nothing. */
export async function askForMove(
  calls: EngineCalls,
  client: WorkflowClient,
  request: MoveRequest,
): Promise<MoveAnswer> {
  if (calls.isPaused) return { kind: 'unsent' };
  try {
    return await calls.call(() => update(client, request));
  } catch (cause) {
    return { kind: 'unknown', cause };
  }
}

async function update(
  client: WorkflowClient,
  { input, command, taskQueue }: MoveRequest,
): Promise<MoveAnswer> {
  try {
    const state = await client.executeUpdateWithStart<Workflow, ClaimState, [ClaimCommand]>(MOVE_UPDATE, {
      // No time limit: it lives for as long as the claim.
      startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW_NAMES.claimLifecycle, {
        workflowId: claimWorkflowId(input),
        taskQueue,
        args: [input],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      }),
      // Of this attempt: a later one of the same command has a time of its own, and must not be answered with what
      // became of this one, which may have come too late.
      updateId: `${command.commandId}:${command.notAfterMicros}`,
      args: [command],
    });
    return { kind: 'moved', state };
  } catch (error) {
    const refusal = error instanceof WorkflowUpdateFailedError && findRefusal(error.cause);
    if (refusal) return { kind: 'refused', error: refusal };
    throw error;
  }
}

/** What rules refuse a move with; of every other failure the row alone knows what became of it. */
const REFUSALS: readonly ErrorCode[] = [
  'not_found',
  'illegal_transition',
  'claim_conflict',
  'invalid_body',
  'command_too_late',
];

function findRefusal(cause: unknown): DomainError | undefined {
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const code = REFUSALS.find((known) => known === cause.type);
  return code && new DomainError(code, cause.message);
}
