import { useState } from 'react';
import { api, errorText } from '../../api/client';
import { time } from '../../app/format';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Cents, Money } from '../../parts/Money';
import { Card, Chip } from '../../parts/Page';
import { useToast } from '../../parts/Toasts';
import css from './Claim.module.css';
import { MoveDialog } from './MoveDialog';
import { useClaimChange } from './useClaimChange';
import type { Claim } from './words';

const STATUS = {
  proposed: { label: 'To decide', kind: 'warn' },
  accepted: { label: 'Accepted', kind: 'good' },
  rejected: { label: 'Rejected', kind: 'plain' },
} as const;

/** Rows of later bills that look like the provider's answer. A person accepts or rejects them. */
export function ProposedCredits({ claim }: { claim: Claim }) {
  const may = useMay();
  const toast = useToast();
  const changed = useClaimChange();
  const [isBusy, setIsBusy] = useState(false);
  const [move, setMove] = useState<Claim['proposed_move']>(null);
  const canMove = may({ scope: 'claims:write', admin: true });
  const reject = async (creditId: string) => {
    setIsBusy(true);
    try {
      const { error } = await api.POST('/api/v1/claims/{id}/credits/{credit_id}/reject', {
        params: { path: { id: claim.id, credit_id: creditId } },
      });
      if (error) toast(errorText(error), 'bad');
      else toast('The credit is rejected.');
      await changed();
    } catch (failure) {
      toast(errorText(failure), 'bad');
    } finally {
      setIsBusy(false);
    }
  };
  if (claim.proposed_credits.length === 0) return null;
  return (
    <Card
      title="Credits found on later bills"
      aside={
        claim.proposed_move &&
        canMove && (
          <Button kind="primary" onPress={() => setMove(claim.proposed_move)}>
            Accept all
          </Button>
        )
      }
    >
      <ul className={css.list}>
        {claim.proposed_credits.map((credit) => (
          <li key={credit.id}>
            <div className={css.row}>
              <span>
                <Chip kind={STATUS[credit.status].kind}>{STATUS[credit.status].label}</Chip>{' '}
                {credit.source === 'restatement' ? 'Days billed at less now' : 'Rows that return money'} ·
                found {time(credit.found_at)}
              </span>
              <strong>
                <Cents cents={credit.amount_cents} />
              </strong>
            </div>
            <ul>
              {credit.rows.map((row) => (
                <li key={`${row.day} ${row.description} ${row.amount_usd}`} className={css.row}>
                  <span className={css.muted}>
                    {row.day} · {row.description}
                  </span>
                  <Money usd={row.amount_usd} />
                </li>
              ))}
            </ul>
            {credit.status === 'proposed' && (
              <div className={css.moves}>
                {credit.move && canMove && <Button onPress={() => setMove(credit.move)}>Accept</Button>}
                {may({ scope: 'claims:write' }) && (
                  <Button isPending={isBusy} onPress={() => void reject(credit.id)}>
                    Reject
                  </Button>
                )}
              </div>
            )}
          </li>
        ))}
      </ul>
      {move && (
        <MoveDialog
          claim={claim}
          to={move.status}
          cents={move.credit_issued_cents}
          onClose={() => setMove(null)}
        />
      )}
    </Card>
  );
}
