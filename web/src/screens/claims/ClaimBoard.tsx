import { Link } from 'wouter';
import { day } from '../../app/format';
import { providerName } from '../../app/providers';
import { Grade } from '../../parts/Grade';
import { Cents } from '../../parts/Money';
import css from './ClaimBoard.module.css';
import { MoveMenu } from './MoveMenu';
import { daysOf, type ListedClaim, STATUS, STATUSES } from './words';

/** A column for each status. Claims move by the menu of their card. */
export function ClaimBoard({ claims }: { claims: readonly ListedClaim[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard
    <section className={css.board} aria-label="Claims by status" tabIndex={0}>
      {STATUSES.map((status) => {
        const own = claims.filter((claim) => claim.status === status);
        return (
          <section key={status} className={css.column} aria-label={`${STATUS[status].label}, ${own.length}`}>
            <header className={css.head}>
              <h2>
                {STATUS[status].label} <span className={css.sum}>{own.length}</span>
              </h2>
              {own.length > 0 && (
                <span className={css.sum}>
                  <Cents cents={own.reduce((sum, claim) => sum + claim.total_recoverable_cents, 0)} />
                </span>
              )}
            </header>
            {own.length === 0 ? (
              <p className={css.empty}>None</p>
            ) : (
              <ul>
                {own.map((claim) => (
                  <li key={claim.id} className={css.card}>
                    <div className={css.cardHead}>
                      <Link href={`/claims/${claim.id}`}>{providerName(claim.provider)}</Link>
                      <Cents cents={claim.total_recoverable_cents} />
                    </div>
                    <span className={css.small}>{daysOf(claim)}</span>
                    {claim.next_action_at && (
                      <span className={css.small}>
                        {claim.snoozed_until ? 'Snoozed until' : 'Reminder'}{' '}
                        {day(claim.snoozed_until ?? claim.next_action_at)}
                      </span>
                    )}
                    <div className={css.actions}>
                      <Grade grade={claim.confidence_tier} />
                      <MoveMenu
                        claim={claim}
                        label={`Move the claim on ${providerName(claim.provider)}, ${daysOf(claim)}`}
                      />
                    </div>
                  </li>
                ))}
              </ul>
            )}
          </section>
        );
      })}
    </section>
  );
}
