import { useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';

/** Ends the session on the server and forgets every answer in this page. */
export function useSignOut(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await api.DELETE('/api/v1/session');
    client.clear();
    window.location.assign('/');
  };
}
