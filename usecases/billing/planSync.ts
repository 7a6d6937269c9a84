import type { BillingConnector, ReportChunk } from '../../adapters/billing/connector.js';
import { listFetchedDays } from '../../db/billing/apiCopies.js';
import type { BillingConnection } from '../../db/billing/billingConnections.js';
import type { SyncChunk, SyncRun, SyncRunResult } from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import { restatableOf } from '../../domain/billing/sources.js';
import { compare } from '../../domain/compare.js';
import { dayOf, listDays, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../domain/period.js';

/** Least days back for which a sync fetches days again, once a day, because the provider may still restate them. */
const REVISABLE_DAYS_MIN = 30;
/** A day that could never be fetched is given up after a year. */
const MISSING_DAYS_MAX = 366;

export interface SyncPlan {
  chunks: ReportChunk[];
  /** Today, when all days that may still be restated are fetched; else null. */
  revisesOn: string | null;
}

/**
 * The days that a sync fetches: the days that are not settled; once a day all days that may still be restated; and
 * every day since the connection's beginning that no sync has fetched yet, or whose exchange rate differs from the
 * present setting. A backfill is therefore a sync in which every day is missing, and the next sync fetches the days
 * that one could not.
 */
export async function planSync(
  orgDb: OrgDb,
  connector: BillingConnector,
  connection: BillingConnection,
  run: SyncRun,
  nowMicros: bigint,
): Promise<SyncPlan> {
  const today = dayOf(nowMicros);
  const toDay = shiftDay(today, 1);
  const { provisionalDays, revisableDays } = connector.facts;
  const revises = connection.revisedOn !== today || run.trigger === 'request' || run.trigger === 'settings';
  const days = revises ? Math.max(revisableDays, REVISABLE_DAYS_MIN) : provisionalDays + 1;
  const oldest = later(connection.backfillFrom, shiftDay(today, -MISSING_DAYS_MAX));
  const askFrom = later(oldest, shiftDay(today, 1 - days));
  const fetched = await listFetchedDays(orgDb, connection, {
    fromDay: oldest,
    toDay,
    restatable: restatableOf(connector.provider),
  });
  const chunks = reportsOf(connector, { fromDay: today, toDay }, nowMicros).flatMap(({ report, feed }) => {
    const known = fetched.find((one) => one.feed === feed && one.report === storedReport({ report, feed }));
    const wanted = missingDays(oldest, askFrom, new Set(known?.days ?? []));
    const ranges = rangesOf([...wanted, ...listDays(askFrom, toDay)]);
    return ranges
      .reverse()
      .flatMap((range) => connector.plan(range, nowMicros).filter((chunk) => chunk.report === report));
  });
  return { chunks, revisesOn: revises ? today : null };
}

/** The report's name as it is stored; '' for cost reports. */
export function storedReport({ feed, report }: Pick<ReportChunk, 'feed' | 'report'>): string {
  return feed === 'cost' ? '' : report;
}

/** The provider's reports, each once, in its order. */
function reportsOf(
  connector: BillingConnector,
  window: { fromDay: string; toDay: string },
  nowMicros: bigint,
): Pick<ReportChunk, 'report' | 'feed'>[] {
  const byName = new Map(connector.plan(window, nowMicros).map((chunk) => [chunk.report, chunk]));
  return [...byName.values()];
}

function missingDays(fromDay: string, toDay: string, known: ReadonlySet<string>): string[] {
  return listDays(fromDay, toDay).filter((day) => !known.has(day));
}

/** Joins ordered days into half-open ranges without gaps. */
function rangesOf(days: readonly string[]): { fromDay: string; toDay: string }[] {
  const ranges: { fromDay: string; toDay: string }[] = [];
  for (const day of days) {
    const next = shiftDay(day, 1);
    const last = ranges.at(-1);
    if (last?.toDay === day) last.toDay = next;
    else ranges.push({ fromDay: day, toDay: next });
  }
  return ranges;
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

/** Most restatements and gaps that a run's result lists; the count includes all restatements. */
const LISTED_MAX = 200;

/** The outcome of a sync, from the outcomes of its parts. */
export function outcomeOf(chunks: readonly SyncChunk[]): {
  status: 'succeeded' | 'partial' | 'failed';
  error: { code: string; message: string } | undefined;
  result: SyncRunResult;
} {
  const failed = chunks.filter(({ status }) => status !== 'done');
  const error = failed.length === 0 ? errorOfLeftOut(leftOutOf(chunks)) : errorOf(failed, chunks.length);
  const status = !error ? 'succeeded' : failed.length === chunks.length ? 'failed' : 'partial';
  return { status, error, result: resultOf(chunks) };
}

/** The error is the first failure; with several kinds of failures the others are in the result. */
function errorOf(failed: readonly SyncChunk[], total: number): { code: string; message: string } {
  const first = failed.find(({ errorCode }) => errorCode !== null);
  const why = first?.errorMessage ?? 'not fetched';
  return {
    code: first?.errorCode ?? 'chunks_failed',
    message:
      failed.length === total
        ? why
        : `${failed.length} of ${total} parts could not be fetched; the next sync takes them up. The first: ${why}`,
  };
}

/** Days that the provider leaves out, by report, each once. */
function leftOutOf(chunks: readonly SyncChunk[]): { report: string; day: string }[] {
  return chunks.flatMap(({ report, result }) =>
    (result?.left_out_days ?? []).map((day) => ({ report, day })),
  );
}

const LEFT_OUT = { code: 'days_left_out', message: 'the provider leaves this day out, though it has ended' };

function errorOfLeftOut(
  leftOut: readonly { report: string; day: string }[],
): { code: string; message: string } | undefined {
  const [first] = leftOut;
  if (!first) return undefined;
  const others = leftOut.length > 1 ? ` and ${leftOut.length - 1} more` : '';
  return {
    code: LEFT_OUT.code,
    message: `the provider's report ${first.report} leaves out ${first.day}${others}, though it has ended; nothing is counted there until the report has it, and the next sync repeats the request`,
  };
}

/** The result of a sync whose parts have all ended. */
function resultOf(chunks: readonly SyncChunk[]): SyncRunResult {
  const results = chunks.flatMap(({ result }) => result ?? []);
  const changed = changedDays(chunks);
  const restated = results.flatMap((result) => result.restated);
  return {
    pages: results.reduce((sum, { pages }) => sum + pages, 0),
    rows: results.reduce((sum, { rows }) => sum + rows, 0),
    changed_days: new Set(results.flatMap(({ changed_days: days }) => days)).size,
    period_start: changed[0] ?? null,
    period_end: changed.at(-1) ?? null,
    restated: restated.slice(0, LISTED_MAX),
    restated_count: restated.length,
    missing: missingOf(chunks).slice(0, LISTED_MAX),
    gap_run_id: null,
  };
}

type Missing = SyncRunResult['missing'][number];

/**
 * The parts that failed and the days that were left out, which the next sync fetches. Adjacent parts with the same
 * reason are joined.
 */
function missingOf(chunks: readonly SyncChunk[]): Missing[] {
  const parts = chunks
    .filter(({ status }) => status !== 'done')
    .map((chunk) => ({
      report: chunk.report,
      period_start: dayOf(chunk.startMicros),
      period_end: dayOf(chunk.endMicros - 1n),
      code: chunk.errorCode ?? 'not_fetched',
      message: chunk.errorMessage ?? 'not fetched',
    }));
  const days = leftOutOf(chunks).map(({ report, day }) => ({
    report,
    period_start: day,
    period_end: day,
    ...LEFT_OUT,
  }));
  return joined([...parts, ...days]);
}

/** Latest days first, as they are fetched. */
function joined(missing: readonly Missing[]): Missing[] {
  const inOrder = missing.toSorted(
    (a, b) => compare(a.report, b.report) || compare(b.period_start, a.period_start),
  );
  const whole: Missing[] = [];
  for (const next of inOrder) {
    const last = whole.at(-1);
    const isSame =
      last?.report === next.report &&
      last.code === next.code &&
      last.message === next.message &&
      last.period_start <= dayAfter(next.period_end);
    if (last && isSame) whole[whole.length - 1] = { ...last, period_start: next.period_start };
    else whole.push(next);
  }
  return whole;
}
const dayAfter = (day: string): string => dayOf(microsOfDay(day) + MICROS_PER_DAY);

/** Days whose buckets must be built again: their content changed, or they are no longer provisional. In order. */
export function changedDays(chunks: readonly SyncChunk[]): string[] {
  const days = chunks.flatMap(({ result }) => [
    ...(result?.changed_days ?? []),
    ...(result?.settled_days ?? []),
  ]);
  return [...new Set(days)].sort();
}
