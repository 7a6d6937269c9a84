import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { query } from '../../api/client';
import { time } from '../../app/format';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { DownloadLink } from '../../parts/forms/Button';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { RunProgress } from '../../parts/RunProgress';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { Builder } from './Builder';
import { ReportsPage } from './ReportsPage';
import { fileSize, type Section, sectionNames } from './sections';

const POLL_MS = 2_000;
/** Runs that are looked at for those that are open, and for the newest failure. */
const RUNS = 10;

interface Report {
  id: string;
  period_from: string;
  period_to: string;
  sections: Section[];
  generated_at: string;
  expires_at: string;
  size_bytes: number;
}

export default function Reports() {
  const may = useMay();
  return (
    <ReportsPage>
      {may({ scope: 'reports:write' }) && <Builder />}
      <OpenRuns />
      <ReportList />
    </ReportsPage>
  );
}

/** Reports that are being made, of all users, and the newest one if it failed. */
function OpenRuns() {
  const client = useQueryClient();
  const runs = query.useQuery(
    'get',
    '/api/v1/reports/runs',
    { params: { query: { limit: RUNS } } },
    { refetchInterval: ({ state }) => (state.data?.runs.some(isOpen) ? POLL_MS : false) },
  );
  const open = runs.data?.runs.filter(isOpen) ?? [];
  const openIds = open.map((run) => run.id).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is read anew whenever a run begins or ends
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ['get', '/api/v1/reports'] });
  }, [openIds, client]);
  if (runs.error) return <ErrorState error={runs.error} retry={() => void runs.refetch()} />;
  const newest = runs.data?.runs[0];
  return (
    <>
      {open.map((run) => (
        <RunProgress
          key={run.id}
          label={`Report of ${run.period_from} – ${run.period_to}`}
          progress={run.progress}
        />
      ))}
      {newest?.status === 'failed' && (
        <Notice kind="bad">
          The report of {newest.period_from} – {newest.period_to} failed: {newest.error?.message}
        </Notice>
      )}
    </>
  );
}

const isOpen = (run: { status: string }) => run.status === 'queued' || run.status === 'running';

function ReportList() {
  const offset = useOffset();
  const reports = query.useQuery('get', '/api/v1/reports', {
    params: { query: { limit: PAGE_ROWS, offset } },
  });
  if (reports.isPending) return <Loading />;
  if (reports.error) return <ErrorState error={reports.error} retry={() => void reports.refetch()} />;
  if (reports.data.reports.length === 0 && offset === 0)
    return (
      <Empty title="No reports yet">
        <p>
          Reports of the last 90 days are listed here, whether somebody asked for them or a schedule made
          them.
        </p>
      </Empty>
    );
  return (
    <DataTable
      caption="Reports"
      csv={'/api/v1/reports?format=csv'}
      columns={COLUMNS}
      rows={reports.data.reports}
      rowKey={(report) => report.id}
      more={<Pager page={reports.data} />}
    />
  );
}

const COLUMNS: Column<Report>[] = [
  { id: 'period', head: 'Period (UTC)', cell: (report) => `${report.period_from} – ${report.period_to}` },
  { id: 'sections', head: 'Sections', isWide: true, cell: (report) => sectionNames(report.sections) },
  { id: 'made', head: 'Made', cell: (report) => time(report.generated_at) },
  { id: 'expires', head: 'Expires', cell: (report) => time(report.expires_at) },
  { id: 'size', head: 'Size', isNumber: true, cell: (report) => fileSize(report.size_bytes) },
  {
    id: 'file',
    head: <span className="visually-hidden">File</span>,
    isNumber: true,
    cell: (report) => (
      <DownloadLink href={`/api/v1/reports/${report.id}`}>
        PDF
        <span className="visually-hidden">
          {' '}
          of {report.period_from} to {report.period_to}
        </span>
      </DownloadLink>
    ),
  },
];
