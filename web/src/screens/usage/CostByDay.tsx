import { useQueries } from '@tanstack/react-query';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { type Decimal, shortDay } from '../../app/format';
import { Chart, type ChartSeries } from '../../parts/charts/Chart';
import { exactSum } from '../../parts/exactSum';
import { daysBetween, usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';
import { DIMENSIONS, type Dimension, isUnset } from './dimensions';

/** Keys with an area of their own; the others are one area. */
const AREAS = 5;
/** Dimensions by which the API filters days. */
const FILTERED: readonly Dimension[] = ['provider', 'team', 'feature', 'project'];

/** Cost by day: stacked by the most expensive keys where the API filters by them, else one area. */
export function CostByDay({
  dimension,
  keys,
  name,
}: {
  dimension: Dimension;
  keys: readonly string[];
  name: (key: string) => string;
}) {
  const { from, to } = usePeriod();
  const top = FILTERED.includes(dimension) ? keys.filter((key) => !isUnset(key)).slice(0, AREAS) : [];
  const days = (filters: Record<string, string>) =>
    query.queryOptions('get', '/api/v1/dashboard/breakdown/{dimension}', {
      params: { path: { dimension: 'day' }, query: { since: from, until: to, ...filters } },
    });
  const filter = DIMENSIONS[dimension].filter ?? '';
  const answers = useQueries({
    queries: [days({}), ...top.map((key) => days({ [filter]: key }))],
  });
  const failed = answers.find(({ error }) => error);
  if (failed) return <ErrorState error={failed.error} retry={() => void failed.refetch()} />;
  const loaded = answers.map(({ data }) => data);
  if (loaded.some((data) => data === undefined)) return <Loading label="Cost by day" rows={6} />;
  const byDay = loaded.map(
    (data) => new Map<string, Decimal>(data?.items.map((item) => [item.key, item.cost_usd])),
  );
  const totals = loaded.map((data) => data?.total_cost_usd ?? 0);
  const rest = ([all = 0, ...parts]: Decimal[]) => exactSum([all, ...parts.map((part) => negative(part))]);
  const others = keys.filter((key) => !top.includes(key));
  const restName = top.length === 0 ? 'All calls' : others.every(isUnset) ? 'Not set' : 'Others';
  const series: ChartSeries<string>[] = [
    ...top.map(
      (key, at): ChartSeries<string> => ({
        id: key,
        name: name(key),
        kind: 'area',
        stack: 'cost',
        value: (day) => byDay[at + 1]?.get(day) ?? 0,
        foot: <Money usd={totals[at + 1]} />,
      }),
    ),
    ...(others.length > 0
      ? [
          {
            id: '',
            name: restName,
            kind: 'area' as const,
            stack: 'cost',
            value: (day: string) => rest(byDay.map((one) => one.get(day) ?? 0)),
            foot: <Money usd={rest(totals)} />,
          },
        ]
      : []),
  ];
  return (
    <Card>
      <Chart
        title={top.length === 0 ? 'Cost by day' : `Cost by day and ${dimension}`}
        rows={daysBetween(from, to)}
        xName="Day (UTC)"
        x={(day) => day}
        xShort={shortDay}
        series={series}
        unit="usd"
        rowHref={(day) => withQuery('/events', { from: day, to: day })}
      />
    </Card>
  );
}

const negative = (value: Decimal) => {
  const text = String(value);
  return text.startsWith('-') ? text.slice(1) : `-${text}`;
};
