import {
  listCreditRows,
  listRestatedClaims,
  listWatchedProviders,
  lockWatchedClaims,
  markEvidenceStale,
  type RestatedClaim,
  type WatchedClaim,
} from '../../db/claims/claimCredits.js';
import {
  type CreditToStore,
  DECIDED_BY_RUN,
  decideOnCredits,
  insertCredit,
  listCreditsOf,
  lockClaim,
  type StoredClaim,
  type StoredCredit,
} from '../../db/claims/claims.js';
import { lockByName } from '../../db/locks.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/alerts.js';
import { DEFAULT_ACCOUNT } from '../../domain/billing/billedRow.js';
import { claimCents, dollarsText } from '../../domain/claims/financialSummary.js';
import { answeredBy, isTerminal, moveOfCredit } from '../../domain/claims/lifecycle.js';
import {
  type CreditableClaim,
  type CreditRow,
  type FoundCredit,
  matchCredits,
} from '../../domain/claims/matchCredits.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { dayOf } from '../../domain/period.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { claimNotFound, getWholeClaim, type WholeClaim } from './wholeClaim.js';

/**
 * Searches a provider's bills (null: all bills) for answers to filed claims: credits, and days whose bill has changed
 * since the evidence was frozen. Stores and publishes the found credits as proposals. A repeat changes nothing; a
 * proposal that the bill no longer supports is withdrawn. Each provider is one transaction. `checkpoint` is called
 * between two of them and throws to stop. `holds` is called in each, which changes nothing when it returns false.
 */
export async function findCredits(
  orgDb: OrgDb,
  given: { provider: string | null; checkpoint?: () => void; holds?: (inside: OrgDb) => Promise<boolean> },
): Promise<void> {
  for (const { provider, filedFromMicros } of await listWatchedProviders(orgDb, given.provider)) {
    given.checkpoint?.();
    await orgDb.transaction(async (inside) => {
      if (given.holds && !(await given.holds(inside))) return;
      await lockByName(inside, 'claimCredits', JSON.stringify([inside.orgId, provider]));
      const restated = await listRestatedClaims(inside, provider);
      const rows = await listCreditRows(inside, { provider, fromDay: dayOf(filedFromMicros) });
      const watched = await lockWatchedClaims(inside, provider);
      for (const one of restated) await restate(inside, one);
      await withdrawRestored(inside, watched, restated);
      await matchRows(inside, watched, rows);
    });
  }
}

/** Locks and returns the claim while it still waits for an answer; else undefined. */
async function lockOpenClaim(inside: OrgDb, id: string): Promise<StoredClaim | undefined> {
  const claim = await lockClaim(inside, id);
  return claim && claim.status !== 'draft' && !isTerminal(claim.status) ? claim : undefined;
}

async function restate(inside: OrgDb, restated: RestatedClaim): Promise<void> {
  const claim = await lockOpenClaim(inside, restated.claimId);
  if (!claim) return;
  if (claim.evidenceStaleAtMicros === null) {
    await markEvidenceStale(inside, claim.id);
    await noticeStale(inside, claim, restated);
  }
  const known = (await listCreditsOf(inside, [claim.id])).filter(
    ({ source, decidedBy }) => source === 'restatement' && decidedBy !== DECIDED_BY_RUN,
  );
  const knownPico = known.reduce((sum, credit) => sum + picoOf(credit), 0n);
  if (restated.fallPico === knownPico) return;
  // The proposed amount has changed, so the proposal is replaced. A credit that somebody decided on is not proposed
  // again.
  await withdraw(
    inside,
    known.filter(({ status }) => status === 'proposed'),
  );
  const decided = known.filter(({ status }) => status !== 'proposed');
  const leftPico = restated.fallPico - decided.reduce((sum, credit) => sum + picoOf(credit), 0n);
  if (claimCents(leftPico) <= 0n) return;
  await propose(inside, claim, 'restatement', [
    {
      sourceKey: `restatement:${claim.id}:${decimalFromPico(restated.fallPico)}`,
      day: restated.lastDay,
      amountPico: leftPico,
      cents: claimCents(leftPico),
      description: `${daysText(restated)} billed $${decimalFromPico(leftPico)} less than when the evidence was frozen`,
    },
  ]);
}

