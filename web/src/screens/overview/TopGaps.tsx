import { Link } from 'wouter';
import { withQuery } from '../../app/filters';
import { day } from '../../app/format';
import { providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { exactSum } from '../../parts/exactSum';
import { usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card } from '../../parts/Page';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useGaps } from './useGaps';

const SHOWN = 5;

/** The largest flagged differences between billed and observed. */
export function TopGaps() {
  const period = usePeriod();
  const gaps = useGaps(period);
  if (gaps.isPending) return <Loading label="Largest gaps" />;
  if (gaps.error) return <ErrorState error={gaps.error} retry={() => void gaps.refetch()} />;
  const rows = (gaps.rows ?? [])
    .filter((row) => row.flagged_gap)
    .map((row) => ({ ...row, gap: exactSum([row.provider_cost_usd, -row.our_cost_usd]) }))
    .sort((a, b) => Math.abs(Number(b.gap)) - Math.abs(Number(a.gap)));
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: 'day',
      head: 'Day (UTC)',
      cell: (row) => (
        <Link
          href={withQuery('/gaps', {
            // The cells of 7 days may be hours; those of longer periods are days.
            period: period.name === '30d' || period.name === '7d' ? '30d' : '90d',
            cell: `${row.provider}|${row.provider_account_id}|${row.model}|${day(row.bucket)}`,
          })}
        >
          {day(row.bucket)}
        </Link>
      ),
    },
    { id: 'model', head: 'Model', cell: (row) => row.model },
    { id: 'provider', head: 'Provider', cell: (row) => providerName(row.provider) },
    {
      id: 'billed',
      head: 'Billed',
      isNumber: true,
      cell: (row) => <Money usd={row.provider_cost_usd} isProvisional={row.provisional} />,
    },
    { id: 'observed', head: 'Observed', isNumber: true, cell: (row) => <Money usd={row.our_cost_usd} /> },
    { id: 'gap', head: 'Gap', isNumber: true, cell: (row) => <Money usd={row.gap} /> },
  ];
  return (
    <Card title="Largest gaps" aside={<Link href="/gaps?flagged=1">All {rows.length} flagged</Link>}>
      {rows.length === 0 ? (
        <Empty title="No gap is flagged in these days" />
      ) : (
        <DataTable
          caption="Largest gaps"
          columns={columns}
          rows={rows.slice(0, SHOWN)}
          rowKey={(row) => `${row.bucket} ${row.provider} ${row.model} ${row.provider_account_id}`}
        />
      )}
    </Card>
  );
}
