import type { MoveAnswer } from '../../adapters/orchestrator.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import type { ClaimCommand } from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';
import { recordClaimMove } from '../../usecases/claims/moveClaim.js';

/** Replaces Temporal in tests about other subjects: carries out moves immediately. */
export function movesAtOnce(database: Database) {
  return async ({ orgId }: { orgId: string }, command: ClaimCommand): Promise<MoveAnswer> => {
    try {
      const { version, status } = await new OrgDb(database, orgId).transaction((inside) =>
        recordClaimMove(inside, command),
      );
      return { kind: 'moved', state: { version, status, nextActionAtMicros: null } };
    } catch (error) {
      if (error instanceof DomainError) return { kind: 'refused', error };
      throw error;
    }
  };
}
