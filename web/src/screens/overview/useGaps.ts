import { query } from '../../api/client';
import { addDays, type Days } from '../../parts/forms/Period';

const ROWS_MAX = 10_000;

/**
 * Buckets of billed and observed cost within the days. The API answers for the last 7, 30 or 90 days; other days are cut out
 * of the 90, and older ones have no rows.
 */
export function useGaps({ name, from, to }: Days) {
  const gaps = query.useQuery('get', '/api/v1/reconciliation/gap-explorer', {
    params: { query: { period: name === 'custom' ? '90d' : name, limit: ROWS_MAX } },
  });
  const rows = gaps.data?.gaps.filter(({ bucket }) => bucket >= from && bucket < addDays(to, 1));
  /** The answer does not reach back to the first day, or has more rows than one page. */
  const isPartial =
    gaps.data !== undefined && (gaps.data.has_more || gaps.data.period.start.slice(0, 10) > from);
  return { ...gaps, rows, isPartial };
}
