import type { OrgDb } from '../../db/orgDb.js';
import { listClaimEvents } from '../../db/queries/claimEvents.js';
import { listClaimOutcomes } from '../../db/queries/claimOutcomes.js';
import { findClaim, findClaimEvidence, listDisputeIdsOfClaim } from '../../db/queries/claims.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid } from '../../domain/ids.js';
import type { WholeClaim } from './wire.js';

export function claimNotFound(): DomainError {
  return new DomainError('not_found', 'there is no claim with this id');
}

/** The uuid in a claim's public id. Error not_found. */
export function uuidOfClaim(id: string): string {
  const uuid = findUuid('clm', id);
  if (uuid === undefined) throw claimNotFound();
  return uuid;
}

/** One state of all of a claim: a move may be recorded between two reads. Error not_found. */
export async function getWholeClaim(orgDb: OrgDb, id: string): Promise<WholeClaim> {
  const whole = await orgDb.transaction(async (inside) => {
    const [claim, disputeIds, events, outcomes, evidence] = await Promise.all([
      findClaim(inside, id),
      listDisputeIdsOfClaim(inside, id),
      listClaimEvents(inside, id),
      listClaimOutcomes(inside, id),
      findClaimEvidence(inside, id),
    ]);
    return claim && evidence && { claim, disputeIds, events, outcomes, evidence };
  }, 'repeatable read');
  if (!whole) throw claimNotFound();
  return whole;
}
