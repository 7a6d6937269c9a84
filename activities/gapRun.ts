import { CancelledFailure, Context } from '@temporalio/activity';
import { OrgDb } from '../db/orgDb.js';
import {
  listBilledAccounts,
  listBilledCells,
  listBilledProviderDays,
  listSourceDifferences,
  listUsageCells,
  type SourceDifference,
} from '../db/queries/billedDays.js';
import { listObservedCells, type ObservedCell as StoredCell } from '../db/queries/billingCells.js';
import {
  countRunBuckets,
  listFinishedUnits,
  publishGapRunDays,
  recordUnitResult,
} from '../db/queries/gapBuckets.js';
import {
  failGapRunUnit,
  findGapRun,
  findGapRunUnit,
  type GapRun,
  type GapRunResult,
  insertGapRunUnits,
  type RunTurn,
  takeGapRunTurn,
} from '../db/queries/gapRuns.js';
import { listObservedSince } from '../db/queries/observedSince.js';
import { listSuspectKeys } from '../db/queries/providerKeys.js';
import { foldUsage } from '../db/queries/rollups.js';
import { endRun } from '../db/queries/runStates.js';
import type { SuspectKey } from '../domain/billing/providerKeys.js';
import { DomainError } from '../domain/errors.js';
import { decimalFromPico } from '../domain/money.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY, microsOfDay, parseInstant } from '../domain/period.js';
import { isProvider } from '../domain/providers.js';
import {
  CALL_STATUSES,
  type CallStatus,
  type DayInput,
  type ObservedCell,
} from '../domain/reconciliation/cells.js';
import { ALL_ACCOUNTS, matchDay } from '../domain/reconciliation/matchDay.js';
import { mergeMismatches } from '../domain/reconciliation/mergeMismatches.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** Runs of one organization that work at once; the others wait for their turn. */
const RUNNING_MAX = 2;
/** Differences and mismatches that a run's result lists; their number is given whole. */
const LISTED_MAX = 200;
/** Hours are kept for days that a 7-day period can reach. */
const HOURLY_DAYS = 8n;

/** The effects of a gap run. Each may be repeated: see the first comment of each. */
export function createGapRunActivities(deps: ActivityDeps) {
  const orgDbOf = (orgId: string) => new OrgDb(deps.database, orgId);
  return {
    /** Whether the run may go on. */
    takeGapRunTurn: ({ orgId, runId }: RunRef): Promise<RunTurn> =>
      // Repeating sets the same state again; a run that has ended stays ended.
      withFailures(() => takeGapRunTurn(orgDbOf(orgId), runId, RUNNING_MAX)),

    /** Numbers the provider-days that have a bill; says how many. */
    planGapRun: ({ orgId, runId }: RunRef): Promise<{ units: number }> =>
      // The units are stored once: a repeat finds them and counts them.
      withFailures(() => plan(deps, orgDbOf(orgId), runId)),

    /** Matches one provider-day and stores what it found. */
    matchProviderDay: ({ orgId, runId, ordinal }: RunRef & { ordinal: number }): Promise<void> =>
      // A repeat replaces the unit's buckets in one transaction.
      withFailures(() => withHeartbeat(() => matchUnit(deps, orgDbOf(orgId), runId, ordinal))),

    failGapRunUnit: ({
      orgId,
      runId,
      ordinal,
      message,
    }: RunRef & { ordinal: number; message: string }): Promise<void> =>
      // A repeat writes the same failure again; a unit that is done stays done.
      withFailures(() => failGapRunUnit(orgDbOf(orgId), runId, ordinal, message)),

    /** Shows everything that the run found, and ends it. */
    publishGapRun: ({ orgId, runId }: RunRef): Promise<void> =>
      // Pointers and status change in one transaction, once: a repeat finds the run ended.
      withFailures(() => publish(orgDbOf(orgId), runId)),

    endGapRunCancelled: ({ orgId, runId }: RunRef): Promise<void> =>
      // Only an open run is ended.
      withFailures(
        async () => void (await endRun(orgDbOf(orgId), 'gap_run', runId, { status: 'cancelled' })),
      ),

    endGapRunFailed: ({ orgId, runId, message }: RunRef & { message: string }): Promise<void> =>
      // Only an open run is ended.
      withFailures(async () => {
        deps.logger.error({ orgId, runId, message }, 'a gap run failed');
        await endRun(orgDbOf(orgId), 'gap_run', runId, {
          status: 'failed',
          error: { code: 'internal_error', message },
        });
      }),
  };
}

async function loadRun(orgDb: OrgDb, runId: string): Promise<GapRun> {
  const run = await findGapRun(orgDb, runId);
  if (!run) throw new DomainError('not_found', `there is no gap run ${runId}`);
  return run;
}

function windowOf(run: GapRun): { provider: string | null; fromDay: string; toDay: string } {
  return { provider: run.provider, fromDay: dayOf(run.windowStartMicros), toDay: dayOf(run.windowEndMicros) };
}

