import { type ClaimEvent, findClaimEventOf } from '../../db/claims/claimEvents.js';
import { findClaim, lockClaim, type StoredClaim } from '../../db/claims/claims.js';
import { readClock } from '../../db/clock.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { ClaimCommand } from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';

/** A claim, what a command has done to it already, and the time, all by the database. */
export interface ClaimOnItsWay {
  claim: StoredClaim;
  recorded: ClaimEvent | undefined;
  atMicros: bigint;
}

/** Undefined where there is no such claim. */
export async function viewClaim(
  orgDb: OrgDb,
  claimId: string,
  commandId: string,
): Promise<ClaimOnItsWay | undefined> {
  return orgDb.transaction(async (inside) => {
    const [claim, recorded, atMicros] = await Promise.all([
      findClaim(inside, claimId),
      findClaimEventOf(inside, commandId),
      readClock(inside),
    ]);
    return claim && { claim, recorded, atMicros };
  });
}

/**
 * Looks at a row that cannot be looked at: held for longer than statements wait, or in a database that is away. Together
 * they take longer than any command counts, so that none is carried out after it was given up.
 */
const TRIES = 6;
const TRY_PAUSE_MS = 1_000;
const MILLI_MICROS = 1_000n;

/**
 * What became of a command of which nobody knows: its row of the history, or undefined once it is certain that it has done
 * nothing and never will. That is when its time is over and nobody holds the claim: whoever held it has committed or given
 * up, and whoever takes it later finds the command too late. Error service_unavailable where the row cannot be looked at.
 */
export async function waitForMove(
  orgDb: OrgDb,
  command: Pick<ClaimCommand, 'claimId' | 'commandId' | 'notAfterMicros'>,
  pause: (milliseconds: number) => Promise<unknown>,
): Promise<ClaimEvent | undefined> {
  for (let tries = 1; ; ) {
    const seen = await viewHeld(orgDb, command).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'service_unavailable' || tries >= TRIES)
        throw error;
      return undefined;
    });
    if (!seen) {
      tries += 1;
      await pause(TRY_PAUSE_MS);
      continue;
    }
    if (seen.recorded) return seen.recorded;
    const leftMicros = BigInt(command.notAfterMicros) - seen.atMicros;
    if (leftMicros <= 0n) return undefined;
    await pause(Number(leftMicros / MILLI_MICROS) + 1);
  }
}

/** Waits for whoever holds the claim, and reads what there is then. */
function viewHeld(
  orgDb: OrgDb,
  { claimId, commandId }: Pick<ClaimCommand, 'claimId' | 'commandId'>,
): Promise<{ recorded: ClaimEvent | undefined; atMicros: bigint }> {
  return orgDb.transaction(async (inside) => {
    await lockClaim(inside, claimId);
    const [recorded, atMicros] = await Promise.all([findClaimEventOf(inside, commandId), readClock(inside)]);
    return { recorded, atMicros };
  });
}
