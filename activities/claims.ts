import { findClaim, type StoredClaim } from '../db/claims/claims.js';
import { OrgDb } from '../db/orgDb.js';
import type { ClaimCommand, ClaimState } from '../domain/claims/lifecycle.js';
import { noteClaimDue } from '../usecases/claims/noteDue.js';
import { recordClaimMove } from '../usecases/claims/recordMove.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';

interface ClaimRef {
  orgId: string;
  claimId: string;
}

/** The effects of the life of a claim. */
export function createClaimActivities({ database }: ActivityDeps) {
  const orgDbOf = (orgId: string) => new OrgDb(database, orgId);
  return {
    /** The claim as its row is; null where there is none. */
    readClaim: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      withFailures(async () => {
        const claim = await findClaim(orgDbOf(orgId), claimId);
        return claim ? stateOf(claim) : null;
      }),

    /** Carries a move out, or says why not: by its code. */
    recordClaimMove: ({ orgId, command }: { orgId: string; command: ClaimCommand }): Promise<ClaimState> =>
      // A repeat of a command that is recorded changes nothing more.
      withFailures(async () =>
        stateOf(await orgDbOf(orgId).transaction((inside) => recordClaimMove(inside, command))),
      ),

    /** Has the notice that is due given, and the next one fixed; what is not due is left as it is. */
    noteClaimDue: ({ orgId, claimId }: ClaimRef): Promise<ClaimState | null> =>
      withFailures(async () => {
        const claim = await noteClaimDue(orgDbOf(orgId), claimId);
        return claim ? stateOf(claim) : null;
      }),
  };
}

function stateOf({ version, status, nextActionAtMicros }: StoredClaim): ClaimState {
  return {
    version,
    status,
    nextActionAtMicros: nextActionAtMicros === null ? null : Number(nextActionAtMicros),
  };
}
