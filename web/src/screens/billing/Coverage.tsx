import { Link } from 'wouter';
import { type components, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, percent } from '../../app/format';
import { providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { DateField } from '../../parts/forms/DateField';
import { Select } from '../../parts/forms/Fields';
import { ProviderFilter } from '../../parts/forms/Filters';
import { Money } from '../../parts/Money';
import { Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { Tabs } from '../../parts/Tabs';
import { TABS } from './connectors';

const PATH = '/api/v1/reconciliation/coverage';
type Group = components['schemas']['CoverageGroup'];
type GroupBy = 'provider' | 'account' | 'model' | 'key' | 'day';
type Figures = Omit<Group, 'provider' | 'provider_account_id' | 'model' | 'provider_key_id' | 'day'>;

const GROUPS: { value: GroupBy; label: string }[] = [
  { value: 'provider', label: 'Provider' },
  { value: 'account', label: 'Account' },
  { value: 'model', label: 'Model' },
  { value: 'key', label: 'Provider key' },
  { value: 'day', label: 'Day' },
];

/** The share of the bills that the reported calls explain. */
export default function Coverage() {
  const [groupBy, setGroupBy] = useFilter<GroupBy>('group_by', 'provider');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [from, setFrom] = useFilter<string>('from', '');
  const [to, setTo] = useFilter<string>('to', '');
  const offset = useOffset();
  const filters = {
    group_by: groupBy,
    provider: provider || undefined,
    from: from || undefined,
    to: to || undefined,
  };
  const coverage = query.useQuery('get', PATH, {
    params: { query: { ...filters, limit: PAGE_ROWS, offset } },
  });
  return (
    <Page
      title="Coverage"
      lead="How much of each bill your own calls explain. The rest is not observed, not yet compared, or wrong."
      tabs={<Tabs label="Sources of bills" tabs={TABS} />}
      filters={
        <>
          <Select label="Group by" value={groupBy} options={GROUPS} onChange={setGroupBy} />
          <ProviderFilter value={provider} onChange={setProvider} />
          <DateField label="From (UTC)" value={from || (coverage.data?.from ?? '')} onChange={setFrom} />
          <DateField label="To (UTC)" value={to || (coverage.data?.to ?? '')} onChange={setTo} />
        </>
      }
    >
      {coverage.isPending ? (
        <Loading />
      ) : coverage.error ? (
        <ErrorState error={coverage.error} retry={() => void coverage.refetch()} />
      ) : coverage.data.groups.length === 0 ? (
        <Empty title="No bills and no calls in this period">
          <p>
            Choose other days, <Link href="/connections">connect a provider</Link> or{' '}
            <Link href="/connections/imports">upload a bill</Link>.
          </p>
        </Empty>
      ) : (
        <DataTable
          caption={`Coverage ${coverage.data.from} to ${coverage.data.to}, by ${groupBy}`}
          columns={columnsOf(groupBy, coverage.data.totals)}
          rows={coverage.data.groups}
          rowKey={(group) =>
            [group.provider, group.provider_account_id, group.model, group.provider_key_id, group.day].join(
              ' ',
            )
          }
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={<Pager page={coverage.data} />}
        />
      )}
    </Page>
  );
}

function columnsOf(groupBy: GroupBy, totals: Figures): Column<Group>[] {
  const share = (value: number | null) => (value === null ? '–' : percent(value));
  const money = (id: keyof Figures, head: string): Column<Group> => ({
    id,
    head,
    isNumber: true,
    cell: (group) => <Money usd={group[id]} />,
    foot: <Money usd={totals[id]} />,
  });
  return [
    {
      id: 'group',
      head: GROUPS.find(({ value }) => value === groupBy)?.label,
      cell: (group) => nameOf(groupBy, group),
      foot: 'Total of all groups',
    },
    {
      id: 'calls',
      head: 'Calls',
      isNumber: true,
      cell: ({ calls }) => count(calls),
      foot: count(totals.calls),
    },
    {
      id: 'tokens',
      head: 'Billed tokens',
      isNumber: true,
      cell: (group) => count(group.billed_tokens),
      foot: count(totals.billed_tokens),
    },
    {
      id: 'token_share',
      head: 'Tokens covered',
      isNumber: true,
      cell: (group) => share(group.token_share),
      foot: share(totals.token_share),
    },
    money('billed_usd', 'Billed'),
    money('explained_usd', 'Explained by calls'),
    money('not_matched_by_calls_usd', 'Not explained'),
    {
      id: 'dollar_share',
      head: 'Dollars covered',
      isNumber: true,
      cell: (group) => share(group.dollar_share),
      foot: share(totals.dollar_share),
    },
    money('not_observable_usd', 'Not observable'),
    money('not_yet_observed_usd', 'Before the first call'),
    money('not_compared_usd', 'Not yet compared'),
  ];
}

function nameOf(groupBy: GroupBy, group: Group): string {
  const provider = group.provider ? providerName(group.provider) : '';
  const own = {
    provider: '',
    account: group.provider_account_id || 'account unknown',
    model: group.model ?? 'not compared',
    key: group.provider_key_id || 'no key named',
    day: group.day ?? '',
  }[groupBy];
  return [own, provider].filter(Boolean).join(' · ');
}
