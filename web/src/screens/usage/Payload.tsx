import { useState } from 'react';
import { query } from '../../api/client';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Card } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';
import css from './Event.module.css';

/** The raw body of a call. It may hold personal data, so that it loads only when it is asked for. */
export function Payload({ id }: { id: string }) {
  const isAllowed = useMay()({ scope: 'payloads:read' });
  const [isShown, setIsShown] = useState(false);
  const event = query.useQuery(
    'get',
    '/api/v1/events/{id}',
    { params: { path: { id }, query: { include_payload: 'true' } } },
    { enabled: isAllowed && isShown },
  );
  return (
    <Card
      title="Payload"
      aside={
        isAllowed && (
          <Button onPress={() => setIsShown(!isShown)}>{isShown ? 'Hide payload' : 'Show payload'}</Button>
        )
      }
    >
      {!isAllowed ? (
        <p className={css.hint}>Your key may not read payloads (scope payloads:read).</p>
      ) : !isShown ? (
        <p className={css.hint}>The body as the client sent it. It may hold prompts and personal data.</p>
      ) : event.isPending ? (
        <Loading rows={3} />
      ) : event.error ? (
        <ErrorState error={event.error} retry={() => void event.refetch()} />
      ) : event.data?.payload === null || event.data?.payload === undefined ? (
        <p className={css.hint}>No payload was kept for this call.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard
        <pre className={css.payload} tabIndex={0}>
          {JSON.stringify(event.data.payload, null, 2)}
        </pre>
      )}
    </Card>
  );
}
