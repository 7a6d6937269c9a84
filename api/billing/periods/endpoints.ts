import { monthOf } from '../../../domain/billing/periods.js';
import { DomainError } from '../../../domain/errors.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { closePeriod, listMonths, readPeriod } from '../../../usecases/billing/periods.js';
import { endpointGroup } from '../../endpoint.js';
import {
  listPeriodsQuery,
  listPeriodsResponse,
  PERIODS_PATH,
  periodParams,
  periodResponse,
  presentListedPeriod,
  presentPeriod,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Periods',
  access: {
    read: { scope: 'usage:read', workspace: 'refused' },
    write: { scope: 'org:admin', workspace: 'refused' },
  },
});

routes.get(PERIODS_PATH, {
  operationId: 'listPeriods',
  csv: 'months',
  summary: 'Months, open and closed, newest first',
  description: 'From the month of the first call or bill to the current one (UTC).',
  query: listPeriodsQuery,
  responses: { 200: { description: 'A page of months', schema: listPeriodsResponse } },
  async handle({ query, orgDb }, deps) {
    const { months, closingOf, frozen } = await listMonths(orgDb, monthOf(deps.nowMicros()));
    const shown = months.slice(query.offset, query.offset + query.limit);
    return {
      status: 200,
      body: {
        periods: shown.map((month) => presentListedPeriod(month, closingOf(month), frozen.get(month))),
        count: shown.length,
        offset: query.offset,
        has_more: months.length > query.offset + query.limit,
      },
    };
  },
});

routes.get(`${PERIODS_PATH}/{period}`, {
  operationId: 'getPeriod',
  summary: 'A month: as it was closed, what came later, and as it is known now',
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

routes.post(`${PERIODS_PATH}/{period}/close`, {
  operationId: 'closePeriod',
  summary: 'Close a month: its totals and bills never move again',
  description:
    'Months that are over (UTC) close in order; the first closing takes all earlier months along. What changes later is an adjustment, dated on the day on which it comes. Closing a closed month changes nothing.',
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

export const periodEndpoints = routes.endpoints;
