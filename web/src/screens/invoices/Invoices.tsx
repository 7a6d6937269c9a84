import { useLocation } from 'wouter';
import { query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { day, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { exactSum } from '../../parts/exactSum';
import { Button, ButtonLink } from '../../parts/forms/Button';
import { MonthField } from '../../parts/forms/DateField';
import { ClearFilters, FilterSelect, optionsOf, ProviderFilter } from '../../parts/forms/Filters';
import { Amount } from '../../parts/Money';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { UploadInvoice } from './UploadInvoice';
import { isWorking, type ListedInvoice, REASON, STATUS, TIE } from './words';

const PATH = '/api/v1/reconciliation/invoices';
const POLL_MS = 2_000;

export default function Invoices() {
  const may = useMay();
  const [, go] = useLocation();
  const [status, setStatus] = useFilter<string>('status', '');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [period, setPeriod] = useFilter<string>('period', '');
  const offset = useOffset();
  const filters = {
    status: (status || undefined) as ListedInvoice['status'] | undefined,
    provider: provider || undefined,
    period: period || undefined,
  };
  const invoices = query.useQuery(
    'get',
    PATH,
    { params: { query: { ...filters, limit: PAGE_ROWS, offset } } },
    { refetchInterval: ({ state }) => (state.data?.invoices.some(isWorking) ? POLL_MS : false) },
  );
  const isFiltered = status !== '' || provider !== '' || period !== '';
  const clear = () => go('/invoices');
  return (
    <Page
      title="Invoices"
      lead="Each invoice is read line by line and compared with the provider’s bill and your own calls."
      actions={<ButtonLink href="/invoices/prepaid">Prepaid credit</ButtonLink>}
      filters={
        <>
          <FilterSelect label="Status" value={status} onChange={setStatus} options={optionsOf(STATUS)} />
          <ProviderFilter value={provider} onChange={setProvider} />
          <MonthField label="Period" value={period} onChange={setPeriod} />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {may({ scope: 'billing:write' }) && <UploadInvoice />}
      {invoices.isPending ? (
        <Loading />
      ) : invoices.error ? (
        <ErrorState error={invoices.error} retry={() => void invoices.refetch()} />
      ) : invoices.data.invoices.length > 0 ? (
        <DataTable
          caption="Invoices"
          columns={columnsOf(invoices.data.invoices)}
          rows={invoices.data.invoices}
          rowKey={({ id }) => id}
          rowLabel={({ number, filename }) => `Open invoice ${number ?? filename}`}
          onOpen={({ id }) => go(`/invoices/${id}`)}
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={<Pager page={invoices.data} />}
        />
      ) : isFiltered ? (
        <Empty title="No invoice matches">
          <Button onPress={clear}>Clear filters</Button>
        </Empty>
      ) : (
        <Empty title="No invoices yet">
          <p>
            Upload the PDF that a provider sent. This screen then shows its lines, whether its sums agree, and
            how it compares with the provider’s bill.
          </p>
        </Empty>
      )}
    </Page>
  );
}

function columnsOf(rows: readonly ListedInvoice[]): Column<ListedInvoice>[] {
  const currencies = new Set(rows.map(({ currency }) => currency));
  const [currency] = currencies;
  const totals = rows.flatMap(({ totals: { total } }) => total ?? []);
  const hasFoot = currencies.size === 1 && totals.length === rows.length && rows.length > 1;
  return [
    {
      id: 'number',
      head: 'Invoice',
      cell: ({ number, filename }) => number ?? filename,
      foot: hasFoot ? `Sum of ${rows.length} rows` : undefined,
    },
    { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
    { id: 'status', head: 'Status', isWide: true, cell: (invoice) => <Status invoice={invoice} /> },
    {
      id: 'period',
      head: 'Period',
      cell: ({ period_start: from, period_end: to }) => (from ? `${from} – ${to}` : '–'),
    },
    {
      id: 'total',
      head: 'Total',
      isNumber: true,
      cell: ({ totals: { total }, currency: own }) => <Amount value={total} currency={own} />,
      foot: hasFoot ? <Amount value={exactSum(totals)} currency={currency ?? null} /> : undefined,
    },
    {
      id: 'difference',
      head: 'Invoice − bill',
      isNumber: true,
      cell: ({ tie_out: tie }) => <Amount value={tie?.difference} currency={tie?.currency ?? null} />,
    },
    {
      id: 'uploaded',
      head: 'Uploaded',
      cell: ({ created_at }) => <span title={time(created_at)}>{day(created_at)}</span>,
    },
  ];
}

function Status({ invoice }: { invoice: ListedInvoice }) {
  const { label, kind } = STATUS[invoice.status];
  return (
    <>
      <Chip kind={kind}>{label}</Chip> {invoice.duplicate_of && <Chip kind="warn">Duplicate</Chip>}{' '}
      {invoice.replaced_by && <Chip>Replaced</Chip>}{' '}
      <span style={{ color: 'var(--muted)' }}>
        {invoice.status === 'needs_review'
          ? invoice.review_reasons.map((reason) => REASON[reason]).join(', ')
          : invoice.status === 'failed'
            ? invoice.failure_message
            : invoice.status === 'reconciled' && invoice.tie_out
              ? TIE[invoice.tie_out.tie].label.toLowerCase()
              : ''}
      </span>
    </>
  );
}
