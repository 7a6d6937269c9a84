import { randomUUID } from 'node:crypto';
import * as draftClaims from '../../../../db/claims/draftClaims.js';
import { draftConfirmed } from '../../../../db/claims/draftConfirmed.js';
import type { FrozenEvidence } from '../../../../db/claims/freezeEvidence.js';
import { insertDraft, replaceDraft } from '../../../../db/claims/storeDraft.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { listAskedBack } from '../../../../db/queries/askedBack.js';
import { findClaim } from '../../../../db/queries/claims.js';
import { streamDisputes } from '../../../../db/queries/disputeExport.js';
import { insertDispute } from '../../../../db/queries/disputes.js';
import * as drafts from '../../../../db/queries/draftDisputes.js';
import { lockDispute, resolveDispute } from '../../../../db/queries/resolveDispute.js';
import { recordRunDrafts } from '../../../../db/queries/runDrafts.js';
import { type DraftClaim, netDraft } from '../../../../domain/claims/draft.js';
import { publicId } from '../../../../domain/ids.js';
import { microsFromDate } from '../../../../domain/period.js';
import { aFindingDay, storeFindings } from '../../../support/findings.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const USD = 10n ** 12n;
const DAY = aFindingDay('2026-05-10', 5n * USD);
const FROZEN = { evidence: {}, sha256: '0'.repeat(64), files: [] } as unknown as FrozenEvidence;

/** What freezes evidence, with nothing behind it but the database. */
const depsOf = ({ prices }: Owned): draftClaims.DraftDeps => ({
  nowMicros: () => microsFromDate(new Date()),
  prices: { freshOf: async () => prices },
  pages: { locateRecords: async function* () {}, askedFor: () => undefined },
});

/** The claim over a dispute, as far as the handle sees it. */
export async function draftOver(
  db: OrgDb,
  disputeId: string,
  id: string = randomUUID(),
): Promise<DraftClaim> {
  const disputes = await drafts.loadDraftDisputes(db, [disputeId]);
  const draft = netDraft(id, { disputes, undercharges: [] });
  if (!draft) throw new Error('the dispute is over something');
  return draft;
}

/** Disputes that are claimed and resolved, and drafts of claims. */
export const DRAFT_CASES: Record<string, TenancyCase> = {
  listClaimable: (db, { openDisputeId }) => drafts.listClaimable(db, [openDisputeId]),
  lockClaimable: (db, { openDisputeId }) => drafts.lockClaimable(db, [openDisputeId]),
  listDraftableAccounts: (db) => drafts.listDraftableAccounts(db, null),
  loadDraftDisputes: (db, { openDisputeId }) => drafts.loadDraftDisputes(db, [openDisputeId]),
  listNettable: (db, { marker }) =>
    drafts.listNettable(db, { provider: 'openai', accountId: marker }, ['2026-05']),
  createClaim: (db, of) =>
    db.transaction(async (inside) => {
      const given = { disputeIds: [of.openDisputeId], by: 'test', notes: null };
      return (await draftClaims.createClaim(inside, given, depsOf(of))).recoverableCents;
    }),
  storeNewClaim: (db, of) =>
    db.transaction(async (inside) => {
      const draft = await draftOver(inside, of.openDisputeId);
      const said = { by: 'test', notes: null };
      return (await draftClaims.storeNewClaim(inside, draft, said, depsOf(of))).recoverableCents;
    }),
  insertDraft: (db, { openDisputeId }) =>
    db.transaction(async (inside) => {
      const said = { by: 'test', notes: null };
      await insertDraft(inside, await draftOver(inside, openDisputeId), FROZEN, said);
    }),
  replaceDraft: (db, { draftId, draftedDisputeId }) =>
    db.transaction(async (inside) => {
      const before = await findClaim(inside, draftId);
      if (!before) return;
      await replaceDraft(inside, before, await draftOver(inside, draftedDisputeId, draftId), FROZEN, 'test');
    }),
  mergeDrafts: (db, of) =>
    db.transaction(async (inside) => {
      const given = { intoId: of.draftId, otherIds: [of.otherDraftId], by: 'test' };
      return (await draftClaims.mergeDrafts(inside, given, depsOf(of))).recoverableCents;
    }),
  discardDraft: (db, { draftId }) => db.transaction((inside) => draftClaims.discardDraft(inside, draftId)),
  draftConfirmed: async (db, of) => {
    const { claims } = await draftConfirmed(db, { provider: null, by: 'test' }, depsOf(of));
    return claims.map(({ recoverableCents }) => recoverableCents);
  },
  recordRunDrafts: (db, { runId, draftedBy }) => recordRunDrafts(db, runId, { by: draftedBy, withheld: [] }),
  lockDispute: (db, { openDisputeId }) => db.transaction((inside) => lockDispute(inside, openDisputeId)),
  resolveDispute: (db, { openDisputeId }) =>
    resolveDispute(db, openDisputeId, { resolution: 'other', notes: null, by: 'test' }),
  listAskedBack: (db) => listAskedBack(db, '2026-05'),
  streamDisputes: async (db) => {
    const pages = [];
    for await (const page of streamDisputes(db, undefined)) pages.push(page);
    return pages;
  },
};

export interface OwnedDrafts {
  /** A dispute in no claim, which a run would draft. */
  openDisputeId: string;
  /** Two drafts of the same account, and the dispute of the first. */
  draftId: string;
  otherDraftId: string;
  draftedDisputeId: string;
  /** Who made them. */
  draftedBy: string;
}

/** Makes what the cases above ask for, with a day that was charged too little. */
export async function makeDrafts(db: OrgDb, marker: string): Promise<OwnedDrafts> {
  const of = { accountId: marker, days: [DAY], reason: marker, status: 'confirmed' } as const;
  const findings = await storeFindings(db, [
    { ...of, model: 'd-1' },
    { ...of, model: 'd-2' },
    { ...of, model: 'd-3' },
    {
      ...{ accountId: marker, reason: marker, direction: 'undercharge', model: 'd-4', claimable: false },
      days: [aFindingDay('2026-05-11', -USD)],
    },
  ]);
  const disputes: string[] = [];
  for (const id of findings.slice(0, 3)) {
    const opened = { amountCents: 500n, tier: 'HIGH', notes: marker, openedBy: marker } as const;
    const dispute = await db.transaction((inside) =>
      insertDispute(inside, id, { id: randomUUID(), days: [DAY], ...opened }),
    );
    disputes.push(dispute?.id ?? '');
  }
  const [openDisputeId = '', draftedDisputeId = '', other = ''] = disputes;
  const draftedBy = publicId('run', randomUUID());
  const store = (disputeId: string) =>
    db.transaction(async (inside) => {
      const draft = await draftOver(inside, disputeId);
      return (await insertDraft(inside, draft, FROZEN, { by: draftedBy, notes: marker })).id;
    });
  const draftId = await store(draftedDisputeId);
  const otherDraftId = await store(other);
  return { openDisputeId, draftId, otherDraftId, draftedDisputeId, draftedBy };
}
