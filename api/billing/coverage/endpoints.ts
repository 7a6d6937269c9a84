import { DomainError } from '../../../domain/errors.js';
import { MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import { readCoverage } from '../../../usecases/reconciliation/coverage.js';
import { endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { dayWindowOf, providerFilter } from '../../query.js';
import { COVERAGE_DAYS_MAX, coverageCsv, coverageQuery, coverageResponse, presentCoverage } from './wire.js';

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get('/api/v1/reconciliation/coverage', {
  operationId: 'getCoverage',
  summary: 'Share of the billed usage that was observed',
  description:
    'Of tokens and of dollars, by provider, account, model, provider key or day, of the last 30 days, or between from and to. Every group sums to the totals. Unknown amounts are listed apart and lower no share: charges that no call can show, days before the first event, days that were not compared. By key, bills and calls are compared as they are; the other groups read the latest runs.',
  query: coverageQuery,
  csv: coverageCsv,
  responses: {
    200: { description: 'A page of groups, and the totals', schema: coverageResponse },
  },
  problems: ['invalid_parameter', 'invalid_range'],
  async handle({ query, orgDb }, deps) {
    const { fromDay, toDay } = dayWindowOf(query.from, query.to, deps.nowMicros());
    assertSpan(fromDay, toDay);
    const provider = providerFilter(query.provider);
    const asked = { fromDay, toDay, provider, accountId: query.provider_account_id };
    const { groups, totals, days } = await readCoverage(orgDb, query.group_by, asked);
    const { shown, page } = pageOf(groups.slice(query.offset, query.offset + query.limit + 1), query);
    const body = presentCoverage(query.group_by, { fromDay, toDay }, shown, { days, figures: totals });
    return { status: 200, body: { ...body, ...page } };
  },
});

function assertSpan(fromDay: string, toDay: string): void {
  if (microsOfDay(toDay) - microsOfDay(fromDay) <= BigInt(COVERAGE_DAYS_MAX) * MICROS_PER_DAY) return;
  const message = `must lie at most ${COVERAGE_DAYS_MAX} days before to`;
  throw new DomainError('invalid_range', `from: ${message}`, {
    issues: [{ in: 'query', field: 'from', message }],
  });
}

export const coverageEndpoints = routes.endpoints;
