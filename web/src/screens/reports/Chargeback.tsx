import { Link } from 'wouter';
import { query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count } from '../../app/format';
import { providerName } from '../../app/providers';
import { Chart } from '../../parts/charts/Chart';
import { type Column, DataTable } from '../../parts/DataTable';
import { ButtonLink } from '../../parts/forms/Button';
import { type Option, Select } from '../../parts/forms/Fields';
import { Period, usePeriod } from '../../parts/forms/Period';
import { Cents, Money } from '../../parts/Money';
import { Card, Chip, Facts, Page } from '../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';

const PATH = '/api/v1/reports/chargeback';
const UNSET = '<unset>';
/** Bars of the chart; the table has all rows. */
const BARS = 12;

const DIMENSIONS = {
  team_id: 'Team',
  feature: 'Feature',
  project_id: 'Project',
  user_id: 'User',
  model: 'Model',
  provider: 'Provider',
  api_key_id: 'API key',
} as const;
type Dimension = keyof typeof DIMENSIONS;
/** Dimensions by which the list of calls filters. */
const FILTERED: readonly Dimension[] = ['team_id', 'feature', 'project_id', 'model', 'provider'];

type Allocation = 'default' | 'none' | 'by_share' | 'even';
const ALLOCATIONS: Option<Allocation>[] = [
  { value: 'default', label: 'As the settings say' },
  { value: 'none', label: 'Keep apart' },
  { value: 'by_share', label: 'Share out by cost' },
  { value: 'even', label: 'Share out evenly' },
];

/** Cost of each team, feature or other dimension, in cents that sum to the total. */
export default function Chargeback() {
  const [asked, setDimension] = useFilter<Dimension>('dimension', 'team_id');
  const dimension = asked in DIMENSIONS ? asked : 'team_id';
  const [allocation, setAllocation] = useFilter<Allocation>('allocation', 'default');
  const { from, to } = usePeriod();
  const label = DIMENSIONS[dimension];
  const filters = {
    dimension,
    start_date: from,
    end_date: to,
    allocation: allocation === 'default' ? undefined : allocation,
  };
  const report = query.useQuery('get', PATH, { params: { query: filters } });
  const data = report.data;
  type Row = NonNullable<typeof data>['buckets'][number];
  const name = ({ bucket }: Row) => (dimension === 'provider' ? providerName(bucket) : bucket);
  const sum = (data?.buckets ?? []).reduce((cents, row) => cents + row.cost_cents, 0);
  const isFooted = data !== undefined && sum === data.total_cost_cents;
  const hasAllocated = data !== undefined && data.allocation !== 'none';
  const unset = data?.buckets.find(({ bucket }) => bucket === UNSET);
  const columns: Column<Row>[] = [
    {
      id: 'bucket',
      head: label,
      cell: (row) =>
        row.bucket === UNSET ? (
          <Chip kind="warn">{UNSET}</Chip>
        ) : FILTERED.includes(dimension) ? (
          <Link href={withQuery('/events', { [dimension]: row.bucket, from, to })}>{name(row)}</Link>
        ) : (
          name(row)
        ),
      foot: `Sum of ${count(data?.count ?? 0)} rows${isFooted ? ' ✓' : ''}`,
    },
    {
      id: 'cents',
      head: 'To book',
      isNumber: true,
      cell: (row) => <Cents cents={row.cost_cents} />,
      foot: <Cents cents={data?.total_cost_cents} />,
    },
    { id: 'cost', head: 'Cost of its calls', isNumber: true, cell: (row) => <Money usd={row.cost_usd} /> },
    ...(hasAllocated
      ? [
          {
            id: 'allocated',
            head: 'Shared out to it',
            isNumber: true,
            cell: (row: Row) => <Money usd={row.allocated_usd} />,
          },
        ]
      : []),
    { id: 'tokens', head: 'Tokens', isNumber: true, cell: (row) => count(row.tokens) },
    { id: 'rows', head: 'Calls', isNumber: true, cell: (row) => count(row.rows) },
  ];
  return (
    <Page
      title="Chargeback"
      lead="Cost to book on teams, features or projects. The cents of all rows sum to the total."
      filters={
        <>
          <Period />
          <Select
            label="By"
            value={dimension}
            onChange={setDimension}
            options={Object.entries(DIMENSIONS).map(([value, text]) => ({
              value: value as Dimension,
              label: text,
            }))}
          />
          <Select label="Spend of no row" value={allocation} onChange={setAllocation} options={ALLOCATIONS} />
        </>
      }
    >
      {report.isPending ? (
        <Loading rows={8} />
      ) : report.error ? (
        <ErrorState error={report.error} retry={() => void report.refetch()} />
      ) : !data || data.count === 0 ? (
        <Empty title="No cost in these days">
          <p>
            This screen books the cost of calls on teams, features and projects. Choose other days, or send a
            first call.
          </p>
          <ButtonLink href="/first-call">Send a first call</ButtonLink>
        </Empty>
      ) : (
        <>
          {unset && (
            <Notice kind="warn">
              {count(unset.rows)} calls with a cost of <Money usd={unset.cost_usd} /> have no{' '}
              {label.toLowerCase()}. Label your calls: <Link href="/first-call">First call</Link> shows how.
            </Notice>
          )}
          {data.adjustments && (
            <Notice>
              These totals contain later changes of closed months: <Money usd={data.adjustments.cost_usd} />{' '}
              of {count(data.adjustments.call_count)} calls.
            </Notice>
          )}
          {data.allocated && (
            <Card title="Shared out">
              <Facts
                items={[
                  [
                    `Calls without ${label.toLowerCase()}`,
                    <Money key="unset" usd={data.allocated.unset_usd} />,
                  ],
                  ['Billed, not observed', <Money key="unobserved" usd={data.allocated.unobserved_usd} />],
                  ['Fees', <Money key="fees" usd={data.allocated.fees_usd} />],
                  ['Not compared yet, in no row', <Money key="not" usd={data.allocated.not_compared_usd} />],
                ]}
              />
            </Card>
          )}
          <Card>
            <Chart
              title={`Cost by ${label.toLowerCase()}${data.count > BARS ? `, the ${BARS} largest` : ''}`}
              rows={data.buckets.slice(0, BARS)}
              xName={label}
              x={name}
              series={[
                {
                  id: 'cost',
                  name: 'To book',
                  kind: 'bar',
                  value: (row) => row.cost_cents / 100,
                },
              ]}
              unit="usd"
              height={220}
            />
          </Card>
          <DataTable
            caption={`Cost by ${label.toLowerCase()}`}
            columns={columns}
            rows={data.buckets}
            rowKey={({ bucket }) => bucket}
            csv={withQuery(PATH, { ...filters, format: 'csv' })}
          />
        </>
      )}
    </Page>
  );
}
