import { randomUUID } from 'node:crypto';
import * as disputes from '../../../../db/claims/disputes.js';
import {
  listBrokenPolicies,
  sumExplainedDays,
  sumFindingDays,
  sumFindings,
} from '../../../../db/claims/financialSums.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as findings from '../../../../db/reconciliation/findings.js';
import { publicId } from '../../../../domain/ids.js';
import { confirmItem, dismissItem, getWholeDispute } from '../../../../usecases/claims/decideFindings.js';
import { readFinancialSummary } from '../../../../usecases/claims/financialSummary.js';
import { readReviewQueue } from '../../../../usecases/claims/reviewQueue.js';
import { getWholeFinding } from '../../../../usecases/reconciliation/readRuns.js';
import { aFindingDay, storeFindings } from '../../../support/findings.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const AT_MICROS = 1_772_323_200_000_000n;
const PAGE = { limit: 10, offset: 0 };
const DAY = aFindingDay('2026-03-10', 5n * 10n ** 12n);

const aDispute = (openedBy: string): disputes.NewDispute => ({
  id: randomUUID(),
  days: [DAY],
  amountCents: 500n,
  reason: openedBy,
  tier: 'HIGH',
  notes: openedBy,
  openedBy,
});

/** Functions of findings and the decisions on them. */
export const FINANCIAL_CASES: Record<string, TenancyCase> = {
  listFindings: (db) => findings.listFindings(db, {}, PAGE),
  findFinding: (db, { findingId }) => findings.findFinding(db, findingId),
  lockFinding: (db, { findingId }) => findings.lockFinding(db, findingId),
  findFindingEvidence: (db, { findingId }) => findings.findFindingEvidence(db, findingId),
  listFindingDays: (db, { findingId }) => findings.listFindingDays(db, findingId),
  getWholeFinding: (db, { findingId }) => getWholeFinding(db, findingId),
  recordDecision: (db, { findingId, marker }) =>
    findings.recordDecision(db, findingId, { status: 'dismissed', by: marker, reason: null }),
  sumFindings: (db) => sumFindings(db, {}),
  sumFindingDays: (db) => sumFindingDays(db, { fromDay: null, toDay: null }),
  sumExplainedDays: (db) => sumExplainedDays(db, { fromDay: '2020-01-01', toDay: '2100-01-01' }),
  listBrokenPolicies: (db) => listBrokenPolicies(db),
  listDisputes: (db) => disputes.listDisputes(db, {}, PAGE),
  findDispute: (db, { disputeId }) => disputes.findDispute(db, disputeId),
  findDisputeEvidence: (db, { disputeId }) => disputes.findDisputeEvidence(db, disputeId),
  listDisputeDays: (db, { disputeId }) => disputes.listDisputeDays(db, disputeId),
  listDisputesOf: (db, { disputedId }) => disputes.listDisputesOf(db, disputedId),
  listUndisputedDays: (db, { findingId }) => disputes.listUndisputedDays(db, findingId),
  findRivalDispute: (db, { rivalId }) => disputes.findRivalDispute(db, rivalId),
  insertDispute: (db, { findingId, marker }) =>
    db.transaction((inside) => disputes.insertDispute(inside, findingId, aDispute(marker))),
  confirmItem: (db, { findingId, marker }) =>
    confirmItem(db, publicId('fnd', findingId), { notes: null, reopen: false }, anAuthor(marker), AT_MICROS),
  dismissItem: (db, { findingId, marker }) =>
    dismissItem(db, publicId('fnd', findingId), marker, anAuthor(marker)),
  getWholeDispute: (db, { disputeId }) => getWholeDispute(db, disputeId),
  readReviewQueue: (db) =>
    readReviewQueue(
      db,
      { status: 'open', direction: 'overcharge', provider: undefined, minImpactPico: undefined },
      { ...PAGE, after: undefined },
    ),
  readFinancialSummary: (db) =>
    readFinancialSummary(db, { fromMicros: undefined, toMicros: undefined }, AT_MICROS),
};

export interface OwnedFindings {
  /** A finding without a decision, and one with a dispute. */
  findingId: string;
  disputedId: string;
  disputeId: string;
  /** A finding over the days of a dispute whose finding is gone. */
  rivalId: string;
}

/** Creates the data of the cases above, in a run of the organization. */
export async function makeFindings(db: OrgDb, marker: string): Promise<OwnedFindings> {
  const of = { accountId: marker, days: [DAY], reason: marker };
  const [findingId = '', disputedId = '', goneId = '', rivalId = ''] = await storeFindings(db, [
    { ...of, model: 'm-1' },
    { ...of, model: 'm-2', status: 'confirmed' },
    { ...of, model: 'm-3', status: 'gone' },
    { ...of, model: 'm-3', kind: 'list_rate_mismatch' },
  ]);
  const open = (id: string) =>
    db.transaction((inside) => disputes.insertDispute(inside, id, aDispute(marker)));
  const dispute = await open(disputedId);
  await open(goneId);
  return { findingId, disputedId, disputeId: dispute?.id ?? '', rivalId };
}
