import { decideOnCredits, listCreditsOf, type StoredCredit } from '../../db/claims/claimCredits.js';
import { lockClaim } from '../../db/claims/claims.js';
import { readClock } from '../../db/clock.js';
import type { OrgDb } from '../../db/orgDb.js';
import { answeredBy } from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';

/**
 * Decides on the credits that are proposed for a claim as it ends, in the transaction of that move: those that come to what
 * was credited are its answer, the others are not and may be the answer to another claim. `creditCents` is null where
 * nothing was credited.
 */
export async function settleCredits(
  inside: OrgDb,
  claimId: string,
  end: { creditCents: number | null; by: string; atMicros: bigint },
): Promise<void> {
  const proposed = (await listCreditsOf(inside, [claimId])).filter(({ status }) => status === 'proposed');
  const accepted = end.creditCents === null ? [] : answeredBy(proposed, end.creditCents);
  const { by, atMicros } = end;
  await decideOnCredits(inside, idsOf(accepted), { status: 'accepted', by, atMicros });
  const others = proposed.filter((credit) => !accepted.includes(credit));
  await decideOnCredits(inside, idsOf(others), { status: 'rejected', by, atMicros });
}

const idsOf = (credits: readonly StoredCredit[]): string[] => credits.map(({ id }) => id);

/**
 * Says that a proposed credit is not the answer to a claim; it is not proposed for it again. Returns the credit as it was.
 * A repeat changes nothing. Errors not_found, already_resolved where it is its answer by a move.
 */
export async function rejectCredit(
  inside: OrgDb,
  given: { claimId: string; creditId: string; by: string },
): Promise<StoredCredit> {
  const claim = await lockClaim(inside, given.claimId);
  if (!claim) throw new DomainError('not_found', 'there is no claim with this id');
  const credits = await listCreditsOf(inside, [claim.id]);
  const credit = credits.find(({ id }) => id === given.creditId);
  if (!credit) throw new DomainError('not_found', 'no credit with this id was proposed for the claim');
  if (credit.status === 'accepted')
    throw new DomainError('already_resolved', 'the claim was resolved with this credit');
  await decideOnCredits(inside, [credit.id], {
    ...{ status: 'rejected', by: given.by, atMicros: await readClock(inside) },
  });
  return credit;
}
