import { query } from '../../../api/client';
import { useFilter, withQuery } from '../../../app/filters';
import { count, time } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { Actor } from '../../../parts/Actor';
import { DataTable } from '../../../parts/DataTable';
import { Button, ButtonLink, DownloadLink } from '../../../parts/forms/Button';
import { MonthField } from '../../../parts/forms/DateField';
import { useKey } from '../../../parts/forms/useKey';
import { Money } from '../../../parts/Money';
import { Card, Chip, Facts, Page } from '../../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../../parts/States';
import { Bills } from './Bills';
import { CloseMonth } from './CloseMonth';
import { lastMonth, MEMO, monthBefore, type Statement, SUMS, thisMonth } from './lines';
import css from './Statement.module.css';
import { memoColumns, Name, SumTable } from './SumTable';

const PATH = '/api/v1/reconciliation/statement';
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

const STATUS = {
  final: { label: 'Final', kind: 'good' },
  provisional: { label: 'Provisional', kind: 'warn' },
  no_billing_data: { label: 'No bill', kind: 'plain' },
} as const;

/** The cost of a month, and the share of it that is verified. */
export default function StatementScreen() {
  const [chosen, setPeriod] = useFilter<string>('period', lastMonth());
  const period = MONTH.test(chosen) ? chosen : lastMonth();
  const statement = query.useQuery('get', PATH, { params: { query: { period } } });
  const periods = query.useQuery('get', '/api/v1/periods', { params: { query: { limit: 200 } } });
  const isClosed = periods.data?.periods.find((one) => one.period === period)?.status === 'closed';
  const move = (step: number) => {
    const next = monthBefore(period, step);
    if (next <= thisMonth()) setPeriod(next);
  };
  useKey('[', () => move(1));
  useKey(']', () => move(-1));
  return (
    <Page
      title={`Statement of ${period}`}
      lead="What the month cost and how much of it is verified. Each of the three sums is exact."
      actions={
        <>
          <CloseMonth period={period} periods={periods.data?.periods ?? []} />
          <DownloadLink href={withQuery(PATH, { period, format: 'csv' })}>CSV</DownloadLink>
          <ButtonLink href="/periods">All months</ButtonLink>
        </>
      }
      filters={
        <>
          <MonthField
            label="Month (UTC)"
            value={period}
            onChange={(value) => MONTH.test(value) && setPeriod(value)}
          />
          <Button aria-label="Previous month" onPress={() => move(1)}>
            ‹
          </Button>
          <Button aria-label="Next month" isDisabled={period >= thisMonth()} onPress={() => move(-1)}>
            ›
          </Button>
        </>
      }
    >
      {statement.isPending ? (
        <Loading />
      ) : statement.error ? (
        <ErrorState error={statement.error} retry={() => void statement.refetch()} />
      ) : statement.data.status === 'no_billing_data' ? (
        <Empty title={`There is no bill of ${period}`}>
          <p>
            This screen shows a month once its bill has arrived. Connect a provider, or choose another month
            with the field above.
          </p>
          <ButtonLink href="/connections" kind="primary">
            Connect a provider
          </ButtonLink>
        </Empty>
      ) : (
        <>
          <State statement={statement.data} isClosed={isClosed} />
          {SUMS.map((sum) => (
            <SumTable key={sum.title} statement={statement.data} sum={sum} />
          ))}
          <Card title="Beside the sums">
            <p className={css.muted}>As of now, also in a closed month. These amounts are in no sum.</p>
            <DataTable
              caption="Beside the sums"
              rows={MEMO}
              rowKey={({ id }) => id}
              columns={[
                { id: 'item', head: 'Item', cell: (line) => <Name line={line} period={period} /> },
                ...memoColumns(statement.data),
              ]}
            />
          </Card>
          <Bills statement={statement.data} />
        </>
      )}
      <Calls period={period} />
    </Page>
  );
}

function State({ statement, isClosed }: { statement: Statement; isClosed: boolean }) {
  const { coverage, closing } = statement;
  return (
    <>
      <Card>
        <Facts
          items={[
            ['Invoice total', <Money key="t" usd={statement.total.invoice_total_usd} />],
            [
              'Bills',
              <Chip key="s" kind={STATUS[statement.status].kind}>
                {STATUS[statement.status].label}
              </Chip>,
            ],
            ['Final from', statement.final_from],
            [
              'Month',
              <Chip key="m" kind={isClosed ? 'good' : 'plain'}>
                {isClosed ? 'Closed' : 'Open'}
              </Chip>,
            ],
            ...(closing
              ? ([
                  ['Closed', time(closing.closed_at)],
                  ['Closed by', <Actor key="c" id={closing.closed_by} />],
                  ['Adjusted since', <Money key="a" usd={closing.adjustments_usd} />],
                ] as [string, React.ReactNode][])
              : []),
            ['Computed', time(statement.generated_at)],
          ]}
        />
      </Card>
      {coverage.missing.length > 0 && (
        <Notice kind="warn">
          Days without any bill; their cost is unknown:
          <Ranges ranges={coverage.missing} />
        </Notice>
      )}
      {coverage.stale_copies.length > 0 && (
        <Notice kind="warn">
          Copies of the bill that were read too early. Fetch or import these days again:
          <Ranges ranges={coverage.stale_copies} />
        </Notice>
      )}
      {statement.status === 'provisional' && coverage.provisional.length > 0 && (
        <Notice>
          The provider may still restate these days:
          <Ranges ranges={coverage.provisional} />
        </Notice>
      )}
    </>
  );
}

function Ranges({ ranges }: { ranges: Statement['coverage']['missing'] }) {
  return (
    <ul className={css.list}>
      {ranges.map((one) => (
        <li key={`${one.provider} ${one.provider_account_id} ${one.first_day}`}>
          {providerName(one.provider)} {one.provider_account_id}:{' '}
          {one.first_day === one.last_day ? one.first_day : `${one.first_day} – ${one.last_day}`} (
          {count(one.days)} {one.days === 1 ? 'day' : 'days'})
        </li>
      ))}
    </ul>
  );
}

/** The month's calls in the books: as closed, and as known now. */
function Calls({ period }: { period: string }) {
  const books = query.useQuery('get', '/api/v1/periods/{period}', { params: { path: { period } } });
  if (!books.data) return null;
  const { frozen, adjustments, booked, current } = books.data;
  return (
    <Card title="Calls in the books">
      <p className={css.muted}>
        Computed cost of the calls that your applications reported, beside the bills.
      </p>
      <Facts
        items={[
          ['As known now', <Money key="c" usd={current.cost_usd_exact} />],
          ['Calls', count(current.call_count)],
          ['Without a price', count(current.unpriced_calls)],
          ['As closed', <Money key="f" usd={frozen?.total.cost_usd_exact} />],
          ['Changed since the closing', frozen ? <Money key="a" usd={adjustments.cost_usd_exact} /> : '–'],
          ['Adjustments of earlier months', <Money key="b" usd={booked.cost_usd_exact} />],
        ]}
      />
    </Card>
  );
}
