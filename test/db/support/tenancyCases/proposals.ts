import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as proposals from '../../../../db/pricing/proposals.js';
import { PriceBook } from '../../../../domain/pricing/priceBook.js';
import { applyProposal, dismissProposal } from '../../../../usecases/pricing/decideProposal.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const AT_MICROS = 1_790_000_000_000_000n;
const NO_PRICES = PriceBook.from([], []);

const aProposal = (id: string, feed: string): proposals.NewPriceProposal => ({
  ...{ id, feed, source: 'litellm', provider: 'openai', model: `model of ${feed}`, kind: 'new' },
  rates: [
    { tier: 'standard', rateClass: 'input', before: null, after: 1n },
    { tier: 'standard', rateClass: 'output', before: null, after: 2n },
  ],
  terms: { rates: { input: 1n, output: 2n }, tiers: [], batchMultiplier: null },
  ...{ isJump: false, suspicions: [], retrievedOn: '2026-09-01', effectUntilMicros: AT_MICROS },
  ...{ calls: 1, currentPico: null, proposedPico: 3n },
});

const everything = { status: undefined, provider: undefined, model: undefined };

/** Functions of prices that feeds propose. */
export const PROPOSAL_CASES: Record<string, TenancyCase> = {
  storeProposals: async (db, { proposalFeed }) => {
    await proposals.storeProposals(db, proposalFeed, []);
  },
  listProposals: (db) => proposals.listProposals(db, everything, { limit: 10, offset: 0 }),
  countOpenProposals: (db) => proposals.countOpenProposals(db),
  lockProposal: (db, { proposalId }) =>
    db.transaction((inside) => proposals.lockProposal(inside, proposalId)),
  decideProposal: (db, { proposalId }) =>
    db.transaction((inside) =>
      proposals.decideProposal(inside, proposalId, { status: 'dismissed', reason: null, by: 'test' }),
    ),
  listCallTotals: (db) =>
    proposals.listCallTotals(db, { fromMicros: 0n, toMicros: 4_000_000_000_000_000n }, [200_000]),
  applyProposal: (db, { proposalId }) =>
    db.transaction((inside) =>
      applyProposal(
        inside,
        { id: proposalId, overrideId: randomUUID(), effectiveFrom: '2026-09-01', nowMicros: AT_MICROS },
        NO_PRICES,
        anAuthor('req-apply-proposal'),
      ),
    ),
  dismissProposal: (db, { proposalId }) =>
    db.transaction((inside) =>
      dismissProposal(inside, { id: proposalId, reason: null }, anAuthor('req-dismiss-proposal')),
    ),
};

export interface OwnedProposal {
  proposalId: string;
  proposalFeed: string;
}

/** Creates the data of the cases above: an open proposal. */
export async function makeProposal(db: OrgDb, marker: string): Promise<OwnedProposal> {
  const proposalId = randomUUID();
  await db.transaction((inside) => proposals.storeProposals(inside, marker, [aProposal(proposalId, marker)]));
  return { proposalId, proposalFeed: marker };
}
