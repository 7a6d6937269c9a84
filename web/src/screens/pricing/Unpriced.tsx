import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { count, day } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { ButtonLink } from '../../parts/forms/Button';
import { Card } from '../../parts/Page';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { PricesPage } from './PricesPage';

interface Row {
  provider: string;
  model: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  first_seen: string;
  last_seen: string;
  reason?: keyof typeof REASONS;
}

const REASONS = {
  unknown_model: 'Unknown model',
  several_prices: 'The family has several prices',
  no_price_then: 'No price on those days',
  unknown_biller: 'Unknown biller',
  priced_since: 'Has a price now: price the calls again',
};

export default function Unpriced() {
  const unpriced = query.useQuery('get', '/api/v1/pricing/unpriced', {});
  const mayWrite = useMay()({ scope: 'pricing:write' });
  if (unpriced.isPending)
    return (
      <PricesPage>
        <Loading />
      </PricesPage>
    );
  if (unpriced.error)
    return (
      <PricesPage>
        <ErrorState error={unpriced.error} retry={() => void unpriced.refetch()} />
      </PricesPage>
    );
  const { models, unmetered, assumed } = unpriced.data;
  return (
    <PricesPage>
      {models.length + unmetered.length + assumed.length === 0 && (
        <Empty title="All clear">
          <p>Each call of the last 90 days has token counts and a price that a source states.</p>
        </Empty>
      )}
      <Models
        title="Without a price"
        text="The cost of these calls is unknown. Totals contain 0 for them."
        rows={models}
        columns={[
          { id: 'reason', head: 'Reason', cell: (row) => (row.reason ? REASONS[row.reason] : '') },
          ...(mayWrite
            ? [
                {
                  id: 'act',
                  head: <span className="visually-hidden">Action</span>,
                  cell: (row: Row) => <Action row={row} />,
                },
              ]
            : []),
        ]}
      />
      <Models
        title="With an assumed rate"
        text="No source states one of their rates. Enter it as an override."
        rows={assumed}
        columns={
          mayWrite
            ? [
                {
                  id: 'act',
                  head: <span className="visually-hidden">Action</span>,
                  cell: (row) => <Action row={row} />,
                },
              ]
            : []
        }
      />
      <Models
        title="Without token counts"
        text="No price makes a cost of these calls. Switch usage on in the sender."
        rows={unmetered}
        columns={[]}
      />
    </PricesPage>
  );
}

function Action({ row }: { row: Row }) {
  if (row.reason === 'priced_since')
    return (
      <ButtonLink href={withQuery('/prices/repricing', { model: row.model, from: day(row.first_seen) })}>
        Price again
      </ButtonLink>
    );
  if (row.reason === 'unknown_biller') return <ButtonLink href="/ingest-health">Ingest health</ButtonLink>;
  return (
    <ButtonLink
      href={withQuery('/prices/overrides', {
        new: 1,
        provider: row.provider,
        model: row.model,
        from: day(row.first_seen),
      })}
    >
      Enter a price
    </ButtonLink>
  );
}

function Models({
  title,
  text,
  rows,
  columns,
}: {
  title: string;
  text: string;
  rows: readonly Row[];
  columns: Column<Row>[];
}) {
  if (rows.length === 0) return null;
  return (
    <Card title={title}>
      <p>{text}</p>
      <DataTable
        caption={title}
        csv={'/api/v1/pricing/unpriced?format=csv'}
        columns={[...COLUMNS, ...columns]}
        rows={rows}
        rowKey={(row) => `${row.provider} ${row.model}`}
      />
    </Card>
  );
}

const COLUMNS: Column<Row>[] = [
  { id: 'model', head: 'Model', cell: (row) => row.model },
  { id: 'provider', head: 'Provider', cell: (row) => providerName(row.provider) },
  { id: 'calls', head: 'Calls', isNumber: true, cell: (row) => count(row.calls) },
  { id: 'input', head: 'Input tokens', isNumber: true, cell: (row) => count(row.input_tokens) },
  { id: 'output', head: 'Output tokens', isNumber: true, cell: (row) => count(row.output_tokens) },
  { id: 'first', head: 'First', cell: (row) => day(row.first_seen) },
  { id: 'last', head: 'Last', cell: (row) => day(row.last_seen) },
];
