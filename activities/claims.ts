import type { ClaimCommand, ClaimState } from '../domain/claims/lifecycle.js';
import { recordClaimMove } from '../usecases/claims/moveClaim.js';
import { noteClaimDue } from '../usecases/claims/reminders.js';
import { findClaimState, stateOf } from '../usecases/claims/wholeClaim.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';

interface ClaimRef {
  orgId: string;
  claimId: string;
}

/** The activities of a claim. */
export function createClaimActivities(deps: ActivityDeps) {
  return {
    /** The claim's stored state; null: it does not exist. */
    readClaim: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      // A read changes nothing.
      withFailures(() => findClaimState(orgDbOf(deps, orgId), claimId)),

    /** Carries out a move, or fails with the code of the rule that refuses it. */
    recordClaimMove: ({ orgId, command }: { orgId: string; command: ClaimCommand }): Promise<ClaimState> =>
      // A repeat of a recorded command changes nothing.
      withFailures(async () => stateOf(await recordClaimMove(orgDbOf(deps, orgId), command))),

    /** Records the due reminder, and sets the next one. */
    noteClaimDue: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      // A reminder that is not due, or no longer due, does not change.
      withFailures(async () => stateOf(await noteClaimDue(orgDbOf(deps, orgId), claimId))),
  };
}
