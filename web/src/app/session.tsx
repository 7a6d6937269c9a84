import { useQueryClient } from '@tanstack/react-query';
import {
  createContext,
  type ReactNode,
  Suspense,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react';
import { api, onSignedOut, query } from '../api/client';
import type { paths } from '../api/schema';
import { Button } from '../parts/forms/Button';
import { Modal } from '../parts/forms/Modal';
import { ErrorState, Loading, Notice } from '../parts/States';
import { setTimeZone } from './format';
import { lazyPart } from './lazyPart';
import { welcomeToken } from './welcome';

export type Session = paths['/api/v1/session']['get']['responses'][200]['content']['application/json'];

const loadSignIn = () => import('../screens/access/SignIn');
const SignIn = lazyPart(loadSignIn);
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

/** The rights of a session as a key of the cache: answers to one set of rights must not be shown to another. */
function reachOf({ organization, workspace, role, scopes }: Session): string {
  return JSON.stringify([organization.id, workspace?.id ?? null, role, [...scopes].sort()]);
}

/**
 * Shows the sign-in screen to people without a session. When a session ends in the middle of a task, the sign-in
 * covers the screen and the screen keeps what was typed. Where the new session may see something else, also one that
 * began in another tab, the page begins anew, so that nothing of the former one stays.
 */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const session = query.useQuery(
    'get',
    '/api/v1/session',
    {},
    { retry: false, staleTime: 60_000, refetchOnWindowFocus: 'always' },
  );
  const [hasLink, setHasLink] = useState(() => welcomeToken(window.location.hash) !== undefined);
  const [isLost, setIsLost] = useState(false);
  useEffect(() => onSignedOut(() => setIsLost(true)), []);
  useEffect(() => {
    const timer = setTimeout(() => loadSignIn().catch(() => undefined), SPARE_MS);
    return () => clearTimeout(timer);
  }, []);
  const signedIn = useCallback(async () => {
    // The link of the address has been used.
    setHasLink(false);
    // Who it is comes before everything else: another's session must not show what the former one saw.
    await client.invalidateQueries({ queryKey: ['get', '/api/v1/session'] });
    setIsLost(false);
    await client.invalidateQueries();
  }, [client]);
  const reach = session.data && reachOf(session.data);
  const firstReach = useRef(reach);
  firstReach.current ??= reach;
  const isAnother = reach !== firstReach.current;
  useEffect(() => {
    if (!isAnother) return;
    client.clear();
    window.location.assign('/');
  }, [client, isAnother]);
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
  if (isAnother) return <Loading label="Trueup" />;
  if (session.data && hasLink)
    return (
      <LinkQuestion
        organization={session.data.organization.name}
        onAnswer={async (isWanted) => {
          if (isWanted) {
            await api.DELETE('/api/v1/session');
            // The page loads anew, without a session, and signs in with the link of its address.
            window.location.reload();
          } else {
            window.history.replaceState(null, '', window.location.pathname);
            setHasLink(false);
          }
        }}
      />
    );
  if (session.data) setTimeZone(session.data.organization.time_zone);
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

/** Another's link must not change who is signed in without a question. */
function LinkQuestion({
  organization,
  onAnswer,
}: {
  organization: string;
  onAnswer: (isWanted: boolean) => void;
}) {
  return (
    <Modal title="Sign in with this link?" isOpen isDismissable={false}>
      <Notice>
        You are signed in to {organization}. The link signs this browser in anew, perhaps to another
        organization, and ends the session here.
      </Notice>
      <div style={{ display: 'flex', flexWrap: 'wrap', gap: 10, marginTop: 16 }}>
        <Button kind="primary" onPress={() => onAnswer(true)}>
          Sign in with the link
        </Button>
        <Button onPress={() => onAnswer(false)}>Stay in {organization}</Button>
      </div>
    </Modal>
  );
}
