import { useQueryClient } from '@tanstack/react-query';
import {
  createContext,
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useContext,
  useEffect,
  useState,
} from 'react';
import { api, onSignedOut, query } from '../api/client';
import type { paths } from '../api/schema';
import { Modal } from '../parts/forms/Modal';
import { ErrorState, Loading } from '../parts/States';

export type Session = paths['/api/v1/session']['get']['responses'][200]['content']['application/json'];

const loadSignIn = () => import('../screens/access/SignIn');
const SignIn = lazy(loadSignIn);
/** Milliseconds after which a page has time to load the sign-in, for the end of its session. */
const SPARE_MS = 3_000;

const SessionContext = createContext<Session | undefined>(undefined);

/** The signed-in session. Only below SessionGate. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('useSession needs SessionGate above it');
  return session;
}

/**
 * Whether the API would allow a request that needs this scope or role. Screens show no button that the API would refuse.
 * `scopes` null means all scopes of the role.
 */
export function useMay(): (need: { scope?: string; admin?: boolean }) => boolean {
  const session = useSession();
  return ({ scope, admin }) =>
    (!admin || session.role === 'admin') && (scope === undefined || session.scopes.includes(scope as never));
}

/**
 * Shows the sign-in screen to people without a session. When a session ends in the middle of a task, the sign-in
 * covers the screen and the screen keeps what was typed.
 */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const session = query.useQuery('get', '/api/v1/session', {}, { retry: false, staleTime: 60_000 });
  const [isLost, setIsLost] = useState(false);
  useEffect(() => onSignedOut(() => setIsLost(true)), []);
  useEffect(() => {
    const timer = setTimeout(() => void loadSignIn(), SPARE_MS);
    return () => clearTimeout(timer);
  }, []);
  const signedIn = useCallback(async () => {
    setIsLost(false);
    await client.invalidateQueries();
  }, [client]);
  // A person may have signed in again in another tab.
  useEffect(() => {
    if (!isLost) return;
    const look = async () => {
      const answer = await api.GET('/api/v1/session').catch(() => undefined);
      if (answer?.data) await signedIn();
    };
    window.addEventListener('focus', look);
    return () => window.removeEventListener('focus', look);
  }, [isLost, signedIn]);
  if (session.data)
    return (
      <SessionContext.Provider value={session.data}>
        {children}
        <Modal title="Your session has ended" isOpen={isLost} isDismissable={false}>
          <Suspense fallback={<Loading />}>
            <SignIn onSignedIn={signedIn} />
          </Suspense>
        </Modal>
      </SessionContext.Provider>
    );
  if (session.isPending) return <Loading label="Trueup" />;
  if ((session.error as { status?: number } | null)?.status === 401)
    return (
      <Suspense fallback={<Loading label="Trueup" />}>
        <SignIn isPage onSignedIn={signedIn} />
      </Suspense>
    );
  return <ErrorState error={session.error} retry={() => void session.refetch()} />;
}
