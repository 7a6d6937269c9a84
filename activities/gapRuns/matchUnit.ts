import { listBilledAccounts, listBilledCells, listUsageCells } from '../../db/queries/billedDays.js';
import { listObservedCells, type ObservedCell as StoredCell } from '../../db/queries/billingCells.js';
import { type RecordedBucket, recordUnitResult } from '../../db/queries/gapBuckets.js';
import { findGapRunUnit } from '../../db/queries/gapRuns.js';
import { listObservedSources } from '../../db/queries/observedSources.js';
import { DomainError } from '../../domain/errors.js';
import { MICROS_PER_DAY, microsOfDay } from '../../domain/period.js';
import { isProvider } from '../../domain/providers.js';
import {
  CALL_STATUSES,
  type CallStatus,
  type DayInput,
  type DayResult,
  type ObservedCell,
} from '../../domain/reconciliation/cells.js';
import { evidenceToJson } from '../../domain/reconciliation/evidence/evidenceText.js';
import { ALL_ACCOUNTS, matchDay } from '../../domain/reconciliation/matchDay.js';
import { wantsHours } from './planRun.js';
import { loadRun, observedSinceOf, type RunWork } from './runWork.js';

/** Matches one provider-day and stores what it found with its evidence; a unit that is done stays as it is. */
export async function matchUnit(work: RunWork, ordinal: number): Promise<void> {
  const { deps, orgDb, runId } = work;
  const unit = await findGapRunUnit(orgDb, runId, ordinal);
  if (!unit || !isProvider(unit.provider))
    throw new DomainError('not_found', `gap run ${runId} has no unit ${ordinal}`);
  if (unit.status === 'done') return;
  const run = await loadRun(work);
  const scope = { provider: unit.provider, day: unit.day };
  const covered = await listBilledAccounts(orgDb, scope);
  const fromMicros = microsOfDay(unit.day);
  const ofDay = { provider: unit.provider, fromMicros, toMicros: fromMicros + MICROS_PER_DAY };
  const input: DayInput = {
    day: unit.day,
    nowMicros: deps.nowMicros(),
    billed: await listBilledCells(orgDb, scope),
    usage: await listUsageCells(orgDb, scope),
    observed: (await listObservedCells(orgDb, scope)).map(fromStoredCell),
    covered,
    sources: covered.length === 0 ? new Map() : await listObservedSources(orgDb, ofDay),
    observedSince: observedSinceOf(run, unit.provider),
    withHours: wantsHours(run, unit.day),
  };
  const result = matchDay(await deps.prices.freshOf(orgDb.orgId), unit.provider, input);
  work.checkpoint();
  const countedSources = Object.fromEntries(
    covered.map((account) => [account.accountId, account.countedSources]),
  );
  await recordUnitResult(orgDb, runId, {
    ...unit,
    buckets: recordedBuckets(result),
    rateMismatches: result.rateMismatches,
    // A day that no bill covers any more is published as nothing.
    countedSources: covered.length === 0 ? {} : { ...countedSources, [ALL_ACCOUNTS]: 'all' },
    hours: null,
  });
}

/** Each day's bucket with its evidence, which stand in the same order; hours have none. */
function recordedBuckets({ buckets, evidence }: DayResult): RecordedBucket[] {
  const left = [...evidence];
  return buckets.map((bucket) => {
    const own = bucket.width === 'day' ? left.shift() : undefined;
    return { bucket, evidence: own === undefined ? null : evidenceToJson(own) };
  });
}

/** The log knows no other words than these three and `blocked`, which the query leaves out. */
function callStatusOf(status: string): CallStatus {
  return CALL_STATUSES.find((known) => known === status) ?? 'ok';
}

function fromStoredCell(cell: StoredCell): ObservedCell {
  return {
    accountId: cell.providerAccountId,
    model: cell.model,
    serviceTier: cell.serviceTier,
    isBatch: cell.isBatch,
    contextBand: cell.contextBand,
    status: callStatusOf(cell.status),
    hourMicros: cell.hourMicros,
    calls: cell.calls,
    tokens: {
      input: cell.inputTokens,
      cache_read: cell.cacheRead,
      cache_write_5m: cell.cacheWrite5m,
      cache_write_1h: cell.cacheWrite1h,
      output: cell.outputTokens,
      input_audio: cell.inputAudio,
      output_audio: cell.outputAudio,
    },
    computedCostPico: cell.computedCostPico,
    unpriced: cell.unpriced,
    priceGaps: cell.priceGaps,
    unmetered: cell.unmetered,
  };
}
