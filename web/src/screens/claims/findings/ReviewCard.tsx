import { time } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { Actor } from '../../../parts/Actor';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { Grade } from '../../../parts/Grade';
import { Money } from '../../../parts/Money';
import { Card, Chip, Facts } from '../../../parts/Page';
import { daysOf } from '../words';
import css from './Review.module.css';
import { type ReviewItem, SEVERITY, STATUS } from './words';

/** The chosen item of the queue: amount, reason, advice and the two decisions. */
export function ReviewCard({
  item,
  mayDecide,
  isBusy,
  onConfirm,
  onDismiss,
}: {
  item: ReviewItem;
  mayDecide: boolean;
  isBusy: boolean;
  onConfirm: () => void;
  onDismiss: () => void;
}) {
  const isPolicy = item.kind === 'policy';
  const isOpen = item.status === 'open';
  return (
    <Card
      title={kindName(item.kind)}
      aside={
        <span className={css.actions}>
          <Chip kind={SEVERITY[item.severity].kind}>{SEVERITY[item.severity].label} severity</Chip>
          {!isOpen && <Chip kind={STATUS[item.status].kind}>{STATUS[item.status].label}</Chip>}
        </span>
      }
    >
      <div>
        <div className={css.amount}>
          <Money usd={item.impact_usd_exact} isClaimable />
        </div>
        <p className={css.small}>
          {isPolicy
            ? 'cost of the calls'
            : item.direction === 'overcharge'
              ? 'charged too much'
              : 'charged too little'}
        </p>
      </div>
      <p>{item.reason}</p>
      {item.advice.length > 0 && (
        <ul className={css.advice}>
          {item.advice.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
      <Facts
        items={[
          ['Provider', item.provider ? providerName(item.provider) : 'several'],
          ['Model', item.model ?? 'several'],
          ['Days (UTC)', daysOf(item)],
          ['Confidence', <Grade key="g" grade={item.confidence} score={item.confidence_score} />],
          ['Account', item.provider_account_id || '–'],
        ]}
      />
      {item.decided_at && (
        <p className={css.small}>
          {STATUS[item.status].label} {time(item.decided_at)} by <Actor id={item.decided_by} />
          {item.decision_reason && <>: “{item.decision_reason}”</>}
        </p>
      )}
      <div className={css.actions}>
        {mayDecide && isOpen && !isPolicy && (
          <>
            {item.direction === 'overcharge' && (
              <Button kind="primary" isPending={isBusy} onPress={onConfirm}>
                {isBusy ? 'Saving …' : 'Confirm'}
              </Button>
            )}
            <Button isPending={isBusy} onPress={onDismiss}>
              Dismiss …
            </Button>
          </>
        )}
        {isPolicy ? (
          <ButtonLink href={alertsAddress(item)}>Acknowledge its alerts</ButtonLink>
        ) : (
          <ButtonLink href={`/findings/${item.id}`}>All evidence</ButtonLink>
        )}
        {item.dispute_id && <ButtonLink href={`/disputes?id=${item.dispute_id}`}>Dispute</ButtonLink>}
      </div>
    </Card>
  );
}

/** The alerts screen takes the same filters as the API's address in the item. */
function alertsAddress(item: ReviewItem): string {
  const [, search = ''] =
    item.evidence_refs.find((ref) => ref.startsWith('/api/v1/alerts'))?.split('?') ?? [];
  return `/alerts?${search}`;
}
