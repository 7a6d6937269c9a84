import { listBilledTotals } from '../../../db/billing/billedDays.js';
import { closePeriod } from '../../../db/billing/closePeriod.js';
import { listBilledAdjustments, listFrozenBills } from '../../../db/billing/periodBills.js';
import {
  findFirstMonth,
  findFrozenTotals,
  findPeriodClosing,
  listFrozenSums,
  listPeriodClosings,
} from '../../../db/billing/periods.js';
import type { OrgDb } from '../../../db/orgDb.js';
import type { UsageQuery } from '../../../db/usage/usageSql.js';
import {
  endOfMonth,
  type Month,
  monthOf,
  monthsBetween,
  startOfMonth,
} from '../../../domain/billing/periods/month.js';
import { DomainError } from '../../../domain/errors.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { foldWhenBehind, sumUsage } from '../../../usecases/usage/usage.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import {
  billedDaysOf,
  listPeriodsQuery,
  listPeriodsResponse,
  PERIODS_PATH,
  type PeriodFacts,
  periodParams,
  periodResponse,
  presentListedPeriod,
  presentPeriod,
} from './wire.js';

const listPeriods = defineEndpoint({
  operationId: 'listPeriods',
  method: 'get',
  path: PERIODS_PATH,
  tag: 'Periods',
  summary: 'Months, open and closed, newest first',
  description: 'From the month of the first call or bill to the current one (UTC).',
  access: { scope: 'usage:read', workspace: 'refused' },
  query: listPeriodsQuery,
  responses: { 200: { description: 'A page of months', schema: listPeriodsResponse } },
  problems: [],
  async handle({ query, orgDb }, deps) {
    const current = monthOf(deps.nowMicros());
    const found = await orgDb.transaction(
      async (inside) => ({
        first: await findFirstMonth(inside),
        closings: await listPeriodClosings(inside),
        frozen: await listFrozenSums(inside),
      }),
      'repeatable read',
    );
    const closed = new Map(found.closings.map((closing) => [closing.month, closing]));
    const first = [found.first, found.closings[0]?.month, current]
      .filter((month) => month !== undefined)
      .sort()[0];
    const months = monthsBetween(first ?? current, current).reverse();
    const shown = months.slice(query.offset, query.offset + query.limit);
    const oldest = found.closings[0];
    const closingOf = (month: Month) =>
      closed.get(month) ?? (oldest && month < oldest.month ? { ...oldest, month } : undefined);
    return {
      status: 200,
      body: {
        periods: shown.map((month) => presentListedPeriod(month, closingOf(month), found.frozen.get(month))),
        count: shown.length,
        offset: query.offset,
        has_more: months.length > query.offset + query.limit,
      },
    };
  },
});

/** Everything that a month's answer tells, in one snapshot. */
async function readPeriod(orgDb: OrgDb, period: Month): Promise<PeriodFacts> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const window: UsageQuery = {
      dimension: 'provider',
      filter: {},
      fromMicros: startOfMonth(period),
      toMicros: endOfMonth(period),
      limit: 1,
      offset: 0,
    };
    return {
      period,
      closing: await findPeriodClosing(inside, period),
      frozen: await findFrozenTotals(inside, period),
      booked: await sumUsage(inside, { ...window, view: { kind: 'books' }, only: 'adjustments' }),
      adjustments: await sumUsage(inside, { ...window, view: { kind: 'now' }, only: 'adjustments' }),
      current: await sumUsage(inside, { ...window, view: { kind: 'now' } }),
      billed: await listBilledTotals(inside, { provider: null, ...billedDaysOf(period) }),
      frozenBills: await listFrozenBills(inside, period),
      restated: await listBilledAdjustments(inside, { month: period }),
    };
  }, 'repeatable read');
}

const readOnePeriod = defineEndpoint({
  operationId: 'getPeriod',
  method: 'get',
  path: `${PERIODS_PATH}/{period}`,
  tag: 'Periods',
  summary: 'A month: as it was closed, what came later, and as it is known now',
  access: { scope: 'usage:read', workspace: 'refused' },
  params: periodParams,
  responses: { 200: { description: 'The month', schema: periodResponse } },
  problems: ['invalid_parameter', 'not_found'],
  async handle({ params, orgDb }, deps) {
    const current = monthOf(deps.nowMicros());
    if (params.period > current)
      throw new DomainError('not_found', `${params.period} has not begun; ask for a month up to ${current}`);
    return { status: 200, body: presentPeriod(await readPeriod(orgDb, params.period)) };
  },
});

const close = defineEndpoint({
  operationId: 'closePeriod',
  method: 'post',
  path: `${PERIODS_PATH}/{period}/close`,
  tag: 'Periods',
  summary: 'Close a month: its totals and bills never move again',
  description:
    'Months that are over (UTC) close in order; the first closing takes all earlier months along. What changes later is an adjustment, dated on the day on which it comes. Closing a closed month changes nothing.',
  access: { scope: 'org:admin', workspace: 'refused' },
  params: periodParams,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The closed month', schema: periodResponse } },
  problems: ['invalid_parameter', 'period_not_over', 'period_out_of_order'],
  async handle({ params, orgDb, caller, requestId }, deps) {
    await closePeriod(deps.database, orgDb.orgId, {
      month: params.period,
      closedBy: caller.keyId,
      nowMicros: deps.nowMicros(),
      record: (inside) =>
        recordAction(inside, { caller, requestId }, 'period.closed', { type: 'period', id: params.period }),
    });
    return { status: 200, body: presentPeriod(await readPeriod(orgDb, params.period)) };
  },
});

export const periodEndpoints: readonly Endpoint[] = [listPeriods, readOnePeriod, close];
