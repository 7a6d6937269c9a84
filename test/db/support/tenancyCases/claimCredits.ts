import * as credits from '../../../../db/claims/claimCredits.js';
import * as claims from '../../../../db/claims/claims.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { draftClaimTicket, readTicketFacts } from '../../../../usecases/claims/draftClaimTicket.js';
import { findCredits, rejectCredit, settleCredits } from '../../../../usecases/claims/findCredits.js';
import { storeClaim } from '../../../support/claims.js';
import { storeCredit } from '../../../support/credits.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const PROVIDER = 'openai';
const AT_MICROS = 1_772_323_200_000_000n;

/** Functions that find answers to claims on later bills. */
export const CLAIM_CREDIT_CASES: Record<string, TenancyCase> = {
  listCreditsOf: (db, { creditedClaimId }) => claims.listCreditsOf(db, [creditedClaimId]),
  insertCredit: (db, { creditedClaimId, marker }) =>
    storeCredit(db, creditedClaimId, { cents: 1, description: marker }),
  decideOnCredits: (db, { creditId, marker }) =>
    claims.decideOnCredits(db, [creditId], { status: 'rejected', by: marker, atMicros: AT_MICROS }),
  listWatchedProviders: (db) => credits.listWatchedProviders(db, null),
  lockWatchedClaims: (db) => credits.lockWatchedClaims(db, PROVIDER),
  listCreditRows: (db) => credits.listCreditRows(db, { provider: PROVIDER, fromDay: '2020-01-01' }),
  listRestatedClaims: (db, { restatedProvider }) => credits.listRestatedClaims(db, restatedProvider),
  recordBilledDays: (db, { billedDraftId }) => credits.recordBilledDays(db, billedDraftId),
  markEvidenceStale: (db, { creditedClaimId }) => credits.markEvidenceStale(db, creditedClaimId),
  findCredits: (db) => findCredits(db, { provider: null }),
  draftClaimTicket: (db, { creditedClaimId, marker }) =>
    draftClaimTicket(db, creditedClaimId, anAuthor(marker)),
  readTicketFacts: (db, { creditedClaimId }) => readTicketFacts(db, creditedClaimId),
  settleCredits: (db, { creditedClaimId, marker }) =>
    settleCredits(db, creditedClaimId, { creditCents: 1_000, by: marker, atMicros: AT_MICROS }),
  rejectCredit: (db, { creditedClaimId, creditId, marker }) =>
    rejectCredit(db, { claimId: creditedClaimId, creditId }, anAuthor(marker)),
};

export interface OwnedCredits {
  /** A claim under review, and a credit that is proposed for it. */
  creditedClaimId: string;
  creditId: string;
  /** A draft over a day that a run has published. */
  billedDraftId: string;
  /** Provider of a filed claim over a day whose bill has changed since it was frozen. */
  restatedProvider: string;
}

export async function makeCredits(db: OrgDb, marker: string): Promise<OwnedCredits> {
  const of = { notes: marker, by: marker };
  const claim = await storeClaim(db, { ...of, status: 'under_review' });
  const draft = await storeClaim(db, of);
  const restated = await storeClaim(db, { ...of, status: 'under_review' });
  const provider = await putOnPublishedDay(db, [draft.id, restated.id]);
  return {
    creditedClaimId: claim.id,
    creditId: await storeCredit(db, claim.id, { cents: 1_000, description: marker }),
    billedDraftId: draft.id,
    restatedProvider: provider ?? PROVIDER,
  };
}

/** Moves claims to a day of a series that a run has published, where there is one; its provider. */
async function putOnPublishedDay(db: OrgDb, claimIds: readonly string[]): Promise<string | undefined> {
  const [series] = await db.rows<{ provider: string; account: string; day: string; model: string }>(
    `select p.provider, p.provider_account_id as account, p.day, b.model from gap_published p
     join gap_buckets b on b.org_id = p.org_id and b.run_id = p.run_id and b.provider = p.provider
       and b.provider_account_id = p.provider_account_id and b.width = 'day' and b.bucket = p.day::timestamptz
     where p.org_id = $1 order by p.provider, p.day, b.model limit 1`,
    [db.orgId],
  );
  if (!series) return undefined;
  const { provider, account, day, model } = series;
  for (const [at, id] of claimIds.entries()) {
    await db.run(
      `update dispute_days d set provider = $3, provider_account_id = $4, day = $5::date, model = $6, variant = 'tenancy ' || $7::text
       from disputes p where d.org_id = $1 and p.org_id = $1 and p.id = d.dispute_id and p.claim_id = $2::uuid`,
      [db.orgId, id, provider, account, day, model, at],
    );
    await db.run(
      `update claims set provider = $3, provider_account_id = $4, billed_days = $5::jsonb where org_id = $1 and id = $2::uuid`,
      [db.orgId, id, provider, account, at === 0 ? '[]' : JSON.stringify([{ model, day, usd: '987654321' }])],
    );
  }
  return provider;
}
