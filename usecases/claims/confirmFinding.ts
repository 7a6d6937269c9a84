import {
  findRivalDispute,
  insertDispute,
  listDisputesOf,
  listUndisputedDays,
  type StoredDispute,
} from '../../db/claims/disputes.js';
import { newUuid } from '../../db/newUuid.js';
import type { OrgDb } from '../../db/orgDb.js';
import { recordDecision, type StoredFinding } from '../../db/reconciliation/findings.js';
import { claimCents } from '../../domain/claims/claimAmount.js';
import { disputeTier, whyNotDisputable, whyNotForReview } from '../../domain/claims/decision.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { reasonOf } from '../../domain/reconciliation/inference/words.js';

/** Error not_for_review where people are not asked about a finding, unless later runs no longer find it. */
export function assertForReview(finding: StoredFinding): void {
  const why = whyNotForReview(finding);
  if (why !== undefined && finding.status !== 'gone') throw new DomainError('not_for_review', why);
}

/** What came of a confirmation. */
export interface Confirmed {
  dispute: StoredDispute;
  isNew: boolean;
  /** Whether this request has changed what is decided on the finding. */
  isDecided: boolean;
}

/**
 * Opens the dispute over a finding, or gives the one that there is, also where its days have become provisional since.
 * Errors not_for_review, nothing_to_dispute, already_decided, already_disputed.
 */
export async function confirmFinding(
  inside: OrgDb,
  finding: StoredFinding,
  said: { notes: string | null; reopen: boolean; by: string },
  nowMicros: bigint,
): Promise<Confirmed> {
  if (finding.status === 'dismissed' && !said.reopen)
    throw new DomainError(
      'already_decided',
      'it was dismissed; confirm it all the same with {"reopen": true}',
    );
  const isGone = finding.status === 'gone';
  const isClosed = isGone || whyNotForReview(finding) !== undefined;
  const days = isClosed ? [] : await listUndisputedDays(inside, finding.id);
  const amountCents = claimCents(days.reduce((sum, day) => sum + day.impactPico, 0n));
  const why = isGone ? 'later runs no longer find it' : whyNotDisputable(finding);
  if (amountCents <= 0n && finding.status !== 'dismissed') {
    const known = (await listDisputesOf(inside, finding.id)).find(
      ({ findingId }) => findingId === finding.id || (why === undefined && !isClosed),
    );
    if (known) return { dispute: known, isNew: false, isDecided: await joinDispute(inside, finding, said) };
  }
  assertForReview(finding);
  if (why !== undefined) throw new DomainError('nothing_to_dispute', why);
  if (amountCents <= 0n)
    throw new DomainError('nothing_to_dispute', 'what no dispute is about yet is less than a cent');
  const rival = await findRivalDispute(inside, finding.id);
  if (rival !== undefined)
    throw new DomainError(
      'already_disputed',
      `days of it are in the dispute ${publicId('dsp', rival)}, whose finding is gone and may be the same dollars; resolve that one first`,
    );
  await recordDecision(inside, finding.id, { status: 'confirmed', by: said.by, reason: said.notes });
  const dispute = await insertDispute(inside, finding.id, {
    id: newUuid(nowMicros),
    days,
    amountCents,
    reason: reasonOf(finding, days),
    tier: disputeTier(finding) ?? 'LOW',
    notes: said.notes,
    openedBy: said.by,
  });
  if (!dispute) throw new Error('the finding is held, so it is there');
  return { dispute, isNew: true, isDecided: true };
}

/** Confirms a finding whose days are all in disputes already; false where it was decided on before. */
async function joinDispute(
  inside: OrgDb,
  finding: StoredFinding,
  said: { notes: string | null; by: string },
): Promise<boolean> {
  if (finding.status !== 'open') return false;
  await recordDecision(inside, finding.id, { status: 'confirmed', by: said.by, reason: said.notes });
  return true;
}