async function plan(deps: ActivityDeps, orgDb: OrgDb, runId: string): Promise<{ units: number }> {
  const run = await loadRun(orgDb, runId);
  // Folding first makes each unit's read cheap. Another fold under way does the same work, so a failure is no matter.
  await foldUsage(deps.database, orgDb.orgId).catch((error: unknown) =>
    deps.logger.debug({ err: error }, 'fold before a gap run'),
  );
  const units = await listBilledProviderDays(orgDb, windowOf(run));
  const since: GapRun['observedSince'] = {};
  for (const provider of new Set(units.map((unit) => unit.provider))) {
    const accounts = await listObservedSince(orgDb, provider);
    since[provider] = Object.fromEntries(
      [...accounts].map(([account, micros]) => [account, isoFromMicros(micros)]),
    );
  }
  return { units: await insertGapRunUnits(orgDb, runId, units, since) };
}

function observedSinceOf(run: GapRun, provider: string): Map<string, bigint> {
  const entries = Object.entries(run.observedSince[provider] ?? {});
  return new Map(
    entries.flatMap(([account, iso]): [string, bigint][] => {
      const micros = parseInstant(iso)?.micros;
      return micros === undefined ? [] : [[account, micros]];
    }),
  );
}

async function matchUnit(deps: ActivityDeps, orgDb: OrgDb, runId: string, ordinal: number): Promise<void> {
  const unit = await findGapRunUnit(orgDb, runId, ordinal);
  if (!unit || !isProvider(unit.provider))
    throw new DomainError('not_found', `gap run ${runId} has no unit ${ordinal}`);
  if (unit.status === 'done') return;
  const run = await loadRun(orgDb, runId);
  const scope = { provider: unit.provider, day: unit.day };
  const accounts = await listBilledAccounts(orgDb, scope);
  const billed = await listBilledCells(orgDb, scope);
  const usage = await listUsageCells(orgDb, scope);
  const observed = await listObservedCells(orgDb, scope);
  const input: DayInput = {
    day: unit.day,
    nowMicros: deps.nowMicros(),
    billed,
    usage,
    observed: observed.map(fromStoredCell),
    covered: accounts,
    sources: new Map(),
    observedSince: observedSinceOf(run, unit.provider),
    withHours: microsOfDay(unit.day) >= run.windowEndMicros - HOURLY_DAYS * MICROS_PER_DAY,
  };
  const { buckets, rateMismatches } = matchDay(await deps.prices.freshOf(orgDb.orgId), unit.provider, input);
  if (Context.current().cancellationSignal.aborted) throw new CancelledFailure('the run was cancelled');
  const countedSources = Object.fromEntries(
    accounts.map(({ accountId, countedSources: key }) => [accountId, key]),
  );
  await recordUnitResult(orgDb, runId, {
    ...unit,
    buckets,
    rateMismatches,
    countedSources: { ...countedSources, [ALL_ACCOUNTS]: 'all' },
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

async function publish(orgDb: OrgDb, runId: string): Promise<void> {
  const run = await loadRun(orgDb, runId);
  const window = windowOf(run);
  await orgDb.transaction(async (inside) => {
    const units = await listFinishedUnits(inside, runId);
    const failed = units.filter((unit) => unit.status !== 'done');
    const mismatches = mergeMismatches(units);
    const differences = await listSourceDifferences(inside, { ...window, limit: LISTED_MAX });
    const suspects = await listSuspectKeys(inside, { ...window, limit: LISTED_MAX });
    const result: GapRunResult = {
      ...(await countRunBuckets(inside, runId)),
      ...(units.length === 0 ? { reason: 'no_billing_data' as const } : {}),
      rate_mismatches: mismatches.slice(0, LISTED_MAX),
      rate_mismatch_count: mismatches.length,
      source_differences: differences.map(presentDifference),
      suspect_keys: suspects.keys.map(presentSuspect),
      suspect_key_count: suspects.count,
      failed_units: failed.slice(0, LISTED_MAX).map((unit) => ({
        provider: unit.provider,
        day: unit.day,
        message: unit.errorMessage ?? 'not matched',
      })),
    };
    const ended = await endRun(inside, 'gap_run', runId, {
      status: failed.length === 0 ? 'succeeded' : failed.length === units.length ? 'failed' : 'partial',
      result,
      ...(failed.length > 0
        ? {
            error: {
              code: 'units_failed',
              message: `${failed.length} of ${units.length} provider-days could not be matched`,
            },
          }
        : {}),
    });
    if (ended) await publishGapRunDays(inside, runId);
  });
}

function presentSuspect(key: SuspectKey): NonNullable<GapRunResult['suspect_keys']>[number] {
  return {
    provider: key.provider,
    provider_account_id: key.providerAccountId,
    provider_key_id: key.providerKeyId,
    reason: key.reason,
    first_day: key.firstDay,
    last_day: key.lastDay,
    billed_usd: key.billedPico === null ? null : decimalFromPico(key.billedPico),
  };
}

function presentDifference(difference: SourceDifference): GapRunResult['source_differences'][number] {
  return {
    provider: difference.provider,
    provider_account_id: difference.accountId,
    day: difference.day,
    charge_category: difference.chargeCategory,
    counted_import_id: difference.countedSourceId,
    counted_kind: difference.countedKind,
    counted_usd: decimalFromPico(difference.countedPico),
    other_import_id: difference.otherSourceId,
    other_kind: difference.otherKind,
    other_usd: decimalFromPico(difference.otherPico),
  };
}
