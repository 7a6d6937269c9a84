import { rejectCredit, settleCredits } from '../../../../db/claims/decideCredits.js';
import { findCredits } from '../../../../db/claims/findCredits.js';
import { readTicketFacts } from '../../../../db/claims/readTicketFacts.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as credits from '../../../../db/queries/claimCredits.js';
import { storeClaim } from '../../../support/claims.js';
import { storeCredit } from '../../../support/credits.js';
import type { TenancyCase } from './tenancyCase.js';

const PROVIDER = 'openai';
const AT_MICROS = 1_772_323_200_000_000n;

/** What on later bills looks like the answer to a claim. */
export const CLAIM_CREDIT_CASES: Record<string, TenancyCase> = {
  listCreditsOf: (db, { creditedClaimId }) => credits.listCreditsOf(db, [creditedClaimId]),
  insertCredit: (db, { creditedClaimId, marker }) =>
    storeCredit(db, creditedClaimId, { cents: 1, description: marker }),
  decideOnCredits: (db, { creditId, marker }) =>
    credits.decideOnCredits(db, [creditId], { status: 'rejected', by: marker, atMicros: AT_MICROS }),
  listWatchedProviders: (db) => credits.listWatchedProviders(db, null),
  listWatchedClaims: (db) => credits.listWatchedClaims(db, PROVIDER),
  listCreditRows: (db) => credits.listCreditRows(db, { provider: PROVIDER, fromDay: '2020-01-01' }),
  listRestatedClaims: (db) => credits.listRestatedClaims(db, PROVIDER),
  recordBilledDays: (db, { draftClaimId }) => credits.recordBilledDays(db, draftClaimId),
  markEvidenceStale: (db, { creditedClaimId }) => credits.markEvidenceStale(db, creditedClaimId),
  findCredits: (db) => findCredits(db, { provider: null }),
  readTicketFacts: (db, { creditedClaimId }) => readTicketFacts(db, creditedClaimId),
  settleCredits: (db, { creditedClaimId, marker }) =>
    settleCredits(db, creditedClaimId, { creditCents: 1_000, by: marker, atMicros: AT_MICROS }),
  rejectCredit: (db, { creditedClaimId, creditId, marker }) =>
    db.transaction((inside) => rejectCredit(inside, { claimId: creditedClaimId, creditId, by: marker })),
};

export interface OwnedCredits {
  /** A claim under review, and a credit that is proposed for it. */
  creditedClaimId: string;
  creditId: string;
}

export async function makeCredits(db: OrgDb, marker: string): Promise<OwnedCredits> {
  const claim = await storeClaim(db, { notes: marker, by: marker, status: 'under_review' });
  return {
    creditedClaimId: claim.id,
    creditId: await storeCredit(db, claim.id, { cents: 1_000, description: marker }),
  };
}
