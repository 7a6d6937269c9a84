import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { query } from '../../../api/client';
import { time } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { Actor } from '../../../parts/Actor';
import { Button } from '../../../parts/forms/Button';
import { Modal } from '../../../parts/forms/Modal';
import { Money } from '../../../parts/Money';
import { Chip, Facts } from '../../../parts/Page';
import { ErrorState, Loading } from '../../../parts/States';
import type { Acknowledge } from './Alerts';
import { type Alert, alertName, SEVERITY, subjectAddress } from './alertWords';

/** One alert beside the list; its id is in the address, so that a link shows it. */
export function AlertDetail({
  id,
  onClose,
  acknowledge,
}: {
  id: string;
  onClose: () => void;
  acknowledge: Acknowledge | undefined;
}) {
  const alert = query.useQuery(
    'get',
    '/api/v1/alerts/{id}',
    { params: { path: { id } } },
    { enabled: id !== '' },
  );
  return (
    <Modal title="Alert" isOpen={id !== ''} onClose={onClose} side>
      {alert.error ? (
        <ErrorState error={alert.error} retry={() => void alert.refetch()} />
      ) : alert.data ? (
        <Whole alert={alert.data} acknowledge={acknowledge} />
      ) : (
        <Loading />
      )}
    </Modal>
  );
}

function Whole({ alert, acknowledge }: { alert: Alert; acknowledge: Acknowledge | undefined }) {
  const address = subjectAddress(alert);
  const known = (name: string, value: string | null): [string, ReactNode][] => (value ? [[name, value]] : []);
  return (
    <>
      <p>
        <Chip kind={SEVERITY[alert.severity].kind}>{SEVERITY[alert.severity].label}</Chip> {alert.message}
      </p>
      <Facts
        items={[
          [alert.kind === 'policy' ? 'Policy' : 'Notice', alertName(alert)],
          [
            alert.subject.type === 'event' ? 'Call' : 'About',
            address ? (
              <Link key="s" href={address}>
                {alert.subject.id}
              </Link>
            ) : (
              alert.subject.id
            ),
          ],
          ...known('Time of the call', alert.event_timestamp && time(alert.event_timestamp)),
          ['Raised', time(alert.created_at)],
          ...(alert.cost_usd === null
            ? []
            : [['Cost of the call', <Money key="c" usd={alert.cost_usd} />] as [string, ReactNode]]),
          ...known('Provider', alert.provider && providerName(alert.provider)),
          ...known('Model', alert.model),
          ...known('Team', alert.team_id),
          ...known('Feature', alert.feature),
          ...known('Session', alert.session_id),
          ...known('Project', alert.project_id),
          ...Object.entries(alert.details)
            .filter(([name]) => name !== 'model' || !alert.model)
            .map(([name, value]): [string, ReactNode] => [
              name.replaceAll('_', ' '),
              Array.isArray(value) ? value.join(', ') : String(value),
            ]),
        ]}
      />
      {alert.status === 'acknowledged' ? (
        <p>
          Acknowledged {alert.acknowledged_at && time(alert.acknowledged_at)} by{' '}
          <Actor id={alert.acknowledged_by} />
        </p>
      ) : (
        acknowledge && (
          <div>
            <Button
              kind="primary"
              isPending={acknowledge.isBusy}
              onPress={() => void acknowledge.all([alert])}
            >
              {acknowledge.isBusy ? 'One moment …' : 'Acknowledge'}
            </Button>
          </div>
        )
      )}
    </>
  );
}
