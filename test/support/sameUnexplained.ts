import { expect } from 'vitest';
import { nextMonth } from '../../domain/billing/periods.js';
import { microsOfDay, shiftDay } from '../../domain/period.js';
import type { TestApi } from './api.js';
import { exact } from './demoReads.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const unexplainedOf = (figures: Json): bigint =>
  exact(figures.unexplained_critical_usd) + exact(figures.unexplained_review_usd);

/** Dollars by place; places without any are left out. */
function sumByPlace(
  parts: readonly Json[],
  placeOf: (part: Json) => string,
  amountOf: (part: Json) => bigint,
) {
  const sums = new Map<string, bigint>();
  for (const part of parts) sums.set(placeOf(part), (sums.get(placeOf(part)) ?? 0n) + amountOf(part));
  return Object.fromEntries([...sums].filter(([, amount]) => amount !== 0n));
}

/**
 * Checks that the unexplained dollars of a month's statement equal those of the financial summary with `from` and `to`
 * of that month, in total, by provider and by account; with explained dollars they are the dollars that no call
 * matches. Returns the statement.
 */
export async function expectSameUnexplained(api: TestApi, period: string, key?: string): Promise<Json> {
  const firstDay = `${period}-01`;
  const lastDay = shiftDay(nextMonth(firstDay), -1);
  expect(microsOfDay(lastDay)).toBeGreaterThan(microsOfDay(firstDay));
  const { body: statement } = await api.get(`/api/v1/reconciliation/statement?period=${period}`, key);
  const { body: summary } = await api.get(`/api/v1/financial/summary?from=${firstDay}&to=${lastDay}`, key);
  expect(exact(statement.total.unexplained_usd)).toBe(unexplainedOf(summary));
  const ofStatement = (parts: readonly Json[], placeOf: (part: Json) => string) =>
    sumByPlace(parts, placeOf, (part) => exact(part.unexplained_usd));
  const provider = (part: Json): string => part.provider;
  const account = (part: Json): string => `${part.provider}/${part.provider_account_id}`;
  expect(ofStatement(statement.providers, provider)).toEqual(
    sumByPlace(summary.breakdown, provider, unexplainedOf),
  );
  // Calls without an account are only in the provider's figures.
  const ofAccounts = summary.breakdown.filter((one: Json) => one.provider_account_id !== '');
  expect(ofStatement(statement.accounts, account)).toEqual(sumByPlace(ofAccounts, account, unexplainedOf));
  for (const figures of [...statement.accounts, ...statement.providers, statement.total])
    expect(figures.explained_by_findings_usd + figures.unexplained_usd).toBeCloseTo(
      figures.not_matched_by_calls_usd,
      8,
    );
  return statement;
}