const daysText = ({ days, firstDay, lastDay }: RestatedClaim): string =>
  days === 1 ? `${firstDay} is` : `${days} days from ${firstDay} to ${lastDay} are`;

const picoOf = ({ rows }: StoredCredit): Pico => rows.reduce((sum, { amountPico }) => sum + amountPico, 0n);

async function noticeStale(inside: OrgDb, claim: StoredClaim, restated: RestatedClaim): Promise<void> {
  const id = publicId('clm', claim.id);
  await recordNotice(inside, {
    code: 'claim_evidence_stale',
    key: `claim_evidence_stale:${id}`,
    subject: { type: 'claim', id },
    severity: 'medium',
    message: `The provider has restated days of the claim ${id} since its evidence was frozen: ${daysText(restated)} billed otherwise.`,
    details: {
      days: restated.days,
      first_day: restated.firstDay,
      last_day: restated.lastDay,
      billed_less_usd: decimalFromPico(restated.fallPico),
    },
    provider: claim.provider,
  });
}

/** Withdraws proposals of claims whose days are all billed as before again. */
async function withdrawRestored(
  inside: OrgDb,
  watched: readonly WatchedClaim[],
  restated: readonly RestatedClaim[],
): Promise<void> {
  const still = new Set(restated.map(({ claimId }) => claimId));
  const credits = await listCreditsOf(inside, idsOf(watched));
  await withdraw(
    inside,
    credits.filter(
      ({ claimId, source, status }) =>
        source === 'restatement' && status === 'proposed' && !still.has(claimId),
    ),
  );
}

async function matchRows(
  inside: OrgDb,
  watched: readonly WatchedClaim[],
  rows: readonly CreditRow[],
): Promise<void> {
  const keys = new Set(rows.map(({ key }) => key));
  const before = await listCreditsOf(inside, idsOf(watched));
  const gone = before.filter(
    ({ source, status, rows: of }) =>
      source === 'credit_row' && status === 'proposed' && of.some(({ sourceKey }) => !keys.has(sourceKey)),
  );
  await withdraw(inside, gone);
  const credits = await listCreditsOf(inside, idsOf(watched));
  const found = matchCredits(
    watched.map((claim) => creditable(claim, credits)),
    rows.filter(({ key }) => !isTaken(credits, key)),
    (claimId, key) => isRefused(credits, claimId, key),
  );
  for (const one of [...found].sort((a, b) => (a.claimId < b.claimId ? -1 : 1)))
    await storeFound(inside, one);
}

const idsOf = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);

const isTaken = (credits: readonly StoredCredit[], key: string): boolean =>
  credits.some(({ status, rows }) => status !== 'rejected' && rows.some((row) => row.sourceKey === key));

/** Whether a person rejected the credit for this claim. A credit that a run withdrew may be found again. */
const isRefused = (credits: readonly StoredCredit[], claimId: string, key: string): boolean =>
  credits.some(
    (credit) =>
      credit.claimId === claimId &&
      credit.status === 'rejected' &&
      credit.decidedBy !== DECIDED_BY_RUN &&
      credit.rows.some((row) => row.sourceKey === key),
  );

function creditable(claim: WatchedClaim, credits: readonly StoredCredit[]): CreditableClaim {
  const known = credits
    .filter(({ claimId, status }) => claimId === claim.id && status !== 'rejected')
    .reduce((sum, { cents }) => sum + cents, 0);
  const asked = claim.creditedCents ?? claim.recoverableCents;
  return {
    id: claim.id,
    // Rows without an account name may have one on later bills.
    accountId: claim.accountId === DEFAULT_ACCOUNT ? '' : claim.accountId,
    submittedAtMicros: claim.submittedAtMicros,
    periodStart: claim.periodStart,
    periodEnd: claim.periodEnd,
    wantedCents: BigInt(Math.max(0, asked - known)),
    isOpen: claim.creditedCents === null,
    tickets: [
      publicId('clm', claim.id),
      ...(claim.externalTicketId === null ? [] : [claim.externalTicketId]),
    ],
  };
}

