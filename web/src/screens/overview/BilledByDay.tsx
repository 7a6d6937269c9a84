import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { type Decimal, shortDay } from '../../app/format';
import { providerName } from '../../app/providers';
import { Chart, type ChartSeries } from '../../parts/charts/Chart';
import { exactSum } from '../../parts/exactSum';
import { addDays, daysBetween, usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useGaps } from './useGaps';

interface Day {
  day: string;
  /** By provider. */
  billed: Map<string, Decimal>;
  observed: Decimal | undefined;
  before: Decimal | undefined;
}

/** Billed cost by provider as bars, observed cost as a line, and the observed cost of the days before as a faint line. */
export function BilledByDay() {
  const period = usePeriod();
  const { previous } = period;
  const gaps = useGaps(period);
  const observed = query.useQuery('get', '/api/v1/dashboard/breakdown/{dimension}', {
    params: {
      path: { dimension: 'day' },
      query: { since: previous.from, until: period.to },
    },
  });
  if (gaps.isLoading || observed.isLoading) return <Loading label="Billed and observed cost" rows={6} />;
  const error = gaps.error ?? observed.error;
  if (error)
    return (
      <ErrorState
        error={error}
        retry={() => {
          void gaps.refetch();
          void observed.refetch();
        }}
      />
    );
  const observedOn = new Map<string, Decimal>(
    (observed.data?.items ?? []).map((item) => [item.key, item.cost_usd]),
  );
  const rows: Day[] = daysBetween(period.from, period.to).map((day) => ({
    day,
    billed: new Map(),
    observed: observedOn.get(day),
    before: observedOn.get(addDays(day, -period.days)),
  }));
  const byDay = new Map(rows.map((row) => [row.day, row]));
  for (const { bucket, provider, provider_cost_usd } of gaps.rows ?? []) {
    const billed = byDay.get(bucket.slice(0, 10))?.billed;
    billed?.set(provider, exactSum([billed.get(provider) ?? 0, provider_cost_usd]));
  }
  const providers = [...new Set((gaps.rows ?? []).map(({ provider }) => provider))].sort();
  const foot = (values: (Decimal | undefined)[]) => (
    <Money usd={exactSum(values.filter((value) => value !== undefined))} />
  );
  const series: ChartSeries<Day>[] = [
    ...providers.map(
      (provider): ChartSeries<Day> => ({
        id: provider,
        name: `${providerName(provider)}, billed`,
        kind: 'bar',
        stack: 'billed',
        value: (row) => row.billed.get(provider),
        foot: foot(rows.map((row) => row.billed.get(provider))),
      }),
    ),
    {
      id: 'observed',
      name: 'Observed',
      kind: 'line',
      color: 6,
      value: (row) => row.observed,
      foot: foot(rows.map((row) => row.observed)),
    },
    {
      id: 'before',
      name: `Observed, ${period.days} days before`,
      kind: 'line',
      color: 'ghost',
      value: (row) => row.before,
      foot: foot(rows.map((row) => row.before)),
    },
  ];
  return (
    <Card>
      {gaps.isPartial && (
        <Notice kind="warn">Billed cost is compared for the last 90 days. Earlier days show no bars.</Notice>
      )}
      <Chart
        title="Billed and observed cost by day"
        rows={rows}
        xName="Day (UTC)"
        x={(row) => row.day}
        xShort={shortDay}
        series={series}
        unit="usd"
        rowHref={(row) => withQuery('/events', { from: row.day, to: row.day })}
      />
    </Card>
  );
}
