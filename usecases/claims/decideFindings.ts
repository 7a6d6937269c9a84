import {
  type DisputeEvidence,
  findDispute,
  findDisputeEvidence,
  findRivalDispute,
  type HeldDispute,
  insertDispute,
  listDisputeDays,
  listDisputesOf,
  listUndisputedDays,
  lockDispute,
  resolveOpenDispute,
  type StoredDispute,
} from '../../db/claims/disputes.js';
import { listBrokenPolicies } from '../../db/claims/financialSums.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  findFinding,
  lockFinding,
  recordDecision,
  type StoredFinding,
} from '../../db/reconciliation/findings.js';
import {
  claimCents,
  disputeTier,
  whyNotDisputable,
  whyNotForReview,
} from '../../domain/claims/financialSummary.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import { type FindingDay, reasonOf } from '../../domain/reconciliation/engine/index.js';

import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { isPolicyItemId, policyItemId } from './reviewQueue.js';

/**
 * Confirms the finding of a review queue item (`fnd_…`) and opens its dispute. `isNew`: this request opened it. Errors:
 * not_found, decided_elsewhere, not_for_review, nothing_to_dispute, already_decided, already_disputed.
 */
export async function confirmItem(
  orgDb: OrgDb,
  itemId: string,
  said: { notes: string | null; reopen: boolean },
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<{ dispute: StoredDispute; isNew: boolean }> {
  return orgDb.transaction(async (inside) => {
    const finding = await lockItem(inside, itemId);
    const confirmed = await openDispute(inside, finding, { ...said, by: author.caller.keyId }, nowMicros);
    if (confirmed.isDecided)
      await recordAction(inside, author, 'finding.confirmed', subjectOf(finding), {
        dispute_id: publicId('dsp', confirmed.dispute.id),
        kind: finding.kind,
        amount_cents: confirmed.dispute.amountCents,
      });
    return confirmed;
  });
}

/**
 * Dismisses the finding of a review queue item; a repeat changes nothing. Errors: not_found, decided_elsewhere,
 * not_for_review, already_decided.
 */
export async function dismissItem(
  orgDb: OrgDb,
  itemId: string,
  reason: string,
  author: RequestAuthor,
): Promise<StoredFinding> {
  return orgDb.transaction(async (inside) => {
    const finding = await lockItem(inside, itemId);
    if (finding.status === 'dismissed') return finding;
    const live = (await listDisputesOf(inside, finding.id)).find(({ status }) => status !== 'resolved');
    if (live)
      throw new DomainError(
        'already_decided',
        `the dispute ${publicId('dsp', live.id)} is about it; resolve that one first`,
      );
    if (finding.status === 'gone')
      throw new DomainError('already_decided', 'later runs no longer find it: there is nothing to dismiss');
    assertForReview(finding);
    await recordDecision(inside, finding.id, { status: 'dismissed', by: author.caller.keyId, reason });
    const after = await findFinding(inside, finding.id);
    await recordAction(inside, author, 'finding.dismissed', subjectOf(finding), { kind: finding.kind });
    return after ?? finding;
  });
}

const subjectOf = ({ id }: StoredFinding) => ({ type: 'finding', id: publicId('fnd', id) });

/** Locks and returns the finding of an item. Errors: not_found; decided_elsewhere for a policy's item. */
async function lockItem(inside: OrgDb, itemId: string): Promise<StoredFinding> {
  const uuid = findUuid('fnd', itemId);
  const finding = uuid === undefined ? undefined : await lockFinding(inside, uuid);
  if (finding) return finding;
  const policies = isPolicyItemId(itemId) ? await listBrokenPolicies(inside) : [];
  if (policies.some((policy) => policyItemId(policy) === itemId))
    throw new DomainError(
      'decided_elsewhere',
      'a policy’s item is closed by acknowledging its alerts: POST /api/v1/alerts/{id}/acknowledge',
    );
  throw new DomainError('not_found', 'there is no item with this id in the review queue');
}

/** Throws not_for_review for a finding that people do not review, unless later runs no longer find it. */
function assertForReview(finding: StoredFinding): void {
  const why = whyNotForReview(finding);
  if (why !== undefined && finding.status !== 'gone') throw new DomainError('not_for_review', why);
}

/** Result of a confirmation. */
interface Confirmed {
  dispute: StoredDispute;
  isNew: boolean;
  /** Whether this request changed the decision on the finding. */
  isDecided: boolean;
}

/**
 * Opens the dispute of a finding, or returns the existing one, even if its days have become provisional since. Errors:
 * not_for_review, nothing_to_dispute, already_decided, already_disputed.
 */
async function openDispute(
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

/** Confirms a finding whose days are all in disputes already; false: the finding was decided before. */
async function joinDispute(
  inside: OrgDb,
  finding: StoredFinding,
  said: { notes: string | null; by: string },
): Promise<boolean> {
  if (finding.status !== 'open') return false;
  await recordDecision(inside, finding.id, { status: 'confirmed', by: said.by, reason: said.notes });
  return true;
}

/** A dispute with its days and its evidence, which never change. Error: not_found. */
export async function getWholeDispute(orgDb: OrgDb, id: string): Promise<WholeDispute> {
  const dispute = await findDispute(orgDb, id);
  const evidence = dispute && (await findDisputeEvidence(orgDb, id));
  if (!dispute || !evidence) throw disputeNotFound();
  return { dispute, evidence, days: await listDisputeDays(orgDb, id) };
}

export interface WholeDispute {
  dispute: StoredDispute;
  evidence: DisputeEvidence;
  days: Omit<FindingDay, 'probability'>[];
}

/** The uuid in a dispute's public id. Error not_found. */
export function uuidOfDispute(id: string): string {
  const uuid = findUuid('dsp', id);
  if (uuid === undefined) throw disputeNotFound();
  return uuid;
}

function disputeNotFound(): DomainError {
  return new DomainError('not_found', 'there is no dispute with this id');
}

/**
 * Resolves a dispute that is in no claim; a repeat changes nothing. Errors: not_found, already_resolved,
 * already_claimed.
 */
export async function resolveDispute(
  orgDb: OrgDb,
  id: string,
  { resolution, notes }: { resolution: string; notes: string | null },
  author: RequestAuthor,
): Promise<StoredDispute> {
  return orgDb.transaction(async (inside) => {
    const held = await lockDispute(inside, id);
    if (!held) throw disputeNotFound();
    const { dispute } = held;
    if (isResolvedSo(held, resolution)) return dispute;
    await resolveOpenDispute(inside, id, { resolution, notes, by: author.caller.keyId });
    const after = await findDispute(inside, id);
    await recordAction(
      inside,
      author,
      'dispute.resolved',
      { type: 'dispute', id: publicId('dsp', id) },
      { resolution, amount_cents: dispute.amountCents },
    );
    return after ?? dispute;
  });
}

/**
 * Whether the dispute already has this resolution; false: it is still open. Errors: already_resolved, already_claimed.
 */
function isResolvedSo({ dispute, claimStatus }: HeldDispute, resolution: string): boolean {
  if (dispute.status === 'resolved') {
    if (dispute.resolution === resolution) return true;
    throw new DomainError(
      'already_resolved',
      `it is resolved as ${dispute.resolution}; a resolved dispute does not change`,
    );
  }
  if (dispute.claimId !== null) throw inClaim(dispute, dispute.claimId, claimStatus);
  return false;
}

function inClaim(dispute: StoredDispute, claimId: string, status: HeldDispute['claimStatus']): DomainError {
  const claim = publicId('clm', claimId);
  return new DomainError(
    'already_claimed',
    dispute.status === 'open' || status === 'draft'
      ? `it is in the draft ${claim}: discard that one first (DELETE /api/v1/claims/${claim})`
      : `it is in the claim ${claim}, which is ${status}: record what the provider answers (PATCH /api/v1/claims/${claim}/status), and the end of the claim resolves it`,
  );
}
