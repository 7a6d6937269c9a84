import { useState } from 'react';
import { Link } from 'wouter';
import { query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, percent } from '../../app/format';
import { providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button, ButtonLink } from '../../parts/forms/Button';
import { Select } from '../../parts/forms/Fields';
import { Period, usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card, Chip, Facts, Page } from '../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { CostByDay } from './CostByDay';
import { DIMENSION_OPTIONS, DIMENSIONS, type Dimension, isUnset } from './dimensions';

const PATH = '/api/v1/usage/summary';
/** Rows that show at first; sessions are many. */
const ROWS_FIRST = 100;

export default function Usage() {
  const [asked, setDimension] = useFilter<Dimension>('group_by', 'model');
  const [shown, setShown] = useState(ROWS_FIRST);
  const dimension = asked in DIMENSIONS ? asked : 'model';
  const { label, filter } = DIMENSIONS[dimension];
  const { from, to } = usePeriod();
  const filters = { from, to, group_by: dimension };
  const usage = query.useQuery('get', PATH, { params: { query: filters } });
  const data = usage.data;
  type Row = NonNullable<typeof data>['breakdown'][number];
  const name = (key: string) =>
    isUnset(key) ? 'not set' : dimension === 'provider' ? providerName(key) : key;
  const columns: Column<Row>[] = data
    ? [
        {
          id: 'key',
          head: label,
          cell: ({ key }) =>
            isUnset(key) ? (
              <Chip kind="warn">not set</Chip>
            ) : filter ? (
              <Link href={withQuery('/events', { [filter]: key, from, to })}>{name(key)}</Link>
            ) : (
              name(key)
            ),
          foot: `All ${count(data.breakdown.length)} rows`,
        },
        {
          id: 'cost',
          head: 'Cost',
          isNumber: true,
          cell: (row) => <Money usd={row.cost_usd} />,
          foot: <Money usd={data.total_cost_usd} />,
        },
        {
          id: 'share',
          head: 'Share',
          isNumber: true,
          cell: (row) => (data.total_cost_usd === 0 ? '–' : percent(row.cost_usd / data.total_cost_usd)),
        },
        {
          id: 'calls',
          head: 'Calls',
          isNumber: true,
          cell: (row) => count(row.call_count),
          foot: count(data.call_count),
        },
        {
          id: 'input',
          head: 'Input tokens',
          isNumber: true,
          cell: (row) => count(row.input_tokens),
          foot: count(data.total_input_tokens),
        },
        {
          id: 'output',
          head: 'Output tokens',
          isNumber: true,
          cell: (row) => count(row.output_tokens),
          foot: count(data.total_output_tokens),
        },
        {
          id: 'read',
          head: 'Cache read',
          isNumber: true,
          cell: (row) => count(row.cache_read),
          foot: count(data.total_cache_read_tokens),
        },
        {
          id: 'written',
          head: 'Cache written',
          isNumber: true,
          cell: (row) => count(row.cache_creation),
          foot: count(data.total_cache_creation_tokens),
        },
        {
          id: 'unpriced',
          head: 'Without a price',
          isNumber: true,
          cell: (row) => count(row.unpriced_calls),
          foot: count(data.unpriced_calls),
        },
      ]
    : [];
  const input = data
    ? data.total_input_tokens + data.total_cache_read_tokens + data.total_cache_creation_tokens
    : 0;
  return (
    <Page
      title="Usage"
      lead="Cost and tokens of observed calls, at your prices."
      actions={<ButtonLink href={withQuery('/events', { from, to })}>Open the calls</ButtonLink>}
      filters={
        <>
          <Period />
          <Select label="Group by" value={dimension} options={DIMENSION_OPTIONS} onChange={setDimension} />
        </>
      }
    >
      {usage.isPending ? (
        <Loading rows={8} />
      ) : usage.error ? (
        <ErrorState error={usage.error} retry={() => void usage.refetch()} />
      ) : !data || data.call_count === 0 ? (
        <Empty title="No call in these days">
          <p>
            This screen shows cost and tokens by model, team, feature and more. Choose other days, or send a
            first call.
          </p>
          <ButtonLink href="/first-call">Send a first call</ButtonLink>
        </Empty>
      ) : (
        <>
          {data.adjustments && (
            <Notice>
              These totals contain later changes of closed months: <Money usd={data.adjustments.cost_usd} />{' '}
              of {count(data.adjustments.call_count)} calls.
            </Notice>
          )}
          {data.unpriced_calls > 0 && (
            <Notice kind="warn">
              {count(data.unpriced_calls)} calls have no price; they add nothing to the cost.{' '}
              <Link href="/prices">Prices</Link>
            </Notice>
          )}
          <Card>
            <Facts
              items={[
                ['Cost', <Money key="cost" usd={data.total_cost_usd} />],
                ['Calls', count(data.call_count)],
                ['Input read from cache', input === 0 ? '–' : percent(data.total_cache_read_tokens / input)],
                ['Computed from prices', <Money key="computed" usd={data.computed_cost_usd} />],
                ['Reported by clients', <Money key="reported" usd={data.reported_cost_usd} />],
              ]}
            />
          </Card>
          <CostByDay dimension={dimension} keys={data.breakdown.map(({ key }) => key)} name={name} />
          <DataTable
            caption={`Usage by ${label.toLowerCase()}`}
            columns={columns}
            rows={data.breakdown.slice(0, shown)}
            rowKey={({ key }) => key}
            csv={withQuery(PATH, { ...filters, format: 'csv' })}
            more={
              data.breakdown.length > shown && (
                <Button onPress={() => setShown(shown + ROWS_FIRST)}>
                  Show {count(Math.min(ROWS_FIRST, data.breakdown.length - shown))} more of{' '}
                  {count(data.breakdown.length)}
                </Button>
              )
            }
          />
        </>
      )}
    </Page>
  );
}
