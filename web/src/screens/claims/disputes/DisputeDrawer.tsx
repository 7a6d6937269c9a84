import { useState } from 'react';
import { query } from '../../../api/client';
import { time } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { useMay } from '../../../app/session';
import { Actor } from '../../../parts/Actor';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { Modal } from '../../../parts/forms/Modal';
import { Cents, Money } from '../../../parts/Money';
import { Chip, Facts } from '../../../parts/Page';
import { ErrorState, Loading } from '../../../parts/States';
import { daysOf } from '../words';
import { ResolveDialog } from './ResolveDialog';
import { resolutionName, STATUS } from './words';

/** One dispute with its decision as it was recorded. */
export function DisputeDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const dispute = query.useQuery('get', '/api/v1/financial/disputes/{id}', { params: { path: { id } } });
  const one = dispute.data;
  const may = useMay();
  const [isResolving, setIsResolving] = useState(false);
  return (
    <Modal title={one ? kindName(one.kind) : 'Dispute'} isOpen side onClose={onClose}>
      {dispute.isPending ? (
        <Loading />
      ) : dispute.error || !one ? (
        <ErrorState error={dispute.error} retry={() => void dispute.refetch()} />
      ) : (
        <>
          <p>{one.reason}</p>
          <div>
            <Chip kind={STATUS[one.status].kind}>{STATUS[one.status].label}</Chip>{' '}
            {!one.still_found && <Chip kind="warn">No longer found by later runs</Chip>}
          </div>
          <Facts
            items={[
              ['Amount, rounded down', <Cents key="a" cents={one.amount_cents} />],
              ['Billed', <Money key="b" usd={one.provider_cost_usd} />],
              ['Right amount', <Money key="r" usd={one.our_cost_usd} />],
              ['Provider', providerName(one.provider)],
              ['Account', one.provider_account_id || '–'],
              ['Model', one.model],
              ['Days (UTC)', daysOf(one)],
              ['Opened', time(one.opened_at)],
              ['Opened by', <Actor key="o" id={one.opened_by} />],
              ['Resolved', one.resolved_at ? time(one.resolved_at) : '–'],
              ['Resolved by', <Actor key="s" id={one.resolved_by} />],
              ['Resolution', one.resolution ? resolutionName(one.resolution) : '–'],
              ['Notes', one.notes ?? '–'],
            ]}
          />
          <div style={{ display: 'flex', flexWrap: 'wrap', gap: 8 }}>
            {one.status === 'open' && one.claim_id === null && may({ scope: 'financial:write' }) && (
              <Button onPress={() => setIsResolving(true)}>Resolve …</Button>
            )}
            <ButtonLink href={`/findings/${one.finding_id}`}>Finding</ButtonLink>
            {one.claim_id && <ButtonLink href={`/claims/${one.claim_id}`}>Claim</ButtonLink>}
          </div>
          {isResolving && <ResolveDialog dispute={one} onClose={() => setIsResolving(false)} />}
        </>
      )}
    </Modal>
  );
}
