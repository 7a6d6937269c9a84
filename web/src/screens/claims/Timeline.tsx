import { time } from '../../app/format';
import { kindName } from '../../app/kinds';
import { Actor } from '../../parts/Actor';
import { Cents } from '../../parts/Money';
import css from './Claim.module.css';
import { type Claim, STATUS } from './words';

/** The history of a claim: what changed, who did it and when. The last entry is the newest. */
export function Timeline({ claim }: { claim: Claim }) {
  return (
    <ol className={css.timeline}>
      {claim.events.map((event) => (
        <li key={event.version}>
          <strong>
            {event.from_status === null
              ? 'Draft created'
              : event.from_status === event.to_status
                ? `${STATUS[event.to_status].label}, changed`
                : STATUS[event.to_status].label}
          </strong>
          <div className={css.muted}>
            {time(event.at)} · <Actor id={event.actor} />
          </div>
          {event.external_ticket_id && <div>Ticket {event.external_ticket_id}</div>}
          {event.credit_issued_cents !== null && (
            <div>
              Credit <Cents cents={event.credit_issued_cents} />
            </div>
          )}
          {event.violation_type && <div>According to the provider: {kindName(event.violation_type)}</div>}
          {event.denial_reason && <p className={css.quote}>{event.denial_reason}</p>}
        </li>
      ))}
    </ol>
  );
}
