import { type paths, query } from '../../api/client';
import { count, day } from '../../app/format';
import { type Column, DataTable } from '../../parts/DataTable';
import { Money } from '../../parts/Money';
import { Card, Chip, Facts } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import css from './Event.module.css';

type Cost = paths['/api/v1/events/{id}/cost']['get']['responses'][200]['content']['application/json'];
type Sum = NonNullable<Cost['computed']>;

const UNPRICED: Record<NonNullable<Cost['unpriced_reason']>, string> = {
  unknown_model: 'No price list has this model.',
  several_prices: 'Several prices match this model.',
  no_price_then: 'No price was in force at that time.',
  unknown_biller: 'It is not known who bills this call.',
  unmetered: 'The client reported no usage.',
  blocked: 'A rule blocked the call.',
};

/** The sum behind a cost: tokens × rate of each class, with the sources of the rates. */
export function CostFormula({ id }: { id: string }) {
  const cost = query.useQuery('get', '/api/v1/events/{id}/cost', { params: { path: { id } } });
  if (cost.isPending) return <Loading rows={4} label="Cost" />;
  if (cost.error) return <ErrorState error={cost.error} retry={() => void cost.refetch()} />;
  const data = cost.data;
  if (!data) return null;
  const { computed, expected, list, price } = data;
  return (
    <Card title="Cost formula">
      {data.unpriced_reason && (
        <Notice kind="warn">The cost is not known. {UNPRICED[data.unpriced_reason]}</Notice>
      )}
      {data.repriced && (
        <Notice>The prices changed since the call came in. The sum below uses the prices of today.</Notice>
      )}
      {computed && <SumTable sum={computed} title="Cost at your prices" />}
      <Facts
        items={[
          [
            'Cost of the call',
            <Money key="cost" usd={data.cost_source === 'unpriced' ? null : data.cost_usd} isExact />,
          ],
          ...(data.reported_cost_usd === null
            ? []
            : ([
                ['Reported by the client', <Money key="reported" usd={data.reported_cost_usd} isExact />],
                ['Reported less computed', <Money key="difference" usd={data.difference_usd} isExact />],
              ] as [string, React.ReactNode][])),
          ...(expected && expected.total !== computed?.total
            ? ([['The provider should charge', <Money key="expected" usd={expected.total} isExact />]] as [
                string,
                React.ReactNode,
              ][])
            : []),
          ...(list
            ? ([['At list price', <Money key="list" usd={list.total} isExact />]] as [
                string,
                React.ReactNode,
              ][])
            : []),
          ...(price
            ? ([
                ['Price of', price.priced_model],
                [
                  'In force',
                  `${price.effective_from ? day(price.effective_from) : 'always'} – ${price.effective_to ? day(price.effective_to) : 'now'}`,
                ],
                ['Source of the price', price.source],
              ] as [string, React.ReactNode][])
            : []),
        ]}
      />
      {data.own_prices.map((own) => (
        <p key={own.id} className={css.hint}>
          {own.kind === 'contract' ? 'Contract' : 'Override'}
          {own.discount_percent === null ? '' : ` of ${own.discount_percent} % off`} since{' '}
          {own.effective_from}
          {own.source &&
            `: ${own.source.document}${own.source.clause ? `, clause ${own.source.clause}` : ''}`}
        </p>
      ))}
      {data.price_gaps.length > 0 && <p className={css.hint}>Assumed: {data.price_gaps.join(', ')}.</p>}
    </Card>
  );
}

function SumTable({ sum, title }: { sum: Sum; title: string }) {
  const hasFactor = sum.multiplier !== 1;
  const columns: Column<Sum['lines'][number]>[] = [
    {
      id: 'class',
      head: 'Class',
      cell: (line) => (
        <>
          {line.token_class.replaceAll('_', ' ')} {line.assumed && <Chip kind="warn">assumed rate</Chip>}{' '}
          {line.disputed && <Chip kind="warn">sources differ</Chip>}
        </>
      ),
      foot: hasFactor ? `Sum × ${sum.multiplier}` : `Sum of ${sum.lines.length} rows`,
    },
    { id: 'tokens', head: 'Tokens', isNumber: true, cell: (line) => count(line.tokens) },
    {
      id: 'rate',
      head: '× $ per million',
      isNumber: true,
      cell: (line) => <Money usd={line.usd_per_mtok} isExact />,
    },
    {
      id: 'amount',
      head: '= Amount',
      isNumber: true,
      cell: (line) => <Money usd={line.amount} isExact />,
      foot: <Money usd={sum.total} isExact />,
    },
    { id: 'sources', head: 'Source', cell: (line) => line.sources.join(', ').replaceAll('_', ' ') },
  ];
  return <DataTable caption={title} columns={columns} rows={sum.lines} rowKey={(line) => line.token_class} />;
}
