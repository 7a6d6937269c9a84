import { query } from '../../api/client';
import { CopyButton } from '../../parts/forms/CopyButton';
import { Card } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';
import css from './Claim.module.css';

/** The text for the provider's support, to be copied. It is written from current data on every request. */
export function TicketDraft({ id }: { id: string }) {
  const draft = query.useQuery('get', '/api/v1/claims/{id}/ticket-draft', { params: { path: { id } } });
  return (
    <Card
      title="Ticket draft"
      aside={
        draft.data && (
          <div className={css.moves}>
            <CopyButton text={draft.data.subject} label="Copy subject" />
            <CopyButton text={draft.data.body} label="Copy text" />
          </div>
        )
      }
    >
      {draft.isPending ? (
        <Loading />
      ) : draft.error ? (
        <ErrorState error={draft.error} retry={() => void draft.refetch()} />
      ) : (
        <>
          <p>
            <strong>{draft.data.subject}</strong>
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard */}
          <pre className={css.ticket} tabIndex={0}>
            {draft.data.body}
          </pre>
          <p className={css.muted}>
            Attach the PDF and the CSV of the evidence. Trueup sends nothing to the provider.
          </p>
        </>
      )}
    </Card>
  );
}
