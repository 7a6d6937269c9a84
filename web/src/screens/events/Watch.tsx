import { useState } from 'react';
import { query } from '../../api/client';
import { count, time } from '../../app/format';
import { ButtonLink } from '../../parts/forms/Button';
import { Money } from '../../parts/Money';
import { Facts } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import css from './FirstCall.module.css';

/** Milliseconds between two looks: a call is noticed within two seconds. */
const LOOK_MS = 1_000;
/** Newest calls that are compared with those at the beginning. */
const LOOKED_AT = 20;

/**
 * Looks for a call that arrives while the page is open: one of the new key, or any that was not there at the first look.
 * A hidden tab does not look.
 */
export function Watch({ keyId }: { keyId: string | undefined }) {
  const [known, setKnown] = useState<ReadonlySet<string>>();
  const newest = query.useQuery(
    'get',
    '/api/v1/events',
    { params: { query: { limit: LOOKED_AT } } },
    {
      refetchInterval: ({ state }) => (found(state.data?.events, known, keyId) ? false : LOOK_MS),
      staleTime: 0,
    },
  );
  const events = newest.data?.events;
  if (events && !known) setKnown(new Set(events.map((event) => event.id)));
  if (newest.isPending) return <Loading rows={1} />;
  if (newest.error && !events) return <ErrorState error={newest.error} retry={() => void newest.refetch()} />;
  const call = found(events, known, keyId);
  const before = events?.[0];
  if (!call)
    return (
      <>
        <p className={css.watch} role="status">
          <span className={css.dot} aria-hidden="true" />
          Waiting for a call. It appears here within two seconds.
        </p>
        {newest.error && (
          <Notice kind="warn">The service does not answer at the moment. This page tries again.</Notice>
        )}
        {before && (
          <p className={css.small}>
            Newest call so far: {before.model}, {time(before.timestamp)}.
          </p>
        )}
      </>
    );
  return (
    <>
      <div role="status">
        <Notice kind="good">Your call has arrived.</Notice>
      </div>
      <Facts
        items={[
          ['Model', call.model],
          ['Provider', call.provider],
          ['Time', time(call.timestamp)],
          ['Input tokens', count(call.input_tokens)],
          ['Output tokens', count(call.output_tokens)],
          ['Cost', <Money key="cost" usd={call.cost_source === 'unpriced' ? null : call.cost_usd} />],
        ]}
      />
      <p className={css.row}>
        <ButtonLink kind="primary" href={`/events/${call.id}`}>
          Open the call
        </ButtonLink>
        <ButtonLink href="/usage">See all usage</ButtonLink>
      </p>
    </>
  );
}

function found<Event extends { id: string; api_key_id: string }>(
  events: readonly Event[] | undefined,
  known: ReadonlySet<string> | undefined,
  keyId: string | undefined,
): Event | undefined {
  return events?.find((event) => event.api_key_id === keyId || known?.has(event.id) === false);
}
