import { useDeferredValue } from 'react';
import { type components, query } from '../../api/client';
import { useFilter, useSetFilters, withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { PROVIDER_OPTIONS, providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Select, TextField } from '../../parts/forms/Fields';
import { Chip } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import css from './Prices.module.css';
import { PricesPage } from './PricesPage';
import { Rate } from './Rate';

type Price = components['schemas']['PriceRecord'];

const ALL_PROVIDERS = [{ value: '', label: 'All providers' }, ...PROVIDER_OPTIONS];
/** Milliseconds for which the list is not asked for again: it changes at most daily. */
const FRESH_MS = 60_000;

/** The list of prices with its search. The whole list is one answer, so the search runs in the page. */
export default function Prices() {
  const prices = query.useQuery('get', '/api/v1/pricing', {}, { staleTime: FRESH_MS });
  const [search, setSearch] = useFilter<string>('search', '');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const setFilters = useSetFilters();
  const offset = useOffset();
  const words = useDeferredValue(search).trim().toLowerCase();
  if (prices.isPending)
    return (
      <PricesPage>
        <Loading />
      </PricesPage>
    );
  if (prices.error)
    return (
      <PricesPage>
        <ErrorState error={prices.error} retry={() => void prices.refetch()} />
      </PricesPage>
    );
  const found = prices.data.records.filter(
    (price) =>
      (provider === '' || price.provider === provider) &&
      (words === '' || [price.model, ...price.aliases].some((name) => name.toLowerCase().includes(words))),
  );
  const rows = found.slice(offset, offset + PAGE_ROWS);
  const clear = () => setFilters({ search: undefined, provider: undefined });
  return (
    <PricesPage>
      <div className={css.filters}>
        <TextField
          label="Search"
          type="search"
          value={search}
          onChange={setSearch}
          placeholder="Model or alias"
        />
        <Select label="Provider" value={provider} options={ALL_PROVIDERS} onChange={setProvider} />
        <p className={css.note} role="status">
          {count(found.length)} of {count(prices.data.count)} prices, list of{' '}
          {time(newest(prices.data.records))}
        </p>
      </div>
      {rows.length === 0 ? (
        <Empty title="No price matches">
          <Button onPress={clear}>Clear filters</Button>
        </Empty>
      ) : (
        <DataTable
          caption="Prices"
          csv={withQuery('/api/v1/pricing', { provider, format: 'csv' })}
          columns={COLUMNS}
          rows={rows}
          rowKey={(price) => price.id}
          more={<Pager page={{ count: rows.length, offset, has_more: offset + PAGE_ROWS < found.length }} />}
        />
      )}
    </PricesPage>
  );
}

const newest = (prices: readonly Price[]) =>
  prices.reduce((last, price) => (price.updated_at > last ? price.updated_at : last), '1970-01-01T00:00:00Z');

const COLUMNS: Column<Price>[] = [
  {
    id: 'model',
    head: 'Model',
    cell: (price) => (
      <>
        <span title={price.aliases.length > 0 ? `Also: ${price.aliases.join(', ')}` : undefined}>
          {price.model}
        </span>{' '}
        {price.disputed && <Chip kind="warn">Sources differ</Chip>}
      </>
    ),
  },
  { id: 'provider', head: 'Provider', cell: (price) => providerName(price.provider) },
  { id: 'input', head: 'Input', isNumber: true, cell: (price) => <Rate value={price.in_per_mtok} /> },
  { id: 'output', head: 'Output', isNumber: true, cell: (price) => <Rate value={price.out_per_mtok} /> },
  { id: 'read', head: 'Cache read', isNumber: true, cell: (price) => <Rate value={price.cache_read} /> },
  {
    id: 'write',
    head: 'Cache write 5 min',
    isNumber: true,
    cell: (price) => <Rate value={price.cache_creation} />,
  },
  {
    id: 'write1h',
    head: '1 h',
    isNumber: true,
    cell: (price) => <Rate value={price.cache_creation_1h} />,
  },
  {
    id: 'batch',
    head: 'Batch',
    isNumber: true,
    cell: (price) => (price.batch_multiplier === null ? '–' : `× ${price.batch_multiplier}`),
  },
  {
    id: 'days',
    head: 'In force',
    cell: (price) =>
      price.effective_from || price.effective_to
        ? `${price.effective_from ?? '…'} – ${price.effective_to ?? 'today'}`
        : 'always',
  },
];
