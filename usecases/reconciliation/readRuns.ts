/**
 * Published results of runs as the API shows them, each read in one snapshot, because a run may publish between two
 * reads.
 */
import { listComparedInvoices, listMatchInvoices } from '../../db/invoices/comparedInvoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type FindingEvidence,
  findFinding,
  findFindingEvidence,
  listFindingDays,
  type StoredFinding,
} from '../../db/reconciliation/findings.js';
import {
  countPublishedBuckets,
  findLastBilledMonth,
  listMatchDisputes,
  listMatches,
  listMatchFindings,
  listPublishedBuckets,
  type MatchFilter,
  sumMatches,
  sumMonth,
} from '../../db/reconciliation/gapExplorer.js';
import { findWeightSet, listOutcomes, sumOutcomes } from '../../db/reconciliation/weightSets.js';
import { nextMonth, previousMonth } from '../../domain/billing/periods.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf } from '../../domain/period.js';
import type { FindingDay } from '../../domain/reconciliation/engine/index.js';

import { summarizeMonth } from '../../domain/reconciliation/summary.js';

/** A page of the buckets of a window, and their number before the page's filter. */
export function exploreGaps(
  orgDb: OrgDb,
  window: Parameters<typeof countPublishedBuckets>[1],
  filter: Parameters<typeof listPublishedBuckets>[2],
  page: Parameters<typeof listPublishedBuckets>[3],
) {
  return orgDb.transaction(
    async (inside) => ({
      counts: await countPublishedBuckets(inside, window),
      buckets: await listPublishedBuckets(inside, window, filter, page),
      invoices: await listComparedInvoices(inside, window),
    }),
    'repeatable read',
  );
}

/** By grade: the last month with billing data before a day, else the previous month. */
export async function readMonthSummary(orgDb: OrgDb, today: string) {
  const { firstDay, totals } = await orgDb.transaction(async (inside) => {
    const month = (await findLastBilledMonth(inside, today)) ?? previousMonth(today);
    return { firstDay: month, totals: await sumMonth(inside, month, nextMonth(month)) };
  }, 'repeatable read');
  return summarizeMonth(firstDay.slice(0, 7), totals.billedPico, totals.matchedByGrade);
}

/** A page of matches, each with its explanation, and the totals of all matches of the filter. */
export function readMatches(orgDb: OrgDb, filter: MatchFilter, page: Parameters<typeof listMatches>[2]) {
  return orgDb.transaction(async (inside) => {
    const records = await listMatches(inside, filter, page);
    const days = records.map((record) => ({ ...record, day: dayOf(record.bucketMicros) }));
    const findings = await listMatchFindings(inside, days);
    const disputes = await listMatchDisputes(inside, days);
    const invoices = await listMatchInvoices(inside, days);
    const matches = records.map((record, at) => ({
      ...{ record, findings: findings[at] ?? [], disputeId: disputes[at] ?? null },
      invoice: invoices[at] ?? null,
    }));
    return { matches, totals: await sumMatches(inside, filter) };
  }, 'repeatable read');
}

/** The newest weights, the sum of the outcomes that they were computed from, and a page of these outcomes. */
export function readWeights(orgDb: OrgDb, page: { limit: number; offset: number }) {
  return orgDb.transaction(
    async (inside) => ({
      stored: await findWeightSet(inside),
      sum: await sumOutcomes(inside),
      outcomes: await listOutcomes(inside, page),
    }),
    'repeatable read',
  );
}

export interface WholeFinding {
  finding: StoredFinding;
  evidence: FindingEvidence;
  days: readonly FindingDay[];
}

/** The finding. Error: not_found, also for an undefined id. */
export async function getWholeFinding(orgDb: OrgDb, id: string | undefined): Promise<WholeFinding> {
  const whole = await orgDb.transaction(async (inside) => {
    const finding = id === undefined ? undefined : await findFinding(inside, id);
    const evidence = finding && (await findFindingEvidence(inside, finding.id));
    return finding && evidence && { finding, evidence, days: await listFindingDays(inside, finding.id) };
  }, 'repeatable read');
  if (!whole) throw new DomainError('not_found', 'there is no finding with this id');
  return whole;
}
