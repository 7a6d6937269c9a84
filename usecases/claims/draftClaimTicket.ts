import { findClaim, findClaimEvidence, listClaimEvents, listCreditsOf } from '../../db/claims/claims.js';
import { listClaimedRows, listTicketDisputes } from '../../db/claims/ticketFacts.js';
import { getOrganization } from '../../db/installation/organizations.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { type ClaimEvidence, EVIDENCE_FORMAT } from '../../domain/claims/evidence/claimEvidence.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { draftTicket, type TicketDraft, type TicketFacts } from '../../domain/claims/ticketDraft.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { claimNotFound } from './wholeClaim.js';

/**
 * Drafts the ticket of an escalated claim from one snapshot. `author` is recorded in the audit log; undefined: the
 * draft is only read. Errors: not_found, illegal_transition.
 */
export async function draftClaimTicket(
  orgDb: OrgDb,
  claimId: string,
  author?: RequestAuthor,
): Promise<{ ticket: TicketDraft; atMicros: bigint }> {
  const found = await readTicketFacts(orgDb, claimId);
  if (!found) throw claimNotFound();
  if (found.status !== 'escalated')
    throw new DomainError(
      'illegal_transition',
      `the claim is ${found.status}: a ticket is drafted for a claim that is escalated`,
    );
  const ticket = draftTicket(found.facts);
  if (author)
    await recordAction(orgDb, author, 'claim.ticket_drafted', {
      type: 'claim',
      id: publicId('clm', claimId),
    });
  return { ticket, atMicros: found.atMicros };
}

/** undefined: the claim does not exist. */
export async function readTicketFacts(
  orgDb: OrgDb,
  claimId: string,
): Promise<{ status: ClaimStatus; facts: TicketFacts; atMicros: bigint } | undefined> {
  return orgDb.transaction(async (inside) => {
    const claim = await findClaim(inside, claimId);
    if (!claim) return undefined;
    const evidence = readEvidence(await findClaimEvidence(inside, claimId));
    const credits = await listCreditsOf(inside, [claimId]);
    return {
      status: claim.status,
      facts: {
        claim,
        organization: (await getOrganization(inside)).name,
        events: await listClaimEvents(inside, claimId),
        disputes: await listTicketDisputes(inside, claimId),
        credits: credits.filter(({ status, source }) => status === 'proposed' && source === 'credit_row'),
        evidence,
        rows: evidence ? await listClaimedRows(inside, claim, evidence.cells) : [],
      },
      atMicros: await readClock(inside),
    };
  }, 'repeatable read');
}

function readEvidence(stored: Record<string, unknown> | undefined): ClaimEvidence | undefined {
  return stored?.format === EVIDENCE_FORMAT ? (stored as unknown as ClaimEvidence) : undefined;
}
