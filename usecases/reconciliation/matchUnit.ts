import type { OrgDb } from '../../db/orgDb.js';
import { type RecordedBucket, recordUnitResult } from '../../db/reconciliation/gapBuckets.js';
import { failGapRunUnit, findGapRunUnit } from '../../db/reconciliation/gapRunUnits.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { DomainError } from '../../domain/errors.js';
import { isProvider } from '../../domain/providers.js';
import { evidenceToJson } from '../../domain/reconciliation/evidence/evidenceText.js';
import type { DayResult } from '../../domain/reconciliation/matching/cells.js';
import { ALL_ACCOUNTS, matchDay } from '../../domain/reconciliation/matching/matchDay.js';
import { loadRun, observedSinceOf, type RunWork } from './gapRunWork.js';
import { wantsHours } from './planRun.js';
import { readProviderDay } from './providerDay.js';

/** Matches one provider-day and stores what it found with its evidence; a unit that is done stays as it is. */
export async function matchUnit(work: RunWork, ordinal: number): Promise<void> {
  const { deps, orgDb, runId } = work;
  const unit = await findGapRunUnit(orgDb, runId, ordinal);
  if (!unit || !isProvider(unit.provider))
    throw new DomainError('not_found', `the gap run has no unit ${ordinal}`);
  if (unit.status === 'done') return;
  const run = await loadRun(work);
  const scope = { provider: unit.provider, day: unit.day, offsetHours: run.dayOffsets[unit.provider] ?? 0 };
  const input = await readProviderDay(orgDb, scope, {
    nowMicros: deps.nowMicros(),
    observedSince: observedSinceOf(run, unit.provider),
    withHours: wantsHours(run, unit.day),
  });
  const { covered } = input;
  const { link } = await currentWeights(orgDb);
  const result = matchDay(await deps.prices.freshOf(orgDb.orgId), unit.provider, input, link);
  work.checkpoint();
  const countedSources = Object.fromEntries(
    covered.map((account) => [account.accountId, account.countedSources]),
  );
  const found = {
    ...unit,
    buckets: recordedBuckets(result),
    rateMismatches: result.rateMismatches,
    // A day that no bill covers any more is published as nothing.
    countedSources: covered.length === 0 ? {} : { ...countedSources, [ALL_ACCOUNTS]: 'all' },
  };
  await orgDb.transaction((inside) => recordUnitResult(inside, runId, found));
}

/** Notes that a unit failed for good; a unit that is done stays done. */
export async function failUnit(orgDb: OrgDb, runId: string, ordinal: number, message: string): Promise<void> {
  await orgDb.transaction((inside) => failGapRunUnit(inside, runId, ordinal, message));
}

/** Each day's bucket with its evidence, which stand in the same order; hours have none. */
function recordedBuckets({ buckets, evidence }: DayResult): RecordedBucket[] {
  const left = [...evidence];
  return buckets.map((bucket) => {
    const own = bucket.width === 'day' ? left.shift() : undefined;
    return { bucket, evidence: own === undefined ? null : evidenceToJson(own) };
  });
}
