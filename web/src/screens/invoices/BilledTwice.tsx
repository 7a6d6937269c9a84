import { Link } from 'wouter';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { Amount } from '../../parts/Money';
import { Notice } from '../../parts/States';
import type { Invoice, ListedInvoice } from './words';

/** States that another invoice has charged the same days before, and which one. */
export function BilledTwice({ invoice }: { invoice: Invoice }) {
  const others = query.useQuery('get', '/api/v1/reconciliation/invoices', {
    params: { query: { provider: invoice.provider, period: invoice.period_start?.slice(0, 7), limit: 100 } },
  });
  const first = others.data?.invoices
    .filter((one) => isEarlier(one, invoice))
    .sort((a, b) => (a.issue_date ?? '').localeCompare(b.issue_date ?? ''))[0];
  return (
    <Notice kind="bad">
      This invoice charges for a month that is already billed: {invoice.period_start} – {invoice.period_end}{' '}
      is charged in full by{' '}
      {first ? (
        <Link href={`/invoices/${first.id}`}>invoice {first.number ?? first.filename}</Link>
      ) : (
        'an earlier invoice'
      )}
      . Nothing of the provider’s bill is left for this one, so all of{' '}
      <Amount value={invoice.tie_out?.difference ?? null} currency={invoice.tie_out?.currency ?? null} /> is
      too much.{' '}
      {invoice.confirmed ? (
        <Link href={withQuery('/findings', { kind: 'period_double_count' })}>Open the finding</Link>
      ) : (
        'Confirm that the document is wrong to claim it back.'
      )}
    </Notice>
  );
}

/** The order in which invoices take their share of the bill. */
function isEarlier(one: ListedInvoice, invoice: Invoice): boolean {
  if (one.id === invoice.id || one.duplicate_of !== null || one.replaced_by !== null) return false;
  if (one.provider_account_id !== invoice.provider_account_id) return false;
  if (!one.period_start || !one.period_end || !invoice.period_start || !invoice.period_end) return false;
  if (one.period_end < invoice.period_start || one.period_start > invoice.period_end) return false;
  const key = ({ issue_date, number }: ListedInvoice | Invoice) => `${issue_date ?? ''} ${number ?? ''}`;
  return key(one) < key(invoice);
}