async function storeFound(inside: OrgDb, { claimId, rows }: FoundCredit): Promise<void> {
  const claim = await lockClaim(inside, claimId);
  if (!claim) return;
  const parts = rows.map(({ row, cents }) => ({
    sourceKey: row.key,
    day: row.day,
    amountPico: row.amountPico,
    cents,
    description: row.description,
  }));
  if (!isTerminal(claim.status)) await propose(inside, claim, 'credit_row', parts);
  else if (claim.status !== 'denied')
    // The credit of this claim was already recorded, so the found row is accepted as that credit.
    await insertCredit(inside, {
      ...{ id: newUuid(await readClock(inside)), claimId, source: 'credit_row', rows: parts },
      isAccepted: true,
    });
}

async function propose(
  inside: OrgDb,
  claim: StoredClaim,
  source: CreditToStore['source'],
  rows: CreditToStore['rows'],
): Promise<void> {
  const id = newUuid(await readClock(inside));
  await insertCredit(inside, { id, claimId: claim.id, source, rows, isAccepted: false });
  const cents = Number(rows.reduce((sum, row) => sum + row.cents, 0n));
  const claimId = publicId('clm', claim.id);
  const creditId = publicId('crd', id);
  const day = rows.map((row) => row.day).reduce((a, b) => (a > b ? a : b));
  await recordNotice(inside, {
    code: 'claim_credit_proposed',
    key: `claim_credit_proposed:${creditId}`,
    subject: { type: 'claim', id: claimId },
    severity: 'medium',
    message: `${dollarsText(BigInt(cents))} on the bill of ${day} looks like the answer to the claim ${claimId}, which asks for ${dollarsText(BigInt(claim.recoverableCents))}.`,
    details: {
      credit_id: creditId,
      source,
      day,
      amount_cents: cents,
      total_recoverable_cents: claim.recoverableCents,
      suggested_status: moveOfCredit(claim, cents)?.status ?? null,
    },
    provider: claim.provider,
  });
}

async function withdraw(inside: OrgDb, credits: readonly StoredCredit[]): Promise<void> {
  if (credits.length === 0) return;
  await decideOnCredits(inside, idsOf(credits), {
    status: 'rejected',
    by: DECIDED_BY_RUN,
    atMicros: await readClock(inside),
  });
}

/**
 * Decides on a claim's proposed credits in the transaction that ends the claim: those that sum to the credited amount
 * are accepted. The others are rejected and may answer another claim. `creditCents` is null where nothing was credited.
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

/**
 * Rejects a proposed credit for a claim; it is not proposed for this claim again. A repeat changes nothing. Errors:
 * not_found; already_resolved where the claim was resolved with it.
 */
export async function rejectCredit(
  orgDb: OrgDb,
  { claimId, creditId }: { claimId: string; creditId: string },
  author: RequestAuthor,
): Promise<WholeClaim> {
  return orgDb.transaction(async (inside) => {
    const claim = await lockClaim(inside, claimId);
    if (!claim) throw claimNotFound();
    const credits = await listCreditsOf(inside, [claim.id]);
    const credit = credits.find(({ id }) => id === creditId);
    if (!credit) throw new DomainError('not_found', 'no credit with this id was proposed for the claim');
    if (credit.status === 'accepted')
      throw new DomainError('already_resolved', 'the claim was resolved with this credit');
    const decision = {
      status: 'rejected' as const,
      by: author.caller.keyId,
      atMicros: await readClock(inside),
    };
    await decideOnCredits(inside, [credit.id], decision);
    const whole = await getWholeClaim(inside, claimId);
    await recordAction(
      inside,
      author,
      'claim.credit_rejected',
      { type: 'claim', id: publicId('clm', claimId) },
      { credit_id: publicId('crd', creditId), source: credit.source, amount_cents: credit.cents },
    );
    return whole;
  });
}
