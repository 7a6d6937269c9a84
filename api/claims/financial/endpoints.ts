import { sumFindingDays } from '../../../db/claims/financialSums.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { sumPreventedSpend } from '../../../db/policies/preventedSpend.js';
import { findSavingsResult, type SavingsRun } from '../../../db/policies/savingsRuns.js';
import { summarize } from '../../../domain/claims/financialSummary.js';
import { dayOf, LATEST_MICROS } from '../../../domain/period.js';
import { standardPeriod } from '../../../usecases/policies/openSavingsRun.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { windowOf } from '../../query.js';
import { FINANCIAL_SUMMARY_PATH, presentFinancialSummary, summaryQuery, summaryResponse } from './wire.js';

type Window = ReturnType<typeof windowOf>;

/**
 * The newest result of what rules would have saved: of exactly the period that is asked for, with both bounds; of the last
 * 30 days with neither. No run is of a period that is open on one side.
 */
async function findModeled(orgDb: OrgDb, window: Window, nowMicros: bigint): Promise<SavingsRun | undefined> {
  const { fromMicros, toMicros } = window;
  if (fromMicros === undefined && toMicros === undefined)
    return findSavingsResult(orgDb, standardPeriod(nowMicros));
  if (fromMicros === undefined || toMicros === undefined) return undefined;
  return findSavingsResult(orgDb, {
    isStandard: false,
    windowStartMicros: fromMicros,
    windowEndMicros: toMicros,
  });
}

const readSummary = defineEndpoint({
  operationId: 'getFinancialSummary',
  method: 'get',
  path: FINANCIAL_SUMMARY_PATH,
  tag: 'Financial',
  summary: 'What there is to get back and to save, in six numbers that add up',
  description:
    'Of all time unless from or to are given. A finding that spans the window counts with its days in it. Each number is rounded to cents before the total is made.',
  access: { scope: 'financial:read', workspace: 'refused' },
  query: summaryQuery,
  responses: { 200: { description: 'The summary', schema: summaryResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    const window = windowOf(query.from, query.to, ['from', 'to']);
    const { fromMicros, toMicros } = window;
    const days = {
      fromDay: fromMicros === undefined ? null : dayOf(fromMicros),
      toDay: toMicros === undefined ? null : dayOf(toMicros - 1n),
    };
    const { sums, prevented, modeled } = await orgDb.transaction(
      async (inside) => ({
        sums: await sumFindingDays(inside, days),
        prevented: await sumPreventedSpend(inside, {
          fromMicros: fromMicros ?? 0n,
          toMicros: toMicros ?? LATEST_MICROS,
        }),
        modeled: await findModeled(inside, window, deps.nowMicros()),
      }),
      'repeatable read',
    );
    const summary = summarize(sums, {
      preventedPico: prevented.totals.preventedPico,
      preventableModeledPico: modeled?.totals?.savedPico ?? 0n,
    });
    return { status: 200, body: presentFinancialSummary(summary, window, modeled) };
  },
});

export const financialEndpoints: readonly Endpoint[] = [readSummary];
