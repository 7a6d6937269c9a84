import { listObservedSince } from '../../db/events/observedCalls.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type BucketGroup,
  type CoverageGroup,
  type CoverageQuery,
  listBilledKeyDays,
  listCoverage,
  listObservedKeyDays,
} from '../../db/reconciliation/coverage.js';
import { compare } from '../../domain/compare.js';
import {
  addCoverage,
  type CoverageFigures,
  coverageByKey,
  noCoverage,
} from '../../domain/reconciliation/coverage.js';

/** Groups in order, with their sums. */
export interface Coverage {
  groups: CoverageGroup[];
  totals: CoverageFigures;
  /** Days of all groups together. */
  days: number;
}

/** Coverage of a half-open window of days: by day newest first, else most billed dollars first. */
export async function readCoverage(
  orgDb: OrgDb,
  group: BucketGroup | 'key',
  query: CoverageQuery,
): Promise<Coverage> {
  return orgDb.transaction(async (inside) => {
    const groups =
      group === 'key' ? await listKeyGroups(inside, query) : await listCoverage(inside, group, query);
    const byDay = group === 'day' ? groups : await listCoverage(inside, 'day', query);
    const totals = noCoverage();
    for (const { figures } of groups) addCoverage(totals, figures);
    return {
      groups: groups.sort(group === 'day' ? newestFirst : mostBilledFirst),
      totals,
      days: byDay.length,
    };
  }, 'repeatable read');
}

/** Coverage by provider key, straight from bills and calls; it needs no gap run. */
async function listKeyGroups(inside: OrgDb, query: CoverageQuery): Promise<CoverageGroup[]> {
  const billed = await listBilledKeyDays(inside, query);
  const observed = await listObservedKeyDays(inside, query);
  const since = new Map<string, bigint>();
  for (const provider of new Set(billed.map((day) => day.provider))) {
    const times = [...(await listObservedSince(inside, provider)).values()];
    if (times.length > 0)
      since.set(
        provider,
        times.reduce((first, time) => (time < first ? time : first)),
      );
  }
  return coverageByKey(billed, observed, since).map(({ provider, providerKeyId, days, figures }) => ({
    provider,
    accountId: null,
    model: null,
    providerKeyId,
    day: null,
    days,
    figures,
  }));
}

function newestFirst(a: CoverageGroup, b: CoverageGroup): number {
  return compare(b.day ?? '', a.day ?? '');
}

function mostBilledFirst(a: CoverageGroup, b: CoverageGroup): number {
  const [x, y] = [a.figures.billedPico, b.figures.billedPico];
  return x > y ? -1 : x < y ? 1 : compare(nameOf(a), nameOf(b));
}

const nameOf = ({ provider, accountId, model, providerKeyId }: CoverageGroup): string =>
  JSON.stringify([provider, accountId, model, providerKeyId]);
