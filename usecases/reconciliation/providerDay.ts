import { type DayCell, listObservedCells, listObservedDay } from '../../db/billing/billingCells.js';
import {
  type BilledAccount,
  listBilledAccounts,
  listBilledCells,
  listUsageCells,
  listUsageOfDay,
} from '../../db/billing/billingRows.js';
import { listObservedSources } from '../../db/events/observedCalls.js';
import type { OrgDb } from '../../db/orgDb.js';
import { type RecordedBucket, recordUnitResult } from '../../db/reconciliation/gapBuckets.js';
import { failGapRunUnit, findGapRunUnit } from '../../db/reconciliation/gapRuns.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { aheadMicrosOf } from '../../domain/billing/billingDay.js';
import { DomainError } from '../../domain/errors.js';
import { microsOfDay } from '../../domain/period.js';
import { isProvider, type Provider } from '../../domain/providers.js';
import { evidenceToJson } from '../../domain/reconciliation/evidence/evidenceText.js';
import {
  CALL_STATUSES,
  type CallStatus,
  type DayInput,
  type DayResult,
  type ObservedCell,
} from '../../domain/reconciliation/matching/cells.js';
import { ALL_ACCOUNTS, matchDay } from '../../domain/reconciliation/matching/matchDay.js';
import { loadRun, observedSinceOf, type RunWork } from './gapRunWork.js';
import { wantsHours } from './planRun.js';

/** A provider-day as it is compared, with the counting copies of its bill. */
export interface ProviderDay extends DayInput {
  covered: readonly BilledAccount[];
}

interface ProviderDayScope {
  provider: Provider;
  day: string;
  /** Hours by which the provider's clock is ahead of UTC, if constant (`timesOfBillingDay`). */
  offsetHours?: number;
}

/** Reads all stored bills and calls of one provider's day in one snapshot. Time grows with the day's rows and cells. */
export async function readProviderDay(
  orgDb: OrgDb,
  scope: ProviderDayScope,
  beside: Pick<DayInput, 'nowMicros' | 'observedSince' | 'withHours'>,
): Promise<ProviderDay> {
  return orgDb.transaction((inside) => readInside(inside, scope, beside), 'repeatable read');
}

async function readInside(
  inside: OrgDb,
  scope: ProviderDayScope,
  beside: Pick<DayInput, 'nowMicros' | 'observedSince' | 'withHours'>,
): Promise<ProviderDay> {
  const accounts = listBilledAccounts(inside, scope);
  // The driver sends these statements without waiting for each other's answers.
  const [covered, billed, use, sources] = await Promise.all([
    accounts,
    listBilledCells(inside, scope),
    readUse(inside, scope, beside.withHours),
    // The senders of calls matter only to explanations, and days without a bill have none.
    accounts.then((known) => (known.length === 0 ? new Map() : listObservedSources(inside, scope))),
  ]);
  const aheadMicros = aheadMicrosOf(scope.provider, scope.day, scope.offsetHours ?? 0);
  return {
    ...beside,
    observedSince: new Map([...beside.observedSince].map(([account, at]) => [account, at + aheadMicros])),
    day: scope.day,
    billed,
    ...use,
    covered,
    sources,
  };
}

/**
 * Usage of both sides. Hours that are not stored are summed in the database, because reading them is by far the most
 * expensive part.
 */
async function readUse(
  inside: OrgDb,
  scope: ProviderDayScope,
  withHours: boolean,
): Promise<Pick<DayInput, 'usage' | 'observed'>> {
  if (withHours) {
    const [usage, observed] = await Promise.all([
      listUsageCells(inside, scope),
      listObservedCells(inside, scope),
    ]);
    return { usage, observed: observed.map((cell) => fromStoredCell(cell, cell.hourMicros)) };
  }
  const [usage, observed] = await Promise.all([
    listUsageOfDay(inside, scope),
    listObservedDay(inside, scope),
  ]);
  const dayMicros = microsOfDay(scope.day);
  return {
    usage,
    observed: observed.map((cell) => ({ ...fromStoredCell(cell, dayMicros), hours: cell.hours })),
  };
}

/** The log contains only these three statuses and `blocked`, which the query excludes. */
function callStatusOf(status: string): CallStatus {
  return CALL_STATUSES.find((known) => known === status) ?? 'ok';
}

function fromStoredCell(cell: Omit<DayCell, 'hours'>, hourMicros: bigint): ObservedCell {
  return {
    accountId: cell.providerAccountId,
    model: cell.model,
    serviceTier: cell.serviceTier,
    isBatch: cell.isBatch,
    contextBand: cell.contextBand,
    status: callStatusOf(cell.status),
    hourMicros,
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

/** Matches one provider-day and stores the result with its evidence; a finished unit does not change. */
export async function matchUnit(work: RunWork, ordinal: number): Promise<void> {
  const { deps, orgDb, runId } = work;
  const read = await orgDb.transaction(
    (inside) => readUnit({ ...work, orgDb: inside }, ordinal),
    'repeatable read',
  );
  if (read === undefined) return;
  const { unit, provider, input, link } = read;
  const { covered } = input;
  const result = matchDay(await deps.prices.freshOf(orgDb.orgId), provider, input, link);
  work.checkpoint();
  const countedSources = Object.fromEntries(
    covered.map((account) => [account.accountId, account.countedSources]),
  );
  const found = {
    ...unit,
    buckets: recordedBuckets(result),
    rateMismatches: result.rateMismatches,
    // A day without a bill any more is published as empty.
    countedSources: covered.length === 0 ? {} : { ...countedSources, [ALL_ACCOUNTS]: 'all' },
  };
  await orgDb.transaction((inside) => recordUnitResult(inside, runId, found));
}

/** Reads what matching a unit needs, in one snapshot; undefined: it is done. */
async function readUnit(work: RunWork, ordinal: number) {
  const { deps, orgDb, runId } = work;
  const [unit, run, { link }] = await Promise.all([
    findGapRunUnit(orgDb, runId, ordinal),
    loadRun(work),
    currentWeights(orgDb),
  ]);
  if (!unit || !isProvider(unit.provider))
    throw new DomainError('not_found', `the gap run has no unit ${ordinal}`);
  if (unit.status === 'done') return undefined;
  const { provider, day } = unit;
  const scope = { provider, day, offsetHours: run.dayOffsets[provider] ?? 0 };
  const input = await readProviderDay(orgDb, scope, {
    nowMicros: deps.nowMicros(),
    observedSince: observedSinceOf(run, provider),
    withHours: wantsHours(run, day),
  });
  return { unit, provider, input, link };
}

/** Records that a unit failed for good; a finished unit stays finished. */
export async function failUnit(orgDb: OrgDb, runId: string, ordinal: number, message: string): Promise<void> {
  await orgDb.transaction((inside) => failGapRunUnit(inside, runId, ordinal, message));
}

/** Each day's bucket with its evidence, which has the same order; hourly buckets have none. */
function recordedBuckets({ buckets, evidence }: DayResult): RecordedBucket[] {
  const left = [...evidence];
  return buckets.map((bucket) => {
    const own = bucket.width === 'day' ? left.shift() : undefined;
    return { bucket, evidence: own === undefined ? null : evidenceToJson(own) };
  });
}
