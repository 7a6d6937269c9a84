import { findBilledSpan } from '../../db/billing/billCoverage.js';
import {
  listBilledAccounts,
  listBilledCells,
  listBilledProviderDays,
  listUsageOfDay,
} from '../../db/billing/billingRows.js';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, listDays, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { type AuditResult, BillAudit } from '../../domain/reconciliation/audit/audit.js';
import {
  type ChargePrices,
  chargesOfDay,
  type DayCharge,
} from '../../domain/reconciliation/matching/charges.js';
import { type DayRange, rangesOf } from '../../domain/reconciliation/statement/statementFigures.js';

/** The longest range of one audit, days. */
export const AUDIT_DAYS_MAX = 366;

interface AuditRequest {
  provider: Provider;
  /** First and last UTC day, `YYYY-MM-DD`, both included; null: the range of the bills, at most 366 days. */
  fromDay: string | null;
  toDay: string | null;
  nowMicros: bigint;
}

export interface AuditReport extends AuditResult {
  provider: Provider;
  /** First and last audited day; null: there is no bill. */
  fromDay: string | null;
  toDay: string | null;
  /** Days of the range without a bill, by account. */
  missing: DayRange[];
  /** Days that the provider may still restate. */
  provisional: DayRange[];
  /** First and last day with any bill of this provider; null: there is none. */
  billed: { firstDay: string; lastDay: string } | null;
}

/**
 * Audits a provider's bills day by day. Each day is read in one short transaction, so that a long range delays nothing.
 * Error: invalid_range for a reversed range or one longer than 366 days.
 */
export async function auditBills(
  orgDb: OrgDb,
  request: AuditRequest,
  prices: ChargePrices,
  signal?: AbortSignal,
): Promise<AuditReport> {
  const { provider } = request;
  const span = await findBilledSpan(orgDb, provider);
  const range = billedRangeOf(request, span, 'an audit');
  const audit = new BillAudit();
  const days: AccountDay[] = [];
  const units = range
    ? await listBilledProviderDays(orgDb, {
        provider,
        fromDay: range.fromDay,
        toDay: shiftDay(range.toDay, 1),
      })
    : [];
  for (const { day } of units) {
    signal?.throwIfAborted();
    const read = await orgDb.transaction(
      (inside) => readBilledDay(inside, provider, day, prices),
      'repeatable read',
    );
    audit.addDay(day, read.charges);
    for (const account of read.accounts) {
      const closedFrom = microsOfDay(day) + BigInt(account.provisionalDays) * MICROS_PER_DAY;
      const isProvisional = request.nowMicros < closedFrom || account.fetchedAtMicros < closedFrom;
      days.push({ provider, accountId: account.accountId, day, isProvisional });
    }
  }
  return {
    ...audit.result(),
    provider,
    fromDay: range?.fromDay ?? null,
    toDay: range?.toDay ?? null,
    missing: range ? missingOf(days, range, request.nowMicros) : [],
    provisional: rangesOf(days.filter((day) => day.isProvisional)),
    billed: span ?? null,
  };
}

/** A provider-day's judged usage charges, and the accounts whose bill covers the day. */
export async function readBilledDay(
  orgDb: OrgDb,
  provider: Provider,
  day: string,
  prices: ChargePrices,
): Promise<{ charges: DayCharge[]; accounts: Awaited<ReturnType<typeof listBilledAccounts>> }> {
  const scope = { provider, day };
  const billed = await listBilledCells(orgDb, scope);
  const usage = await listUsageOfDay(orgDb, scope);
  const accounts = await listBilledAccounts(orgDb, scope);
  return { charges: chargesOfDay(provider, day, billed, usage, prices), accounts };
}

interface AccountDay {
  provider: string;
  accountId: string;
  day: string;
  isProvisional: boolean;
}

interface Days {
  fromDay: string;
  toDay: string;
}

/**
 * The audited days: the requested ones, else the range of the bills; undefined without either. Error: invalid_range for
 * a reversed range or one longer than 366 days, with `what` as the noun.
 */
export function billedRangeOf(
  request: Pick<AuditRequest, 'fromDay' | 'toDay'>,
  span: { firstDay: string; lastDay: string } | undefined,
  what: string,
): Days | undefined {
  const toDay = request.toDay ?? latest(span?.lastDay, request.fromDay);
  const fromDay = request.fromDay ?? earliest(toDay, span?.firstDay);
  if (toDay === undefined || fromDay === undefined) return undefined;
  if (fromDay > toDay) throw refuse('from', `${fromDay} lies after ${toDay}`);
  if (microsOfDay(toDay) - microsOfDay(fromDay) >= BigInt(AUDIT_DAYS_MAX) * MICROS_PER_DAY)
    throw refuse('from', `${what} spans at most ${AUDIT_DAYS_MAX} days`);
  return { fromDay, toDay };
}

/** The last billed day, or the requested first day where that is later. */
function latest(lastDay: string | undefined, fromDay: string | null): string | undefined {
  return lastDay !== undefined && fromDay !== null && fromDay > lastDay ? fromDay : lastDay;
}

/** The first billed day, but at most one whole range before the end. */
function earliest(toDay: string | undefined, firstDay: string | undefined): string | undefined {
  if (toDay === undefined || firstDay === undefined) return undefined;
  if (firstDay > toDay) return toDay;
  const reach = shiftDay(toDay, 1 - AUDIT_DAYS_MAX);
  return firstDay < reach ? reach : firstDay;
}

function refuse(field: string, sentence: string): DomainError {
  return new DomainError('invalid_range', `${field}: ${sentence}`, {
    issues: [{ in: 'query', field, message: sentence }],
  });
}

/** Days of the range, up to yesterday, without a bill of an account. */
function missingOf(days: readonly AccountDay[], range: Days, nowMicros: bigint): DayRange[] {
  const covered = new Set(days.map(({ accountId, day }) => `${accountId}\n${day}`));
  const accounts = new Set(days.map(({ accountId }) => accountId));
  const provider = days[0]?.provider ?? '';
  const missing: { provider: string; accountId: string; day: string }[] = [];
  const [today, end] = [dayOf(nowMicros), shiftDay(range.toDay, 1)];
  for (const day of listDays(range.fromDay, end < today ? end : today)) {
    for (const accountId of accounts)
      if (!covered.has(`${accountId}\n${day}`)) missing.push({ provider, accountId, day });
  }
  return rangesOf(missing);
}
