import { randomUUID } from 'node:crypto';
import { listAskedBack } from '../../../../db/billing/billCoverage.js';
import * as claimRows from '../../../../db/claims/claimRows.js';
import { findClaim } from '../../../../db/claims/claims.js';
import {
  insertDispute,
  lockDispute,
  resolveDisputesOfClaim,
  resolveOpenDispute,
  streamDisputes,
} from '../../../../db/claims/disputes.js';
import * as drafts from '../../../../db/claims/draftDisputes.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { listDisputedDays } from '../../../../db/reconciliation/findings.js';
import { recordRunDrafts } from '../../../../db/reconciliation/gapRuns.js';
import { type DraftClaim, netDraft } from '../../../../domain/claims/draft.js';
import { publicId } from '../../../../domain/ids.js';
import { microsFromDate } from '../../../../domain/period.js';
import { resolveDispute } from '../../../../usecases/claims/decideFindings.js';
import * as draftClaims from '../../../../usecases/claims/draftClaims.js';
import { draftConfirmed, insertDraft, replaceDraft } from '../../../../usecases/claims/draftClaims.js';
import type { FrozenEvidence } from '../../../../usecases/claims/freezeEvidence.js';
import { testInvoicePages } from '../../../support/blobs.js';
import { aFindingDay, storeFindings } from '../../../support/findings.js';
import type { Owned } from '../ownedThings.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const USD = 10n ** 12n;
const DAY = aFindingDay('2026-05-10', 5n * USD);
const FROZEN = {
  evidence: {},
  sha256: '0'.repeat(64),
  files: [],
  invoiceIds: [],
} as unknown as FrozenEvidence;

const newClaim = (draft: DraftClaim): claimRows.NewClaim => ({
  ...{ draft, evidence: FROZEN, next: undefined, atMicros: microsFromDate(new Date()) },
});

/** Dependencies of freezing evidence, with only the database behind them. */
const depsOf = ({ prices }: Owned): draftClaims.DraftDeps => ({
  nowMicros: () => microsFromDate(new Date()),
  prices: { freshOf: async () => prices },
  pages: { locateRecords: async function* () {}, askedFor: () => undefined },
  ...testInvoicePages(),
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
  createClaim: async (db, of) => {
    const given = { disputeIds: [of.openDisputeId], notes: null };
    const { claim } = await draftClaims.createClaim(db, given, anAuthor('test'), depsOf(of));
    return claim.recoverableCents;
  },
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
  insertClaim: (db, { openDisputeId }) =>
    db.transaction(async (inside) => {
      const draft = await draftOver(inside, openDisputeId);
      await claimRows.insertClaim(inside, { ...newClaim(draft), by: 'test', notes: null });
    }),
  updateDraft: (db, { draftId, draftedDisputeId }) =>
    db.transaction(async (inside) => {
      await claimRows.updateDraft(inside, newClaim(await draftOver(inside, draftedDisputeId, draftId)));
    }),
  insertClaimParts: (db, { draftId, openDisputeId }) =>
    db.transaction(async (inside) => {
      await claimRows.insertClaimParts(inside, await draftOver(inside, openDisputeId, draftId));
    }),
  mergeDrafts: async (db, of) => {
    const given = { intoId: of.draftId, otherIds: [of.otherDraftId] };
    const { claim } = await draftClaims.mergeDrafts(db, given, anAuthor('test'), depsOf(of));
    return claim.recoverableCents;
  },
  discardDraft: (db, { draftId }) => draftClaims.discardDraft(db, draftId, anAuthor('test')),
  draftConfirmed: async (db, of) => {
    const { claims } = await draftConfirmed(db, { provider: null, by: 'test' }, depsOf(of));
    return claims.map(({ recoverableCents }) => recoverableCents);
  },
  recordRunDrafts: async (db, { openRunId, draftedBy }) => {
    await db.run(`update gap_runs set result = '{}' where org_id = $1 and id = $2::uuid`, [
      db.orgId,
      openRunId,
    ]);
    await recordRunDrafts(db, openRunId, { by: draftedBy, withheld: [] });
  },
  lockDispute: (db, { openDisputeId }) => db.transaction((inside) => lockDispute(inside, openDisputeId)),
  listDisputedDays: (db, { marker }) =>
    listDisputedDays(db, { provider: 'openai', accountId: marker }, [DAY.day]),
  resolveOpenDispute: (db, { openDisputeId }) =>
    resolveOpenDispute(db, openDisputeId, { resolution: 'other', notes: null, by: 'test' }),
  resolveDispute: (db, { openDisputeId, marker }) =>
    resolveDispute(db, openDisputeId, { resolution: 'other', notes: null }, anAuthor(marker)),
  resolveDisputesOfClaim: (db, { draftId }) =>
    resolveDisputesOfClaim(db, draftId, { resolution: 'other', notes: null, by: 'test' }),
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

/** Creates the data of the cases above, with an undercharged day. */
export async function makeDrafts(db: OrgDb, marker: string): Promise<OwnedDrafts> {
  const of = { accountId: marker, days: [DAY], cause: marker, status: 'confirmed' } as const;
  const findings = await storeFindings(db, [
    { ...of, model: 'd-1' },
    { ...of, model: 'd-2' },
    { ...of, model: 'd-3' },
    {
      ...{ accountId: marker, cause: marker, direction: 'undercharge', model: 'd-4', claimable: false },
      days: [aFindingDay('2026-05-11', -USD)],
    },
  ]);
  const disputes: string[] = [];
  for (const id of findings.slice(0, 3)) {
    const opened = {
      amountCents: 500n,
      reason: marker,
      tier: 'HIGH',
      notes: marker,
      openedBy: marker,
    } as const;
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
