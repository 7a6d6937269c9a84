import { Link } from 'wouter';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { Cents, Money } from '../../parts/Money';
import { Card, Chip } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';
import { STATUS, STATUSES } from '../claims/words';
import css from './Overview.module.css';

const ALERTS = 5;
const CLAIMS_MAX = 200;
const SEVERITY = { high: 'bad', medium: 'warn', low: 'plain' } as const;

export function NewestAlerts() {
  const alerts = query.useQuery('get', '/api/v1/alerts', {
    params: { query: { limit: ALERTS, status: 'open' } },
  });
  if (alerts.isPending) return <Loading label="Newest alerts" />;
  if (alerts.error) return <ErrorState error={alerts.error} retry={() => void alerts.refetch()} />;
  return (
    <Card title="Newest alerts" aside={<Link href="/alerts">All alerts</Link>}>
      {alerts.data.alerts.length === 0 ? (
        <p className={css.hint}>All clear: no alert is open.</p>
      ) : (
        <ul className={css.list}>
          {alerts.data.alerts.map((alert) => (
            <li key={alert.id}>
              <span>
                <Chip kind={SEVERITY[alert.severity]}>{alert.severity}</Chip>
              </span>
              <div>
                {alert.event_id ? (
                  <Link href={`/events/${alert.event_id}`}>{alert.message}</Link>
                ) : (
                  alert.message
                )}
                <div className={css.hint}>
                  {time(alert.created_at)}
                  {alert.team_id && ` · team ${alert.team_id}`}
                  {alert.cost_usd !== null && (
                    <>
                      {' · '}
                      <Money usd={alert.cost_usd} />
                    </>
                  )}
                </div>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

export function ClaimsByState() {
  const claims = query.useQuery('get', '/api/v1/claims', { params: { query: { limit: CLAIMS_MAX } } });
  if (claims.isPending) return <Loading label="Claims by state" />;
  if (claims.error) return <ErrorState error={claims.error} retry={() => void claims.refetch()} />;
  const all = claims.data.claims;
  const sum = (list: typeof all) => list.reduce((cents, claim) => cents + claim.total_recoverable_cents, 0);
  const states = STATUSES.map((status) => ({
    status,
    list: all.filter((claim) => claim.status === status),
  })).filter(({ list }) => list.length > 0);
  return (
    <Card title="Claims by state" aside={<Link href="/claims">All claims</Link>}>
      {states.length === 0 ? (
        <p className={css.hint}>
          No claim yet. A claim starts from confirmed findings: <Link href="/findings">open findings</Link>.
        </p>
      ) : (
        <table className={css.plain}>
          <caption className="visually-hidden">Claims by state</caption>
          <tbody>
            {states.map(({ status, list }) => (
              <tr key={status}>
                <th scope="row">
                  <Link href={withQuery('/claims', { status })}>{STATUS[status].label}</Link>
                </th>
                <td>{count(list.length)}</td>
                <td>
                  <Cents cents={sum(list)} />
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">
                {claims.data.has_more ? `Newest ${CLAIMS_MAX} claims` : `Sum of ${states.length} rows`}
              </th>
              <td>{count(all.length)}</td>
              <td>
                <Cents cents={sum(all)} />
              </td>
            </tr>
          </tfoot>
        </table>
      )}
    </Card>
  );
}
