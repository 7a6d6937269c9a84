import { type ClaimEvidence, EVIDENCE_FORMAT } from '../../domain/claims/evidence/claimEvidence.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import type { TicketFacts } from '../../domain/claims/ticketDraft.js';
import type { OrgDb } from '../orgDb.js';
import { listCreditsOf } from '../queries/claimCredits.js';
import { listClaimEvents } from '../queries/claimEvents.js';
import { type CountedRow, listCountedRows } from '../queries/claimEvidence.js';
import { findClaim, findClaimEvidence, type StoredClaim } from '../queries/claims.js';
import { readClock } from '../queries/clock.js';
import { getOrganization } from '../queries/organizations.js';

/** What a ticket says of a claim, as it is all known at one moment; undefined where there is no such claim. */
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
        disputes: await listClaimedParts(inside, claimId),
        credits: credits.filter(({ status, source }) => status === 'proposed' && source === 'credit_row'),
        evidence,
        rows: evidence ? await listClaimedRows(inside, claim, evidence) : [],
      },
      atMicros: await readClock(inside),
    };
  }, 'repeatable read');
}

function readEvidence(stored: Record<string, unknown> | undefined): ClaimEvidence | undefined {
  return stored?.format === EVIDENCE_FORMAT ? (stored as unknown as ClaimEvidence) : undefined;
}

function listClaimedParts(inside: OrgDb, claimId: string): Promise<TicketFacts['disputes'][number][]> {
  return inside.rows(
    `select id, model, period_start as "periodStart", period_end as "periodEnd", amount_cents as "amountCents", reason
     from disputes where org_id = $1 and claim_id = $2::uuid order by amount_cents desc, id`,
    [inside.orgId, claimId],
  );
}

/** The rows of the bill that count now for what is claimed. */
async function listClaimedRows(
  inside: OrgDb,
  { provider, accountId }: StoredClaim,
  { cells, samples }: ClaimEvidence,
): Promise<CountedRow[]> {
  const named = cells.map(({ model }) => model);
  const answered = samples.flatMap(({ model, response_model: other }) => (other ? [model, other] : [model]));
  const rows = await listCountedRows(inside, {
    ...{ provider, accountId, labels: [...new Set(named)].sort() },
    days: [...new Set(cells.map(({ day }) => day))].sort(),
    models: [...new Set([...named, ...answered])].sort(),
  });
  return rows.filter(({ feed }) => feed === 'cost');
}
