import { Link } from 'wouter';
import { time } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { Money } from '../../../parts/Money';
import { Card, Chip } from '../../../parts/Page';
import { NOT_PRICED_REASON, type Statement } from './lines';
import css from './Statement.module.css';

const sumOf = (count: number) => `Sum of ${count} ${count === 1 ? 'row' : 'rows'}`;

/** Charges without a price, adjustments, differing copies, and the sources of the figures. */
export function Bills({ statement }: { statement: Statement }) {
  const {
    not_priced: unpriced,
    closing,
    booked_adjustments: booked,
    source_differences: differences,
  } = statement;
  return (
    <>
      {unpriced.length > 0 && (
        <Card title="Not priced">
          <DataTable
            caption="Charges without a price"
            rows={unpriced}
            rowKey={(one) =>
              `${one.provider} ${one.provider_account_id} ${one.label} ${one.token_class} ${one.reason}`
            }
            columns={[
              {
                id: 'label',
                head: 'Line of the bill',
                cell: ({ label }) => label,
                foot: sumOf(unpriced.length),
              },
              { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
              { id: 'class', head: 'Class', cell: ({ token_class }) => token_class.replaceAll('_', ' ') },
              { id: 'reason', head: 'Why', isWide: true, cell: ({ reason }) => NOT_PRICED_REASON[reason] },
              {
                id: 'usd',
                head: 'Billed',
                isNumber: true,
                cell: ({ billed_usd }) => <Money usd={billed_usd} />,
                foot: <Money usd={exactSum(unpriced.map(({ billed_usd }) => billed_usd))} />,
              },
            ]}
          />
        </Card>
      )}
      {closing && closing.adjustments.length > 0 && (
        <Adjustments
          title="Changed since the closing"
          rows={closing.adjustments}
          total={closing.adjustments_usd}
        />
      )}
      {booked.length > 0 && (
        <Adjustments
          title="Adjustments of earlier months, booked in this one"
          rows={booked}
          total={statement.booked_adjustments_usd}
        />
      )}
      {differences.length > 0 && (
        <Card title="Copies of a bill that differ">
          <DataTable
            caption="Copies of a bill that differ"
            rows={differences}
            rowKey={(one) =>
              `${one.day} ${one.span} ${one.counted_import_id} ${one.other_import_id} ${one.charge_category}`
            }
            columns={[
              { id: 'day', head: 'Day', cell: ({ day, span }) => (span === 'month' ? day.slice(0, 7) : day) },
              { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
              { id: 'category', head: 'Category', cell: ({ charge_category }) => charge_category },
              {
                id: 'counted',
                head: 'Counted',
                isNumber: true,
                cell: (one) => <Money usd={one.counted_usd} />,
              },
              {
                id: 'other',
                head: 'Other copy',
                isNumber: true,
                cell: (one) => <Money usd={one.other_usd} />,
              },
              {
                id: 'gap',
                head: 'Difference',
                isNumber: true,
                cell: (one) => <Money usd={one.difference_usd} />,
              },
            ]}
          />
        </Card>
      )}
      <Card title="Sources">
        <DataTable
          caption="Sources of the bills"
          rows={statement.sources}
          rowKey={(one) => `${one.source_id} ${one.provider_account_id}`}
          columns={[
            { id: 'name', head: 'Source', cell: ({ name }) => name },
            { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
            { id: 'kind', head: 'Kind', cell: ({ kind }) => (kind === 'api' ? 'Connection' : 'File') },
            { id: 'days', head: 'Days', cell: ({ first_day, last_day }) => `${first_day} – ${last_day}` },
            { id: 'read', head: 'Read', cell: ({ told_at }) => time(told_at) },
          ]}
        />
        {statement.invoices.length > 0 && (
          <p className={css.muted}>
            {statement.invoices.length} uploaded{' '}
            {statement.invoices.length === 1 ? 'invoice charges' : 'invoices charge'} for days of this month:{' '}
            <Link href={`/invoices?period=${statement.period}`}>Invoices</Link>
          </p>
        )}
      </Card>
    </>
  );
}

function Adjustments({
  title,
  rows,
  total,
}: {
  title: string;
  rows: Statement['booked_adjustments'];
  total: number;
}) {
  return (
    <Card title={title}>
      <DataTable
        caption={title}
        rows={rows}
        rowKey={(one) =>
          `${one.provider} ${one.provider_account_id} ${one.day} ${one.charge_category} ${one.booked_on}`
        }
        columns={[
          { id: 'day', head: 'Day', cell: ({ day }) => day, foot: sumOf(rows.length) },
          { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
          { id: 'category', head: 'Category', cell: ({ charge_category }) => charge_category },
          { id: 'booked', head: 'Booked on', cell: ({ booked_on }) => booked_on },
          {
            id: 'settled',
            head: 'Settled',
            cell: ({ settled }) => (
              <Chip kind={settled ? 'good' : 'plain'}>{settled ? 'Settled' : 'Open'}</Chip>
            ),
          },
          {
            id: 'usd',
            head: 'Amount',
            isNumber: true,
            cell: ({ amount_usd }) => <Money usd={amount_usd} />,
            foot: <Money usd={total} />,
          },
        ]}
      />
    </Card>
  );
}
