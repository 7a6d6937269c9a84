import { useEffect, useRef, useState } from 'react';
import { api, errorText, query } from '../../api/client';
import { welcomeToken } from '../../app/welcome';
import { Button } from '../../parts/forms/Button';
import { Form, TextField } from '../../parts/forms/Fields';
import { Notice } from '../../parts/States';
import css from './SignIn.module.css';

const REFUSED = /^#\/sign-in\?problem=(\w+)$/;

/** Why the identity provider's answer did not sign in (docs/sign-in.md). */
const REFUSALS: Record<string, string> = {
  denied: 'Your identity provider did not let you in.',
  no_role: 'None of your groups has a role in Trueup. Ask an administrator to add you to one.',
  expired: 'The sign-in took more than ten minutes, or began in another browser. Start it again.',
  unavailable: 'Your identity provider does not answer. Try again in a moment, or sign in with a key.',
  invalid: 'The answer of your identity provider does not belong to this sign-in. Start it again.',
  failed: 'The sign-in failed in Trueup. The service’s log has the reason.',
};

/** Signs in with an API key, or with the one-time link that `npm start` and `./trueup sign-in` print. */
export default function SignIn({
  onSignedIn,
  isPage = false,
}: {
  onSignedIn: () => Promise<void>;
  isPage?: boolean;
}) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | undefined>(() => {
    const reason = REFUSED.exec(window.location.hash)?.[1];
    return reason && (REFUSALS[reason] ?? REFUSALS.failed);
  });
  const options = query.useQuery('get', '/api/v1/session/options', {}, { staleTime: 60_000 });
  const [isBusy, setIsBusy] = useState(false);
  const isUsed = useRef(false);
  const signIn = async (body: { api_key: string } | { token: string }) => {
    setIsBusy(true);
    setError(undefined);
    try {
      const answer = await api.POST('/api/v1/session', { body: body as never });
      if (answer.error) setError(errorText(answer.error));
      else await onSignedIn();
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsBusy(false);
    }
  };
  useEffect(() => {
    const token = welcomeToken(window.location.hash);
    if (!token || isUsed.current) return;
    isUsed.current = true;
    // The token leaves the address at once, so that it is not copied with it.
    window.history.replaceState(null, '', window.location.pathname);
    void signIn({ token });
  });
  const form = (
    <>
      {error && <Notice kind="bad">{error}</Notice>}
      {options.data?.sign_ins.includes('oidc') && (
        <a
          className={css.identity}
          href="/api/v1/session/oidc/start"
          // Over a screen the sign-in opens beside it, so that the screen keeps what was typed.
          target={isPage ? undefined : '_blank'}
          rel="noopener"
        >
          Sign in with your company account
        </a>
      )}
      <Form
        onSubmit={() => void signIn({ api_key: key.trim() })}
        actions={
          <Button kind="primary" type="submit" isPending={isBusy} isDisabled={key.trim() === ''}>
            Sign in
          </Button>
        }
      >
        <TextField
          label="API key"
          type="password"
          name="api_key"
          autoComplete="current-password"
          value={key}
          onChange={setKey}
          help="Starts with tu_live_. The first key lies in .data/admin-key on the server."
        />
      </Form>
      <p className={css.other}>
        No key at hand? <code>./trueup sign-in</code> on the server prints a link that signs in once.
      </p>
    </>
  );
  if (!isPage) return form;
  return (
    <main className={css.page}>
      <div className={css.card}>
        <h1>Sign in to Trueup</h1>
        {form}
      </div>
    </main>
  );
}
