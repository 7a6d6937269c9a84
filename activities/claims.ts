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

/** The effects of the life of a claim. */
export function createClaimActivities(deps: ActivityDeps) {
  return {
    /** The claim as its row is; null where there is none. */
    readClaim: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      // A read changes nothing.
      withFailures(() => findClaimState(orgDbOf(deps, orgId), claimId)),

    /** Carries a move out, or fails with the code of the rule that refuses it. */
    recordClaimMove: ({ orgId, command }: { orgId: string; command: ClaimCommand }): Promise<ClaimState> =>
      // A repeat of a command that is recorded changes nothing more.
      withFailures(async () => stateOf(await recordClaimMove(orgDbOf(deps, orgId), command))),

    /** Leaves the reminder that is due, and fixes the next one. */
    noteClaimDue: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      // A reminder that is not due, or no longer, is left as it is.
      withFailures(async () => stateOf(await noteClaimDue(orgDbOf(deps, orgId), claimId))),
  };
}
