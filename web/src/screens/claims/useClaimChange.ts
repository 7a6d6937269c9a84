import { useQueryClient } from '@tanstack/react-query';

const CHANGED = ['/api/v1/claims', '/api/v1/financial', '/api/v1/alerts'];

/** Asks anew for everything that a decision on a finding, a dispute or a claim changes. */
export function useClaimChange(): () => Promise<void> {
  const client = useQueryClient();
  return () =>
    client.invalidateQueries({
      predicate: ({ queryKey }) => CHANGED.some((path) => String(queryKey[1]).startsWith(path)),
    });
}
