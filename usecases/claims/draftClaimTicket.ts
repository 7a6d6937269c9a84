import { countedRowsSql, countedSourcesSql } from '../../db/billing/billingRows.js';
import {
  findClaim,
  findClaimEvidence,
  listClaimEvents,
  listCreditsOf,
  type StoredClaim,
} from '../../db/claims/claims.js';
import { readClock } from '../../db/clock.js';
import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { plainArray, textArray } from '../../db/pgArray.js';
import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import { type ClaimEvidence, EVIDENCE_FORMAT } from '../../domain/claims/evidence/claimEvidence.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import {
  draftTicket,
  type LabelledRow,
  type TicketDraft,
  type TicketFacts,
} from '../../domain/claims/ticketDraft.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { claimNotFound } from './wholeClaim.js';

/**
 * Drafts the ticket of an escalated claim from one snapshot. `author`: whose action the audit log keeps; a read has none.
 * Errors not_found, illegal_transition.
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

/** Undefined where there is no such claim. */
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

/** The labels of the bill as it counts now for what is claimed. Providers name a model by the day of its version too. */
function listClaimedRows(
  inside: OrgDb,
  { provider, accountId }: StoredClaim,
  { cells }: ClaimEvidence,
): Promise<LabelledRow[]> {
  return inside.rows<LabelledRow>(
    `with counted as (${countedSourcesSql(
      `d.org_id = $1 and d.provider = $2 and d.day = any($4::date[]) and ($3 = '' or d.provider_account_id = $3)
       and d.feed = 'cost' and d.charge_category = 'usage' and d.report <> '${MONTH_REPORT}'`,
    )})
     select distinct r.day, r.model, r.line_item as "lineItem", r.token_class as "tokenClass", r.is_batch as "isBatch",
       r.long_context as "longContext", r.region, r.project
     from ${countedRowsSql()} r
     where exists (select from unnest($5::text[]) as m(name)
       where r.model = m.name or starts_with(r.model, m.name || '-') or (r.model is null and r.line_item = m.name))
     order by 1, 3, 4, 8`,
    [
      ...[inside.orgId, provider, accountId, plainArray([...new Set(cells.map(({ day }) => day))].sort())],
      textArray([...new Set(cells.map(({ model }) => model))].sort()),
    ],
  );
}
