import type { BillingConnector, ReportChunk } from '../adapters/billing/connector.js';
import { listFetchedDays } from '../db/billing/apiCopies.js';
import type { BillingConnection } from '../db/billing/billingConnections.js';
import type { SyncRun } from '../db/billing/syncRuns.js';
import type { OrgDb } from '../db/orgDb.js';
import { dayOf, listDays, shiftDay } from '../domain/period.js';

/** Days that a provider may still restate are asked for again once a day, as far back as this at least. */
const REVISABLE_DAYS_MIN = 30;
/** A day that could never be fetched is given up after a year. */
const MISSING_DAYS_MAX = 366;

export interface SyncPlan {
  chunks: ReportChunk[];
  /** Today, when all days that may still be restated are asked for; else null. */
  revisesOn: string | null;
}

/**
 * What a sync asks for: the days that are not settled, once a day all that may still be restated, and every day since
 * the connection's beginning that no sync has fetched yet, or that was converted by another rate than is given now. So a backfill is a sync to which everything is missing, and
 * what one sync could not fetch is taken up by the next.
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
  const fetched = await listFetchedDays(orgDb, connection, { fromDay: oldest, toDay, provisionalDays });
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

/** The name of a report where rows are stored: cost reports have none. */
export function storedReport({ feed, report }: Pick<ReportChunk, 'feed' | 'report'>): string {
  return feed === 'cost' ? '' : report;
}

/** Each report of the provider once, in its order. */
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

/** Days in their order as half-open ranges without a hole. */
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
