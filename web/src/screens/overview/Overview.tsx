import { query } from '../../api/client';
import { useMay, useSession } from '../../app/session';
import { ButtonLink } from '../../parts/forms/Button';
import { Period } from '../../parts/forms/Period';
import { Page } from '../../parts/Page';
import { Loading } from '../../parts/States';
import { BilledByDay } from './BilledByDay';
import { Confidence } from './Confidence';
import { Heartbeat } from './Heartbeat';
import { ClaimsByState, NewestAlerts } from './Newest';
import css from './Overview.module.css';
import { Start } from './Start';
import { TopGaps } from './TopGaps';
import { Totals } from './Totals';

export default function Overview() {
  const isWhole = useSession().workspace === null;
  const allows = useMay();
  // Bills belong to the organization: a key of one workspace sees its calls and alerts alone.
  const may = ({ scope }: { scope: string }) =>
    (isWhole || /^(events|usage|alerts):/.test(scope)) && allows({ scope });
  const health = query.useQuery(
    'get',
    '/api/v1/ingest/health',
    {},
    { enabled: may({ scope: 'events:read' }), refetchInterval: 10_000 },
  );
  const connections = query.useQuery(
    'get',
    '/api/v1/billing-connections',
    { params: { query: { limit: 1 } } },
    { enabled: may({ scope: 'billing:read' }) },
  );
  const coverage = query.useQuery(
    'get',
    '/api/v1/reconciliation/summary',
    {},
    { enabled: may({ scope: 'reconciliation:read' }) },
  );
  const isEmpty =
    health.data?.sources.length === 0 &&
    connections.data?.count === 0 &&
    coverage.data?.matched_usd === 0 &&
    coverage.data.unmatched_usd === 0;
  if (isEmpty) return <Start />;
  return (
    <Page
      title="Overview"
      lead="Money to get back, money to save, and the days behind both."
      actions={<ButtonLink href="/findings">Open findings</ButtonLink>}
    >
      {may({ scope: 'financial:read' }) && <Totals />}
      <Period />
      {may({ scope: 'reconciliation:read' }) && may({ scope: 'usage:read' }) && <BilledByDay />}
      <div className={css.pair}>
        <div className={css.column}>
          {may({ scope: 'reconciliation:read' }) && <TopGaps />}
          {may({ scope: 'alerts:read' }) && <NewestAlerts />}
        </div>
        <div className={css.column}>
          {coverage.data ? <Confidence summary={coverage.data} /> : coverage.isLoading && <Loading />}
          {health.data ? <Heartbeat health={health.data} /> : health.isLoading && <Loading />}
          {may({ scope: 'claims:read' }) && <ClaimsByState />}
        </div>
      </div>
    </Page>
  );
}
