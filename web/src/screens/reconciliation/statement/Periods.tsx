import { useLocation } from 'wouter';
import { query } from '../../../api/client';
import { time } from '../../../app/format';
import { Actor } from '../../../parts/Actor';
import { DataTable } from '../../../parts/DataTable';
import { ButtonLink } from '../../../parts/forms/Button';
import { Money } from '../../../parts/Money';
import { Chip, Page } from '../../../parts/Page';
import { Empty, ErrorState, Loading } from '../../../parts/States';
import { CloseMonth } from './CloseMonth';
import { thisMonth } from './lines';

const PERIODS_MAX = 200;

/** The months of the books, newest first. */
export default function Periods() {
  const [, go] = useLocation();
  const periods = query.useQuery('get', '/api/v1/periods', { params: { query: { limit: PERIODS_MAX } } });
  return (
    <Page
      title="Months"
      lead="A closed month keeps its totals; later changes of its calls and bills become adjustments. Months are UTC."
      actions={<ButtonLink href="/statement">Statement</ButtonLink>}
    >
      {periods.isPending ? (
        <Loading />
      ) : periods.error ? (
        <ErrorState error={periods.error} retry={() => void periods.refetch()} />
      ) : periods.data.periods.length === 0 ? (
        <Empty title="No months yet">
          <p>Months appear here from the first call or bill on.</p>
        </Empty>
      ) : (
        <DataTable
          caption="Months"
          csv={'/api/v1/periods?format=csv'}
          rows={periods.data.periods}
          rowKey={({ period }) => period}
          rowLabel={({ period }) => `Statement of ${period}`}
          onOpen={({ period }) => go(`/statement?period=${period}`)}
          columns={[
            { id: 'period', head: 'Month', cell: ({ period }) => period },
            {
              id: 'status',
              head: 'Status',
              cell: ({ status, period }) => (
                <Chip kind={status === 'closed' ? 'good' : 'plain'}>
                  {status === 'closed' ? 'Closed' : period === thisMonth() ? 'Running' : 'Open'}
                </Chip>
              ),
            },
            { id: 'at', head: 'Closed', cell: ({ closed_at }) => (closed_at ? time(closed_at) : '–') },
            { id: 'by', head: 'Closed by', cell: ({ closed_by }) => <Actor id={closed_by} /> },
            {
              id: 'with',
              head: 'Closed with',
              cell: ({ closed_with, period }) => (closed_with && closed_with !== period ? closed_with : '–'),
            },
            {
              id: 'total',
              head: 'Calls, as closed',
              isNumber: true,
              cell: ({ total_cost_usd }) => <Money usd={total_cost_usd} />,
            },
            {
              id: 'close',
              head: <span className="visually-hidden">Close</span>,
              cell: ({ period }) => <CloseMonth period={period} periods={periods.data.periods} />,
            },
          ]}
        />
      )}
    </Page>
  );
}
