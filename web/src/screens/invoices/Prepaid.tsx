import { Link } from 'wouter';
import { query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { providerName } from '../../app/providers';
import { DataTable } from '../../parts/DataTable';
import { ProviderFilter } from '../../parts/forms/Filters';
import { Amount, Money } from '../../parts/Money';
import { Card, Facts, Page } from '../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';

/** Credit that was bought ahead: what is used, expired and left of each purchase. */
export default function Prepaid() {
  const [provider, setProvider] = useFilter<string>('provider', '');
  const ledger = query.useQuery('get', '/api/v1/reconciliation/prepaid', {
    params: { query: provider ? { provider } : {} },
  });
  return (
    <Page
      title="Prepaid credit"
      lead={
        <>
          <Link href="/invoices">Invoices</Link> · Credit that invoices show as bought ahead, used by later
          usage in the order of purchase.
        </>
      }
      filters={<ProviderFilter value={provider} onChange={setProvider} />}
    >
      {ledger.isPending ? (
        <Loading />
      ) : ledger.error ? (
        <ErrorState error={ledger.error} retry={() => void ledger.refetch()} />
      ) : ledger.data.accounts.length === 0 ? (
        <Empty title={provider ? `No prepaid credit at ${providerName(provider)}` : 'No prepaid credit'}>
          <p>
            An invoice with a purchase of credit opens a ledger here. Each ledger shows what is left and when
            it expires.
          </p>
        </Empty>
      ) : (
        ledger.data.accounts.map((account) => (
          <Card
            key={`${account.provider} ${account.provider_account_id}`}
            title={`${providerName(account.provider)} · ${account.provider_account_id}`}
            aside={<span>as of {ledger.data.as_of} UTC</span>}
          >
            <Facts
              items={[
                ['Bought', <Money key="b" usd={account.bought_usd} />],
                ['Used', <Money key="u" usd={account.used_usd} />],
                ['Expired', <Money key="e" usd={account.expired_usd} />],
                ['Left', <Money key="l" usd={account.left_usd} />],
                ['Used beyond the credit', <Money key="n" usd={account.uncovered_usd} />],
                [
                  'Expires',
                  account.expires_after_days ? `${account.expires_after_days} days after purchase` : 'never',
                ],
              ]}
            />
            <DataTable
              caption={`Purchases at ${providerName(account.provider)}`}
              csv={withQuery('/api/v1/reconciliation/prepaid', { provider, format: 'csv' })}
              rows={account.purchases}
              rowKey={({ invoice_id, line }) => `${invoice_id} ${line}`}
              columns={[
                {
                  id: 'day',
                  head: 'Bought on',
                  cell: ({ day, invoice_id }) => <Link href={`/invoices/${invoice_id}`}>{day}</Link>,
                  foot: 'Total',
                },
                {
                  id: 'bought',
                  head: 'Bought',
                  isNumber: true,
                  cell: (one) => <Money usd={one.bought_usd} />,
                  foot: <Money usd={account.bought_usd} />,
                },
                {
                  id: 'used',
                  head: 'Used',
                  isNumber: true,
                  cell: (one) => <Money usd={one.used_usd} />,
                  foot: <Money usd={account.used_usd} />,
                },
                {
                  id: 'expired',
                  head: 'Expired',
                  isNumber: true,
                  cell: (one) => <Money usd={one.expired_usd} />,
                  foot: <Money usd={account.expired_usd} />,
                },
                {
                  id: 'left',
                  head: 'Left',
                  isNumber: true,
                  cell: (one) => <Money usd={one.left_usd} />,
                  foot: <Money usd={account.left_usd} />,
                },
                { id: 'expires', head: 'Expires on', cell: ({ expires_on }) => expires_on ?? 'never' },
              ]}
            />
            {account.unconverted.map((one) => (
              <Notice key={`${one.invoice_id} ${one.line}`} kind="warn">
                <Link href={`/invoices/${one.invoice_id}`}>A purchase of {one.day}</Link> over{' '}
                <Amount value={one.amount} currency={one.currency} /> has no exchange rate and is part of no
                sum.
              </Notice>
            ))}
          </Card>
        ))
      )}
    </Page>
  );
}
