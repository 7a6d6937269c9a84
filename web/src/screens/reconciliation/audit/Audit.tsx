import { query } from '../../../api/client';
import { useFilter, useSetFilters, withQuery } from '../../../app/filters';
import { count } from '../../../app/format';
import { PROVIDER_OPTIONS, type Provider, providerName } from '../../../app/providers';
import { Button, ButtonLink, DownloadLink } from '../../../parts/forms/Button';
import { DateField } from '../../../parts/forms/DateField';
import { Select } from '../../../parts/forms/Fields';
import { Money } from '../../../parts/Money';
import { Card, Page } from '../../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../../parts/States';
import css from './Audit.module.css';
import { AgreedLines, DifferentLines, UnjudgedLines } from './RateLines';
import { type Audit as Answer, days } from './words';

const PATH = '/api/v1/reconciliation/audit';

/** The rates that a provider charged against list and contract, from the bills alone. */
export default function Audit() {
  const [asked, setProvider] = useFilter<Provider>('provider', 'openai');
  const provider = PROVIDER_OPTIONS.some(({ value }) => value === asked) ? asked : 'openai';
  const [from] = useFilter<string>('from', '');
  const [to] = useFilter<string>('to', '');
  const setFilters = useSetFilters();
  const filters = { provider, from: from || undefined, to: to || undefined };
  const audit = query.useQuery('get', PATH, { params: { query: filters } });
  const data = audit.data;
  const clear = () => setFilters({ from: undefined, to: undefined });
  return (
    <Page
      title="Audit of rates"
      lead="Rates that a provider charged, against its list and your contract. It needs bills alone: no call has to be observed."
      actions={
        data?.status === 'audited' && (
          <DownloadLink href={withQuery(PATH, { ...filters, format: 'csv' })}>CSV of all lines</DownloadLink>
        )
      }
      filters={
        <>
          <Select label="Provider" value={provider} options={PROVIDER_OPTIONS} onChange={setProvider} />
          <DateField
            label="From (UTC)"
            value={from || (data?.from ?? '')}
            onChange={(day) => setFilters({ from: day, to })}
          />
          <DateField
            label="To (UTC)"
            value={to || (data?.to ?? '')}
            onChange={(day) => setFilters({ from, to: day })}
          />
          {(from || to) && (
            <Button kind="quiet" onPress={clear}>
              All billed days
            </Button>
          )}
        </>
      }
    >
      {audit.isPending ? (
        <Loading rows={8} />
      ) : audit.error ? (
        <ErrorState error={audit.error} retry={() => void audit.refetch()} />
      ) : !data || data.status === 'no_billing_data' ? (
        <Empty title={`No bill of ${providerName(provider)} in these days`}>
          {data?.billed ? (
            <>
              <p>Its bills have the days {days(data.billed)}.</p>
              <Button onPress={clear}>All billed days</Button>
            </>
          ) : (
            <>
              <p>
                This screen compares each billed rate with the list and with your contract. It needs bills.
              </p>
              <ButtonLink href="/connections">Connect {providerName(provider)} or upload a bill</ButtonLink>
            </>
          )}
        </Empty>
      ) : (
        <Result data={data} />
      )}
    </Page>
  );
}

const lines = (list: readonly unknown[]) => `${count(list.length)} ${list.length === 1 ? 'line' : 'lines'}`;

function Result({ data }: { data: Answer }) {
  return (
    <>
      {data.missing.length > 0 && (
        <Notice kind="warn">
          Days without a bill:{' '}
          {data.missing.map((span) => `${days(span)} (${span.provider_account_id})`).join(' · ')}. Their cost
          is unknown.
        </Notice>
      )}
      {data.provisional.length > 0 && (
        <Notice>
          The provider may still change: {data.provisional.map((span) => days(span)).join(' · ')}.
        </Notice>
      )}
      <div className={css.pair}>
        <Sums totals={data.totals} days={data.days} />
      </div>
      {data.differences.length === 0 ? (
        <Empty title="All clear: every rate that can be judged is the agreed one" />
      ) : (
        <Card title={`Charged at another rate, ${lines(data.differences)}`}>
          <DifferentLines lines={data.differences} provider={data.provider} />
          {data.omitted.lines > 0 && (
            <Notice>
              {count(data.omitted.lines)} smaller lines with a difference of{' '}
              <Money usd={data.omitted.difference_usd} /> are only in the CSV.
            </Notice>
          )}
        </Card>
      )}
      {data.not_judged.length > 0 && (
        <Card title={`Not judged, ${lines(data.not_judged)}`}>
          <UnjudgedLines lines={data.not_judged} total={data.totals.not_judged_usd} />
        </Card>
      )}
      {data.as_agreed.length > 0 && (
        <details className={css.agreed}>
          <summary>Charged as agreed, {lines(data.as_agreed)}</summary>
          <AgreedLines lines={data.as_agreed} />
        </details>
      )}
    </>
  );
}

/** The sums of the audit as two equations that add up line by line. */
function Sums({ totals, days: billedDays }: { totals: Answer['totals']; days: number }) {
  return (
    <>
      <Card title="Billed" aside={<span className={css.hint}>{count(billedDays)} days with a bill</span>}>
        <SumList
          rows={[
            ['At the agreed rates', totals.agreed_usd],
            ['Difference', totals.difference_usd],
            ['Judged', totals.judged_usd],
            ['Not judged', totals.not_judged_usd],
          ]}
          total={['Billed', totals.billed_usd]}
          subtotal="Judged"
          note="Agreed + difference = judged; judged + not judged = billed."
        />
      </Card>
      <Card title="Difference">
        <SumList
          rows={[
            ['Charged above the agreed rate', totals.above_usd],
            ['Charged below it', totals.below_usd],
            ['Rounding', totals.rounding_usd],
          ]}
          total={['Difference', totals.difference_usd_exact]}
          note="Sum of 3 rows."
        />
      </Card>
    </>
  );
}

function SumList({
  rows,
  total: [totalName, total],
  note,
  subtotal,
}: {
  rows: [string, number][];
  total: [string, number | string];
  note: string;
  /** The name of the row that sums the rows above it. */
  subtotal?: string;
}) {
  return (
    <>
      <table className={css.sums}>
        <tbody>
          {rows.map(([name, amount]) => (
            <tr key={name} className={name === subtotal ? css.subtotal : ''}>
              <th scope="row">{name}</th>
              <td>
                <Money usd={amount} />
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{totalName}</th>
            <td>
              <Money usd={total} />
            </td>
          </tr>
        </tfoot>
      </table>
      <p className={css.hint}>{note}</p>
    </>
  );
}
