import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { askHealth, onUnanswered } from '../api/client';
import { Notice } from '../parts/States';

const POLL_MS = 15_000;
/** While the service does not answer. */
const AWAY_POLL_MS = 2_000;

interface Readiness {
  /** `away`: there was no answer. */
  status: 'ok' | 'degraded' | 'unavailable' | 'away';
  reasons: string[];
}

/** The part of the service that is down, and the effect on this screen. Asks again all screens once it answers again. */
export function ServiceState() {
  const client = useQueryClient();
  const { data, refetch } = useQuery({
    queryKey: ['readyz'],
    queryFn: readReadiness,
    retry: false,
    refetchInterval: ({ state }) => (state.data?.status === 'away' ? AWAY_POLL_MS : POLL_MS),
  });
  useEffect(() => onUnanswered(() => void refetch({ cancelRefetch: false })), [refetch]);
  const isAway = data?.status === 'away' || data?.status === 'unavailable';
  const wasAway = useRef(false);
  useEffect(() => {
    if (wasAway.current && !isAway)
      void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'readyz' });
    wasAway.current = isAway;
  }, [isAway, client]);
  if (!data || data.status === 'ok') return null;
  return (
    <Notice kind={isAway ? 'bad' : 'warn'}>
      {data.reasons.join(' ')}
      {isAway && ' What you see may be old. Nothing that you typed is lost; this page tries again.'}
    </Notice>
  );
}

const AWAY: Readiness = { status: 'away', reasons: ['The service does not answer.'] };

async function readReadiness(): Promise<Readiness> {
  const answer = await askHealth('/readyz');
  if (answer?.headers.get('Content-Type')?.includes('json')) return (await answer.json()) as Readiness;
  // A proxy answers in place of the service, or does not let this path through.
  return !answer || answer.status >= 500 ? AWAY : { status: 'ok', reasons: [] };
}
