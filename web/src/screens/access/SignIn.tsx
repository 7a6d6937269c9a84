import { useEffect, useRef, useState } from 'react';
import { api, errorText } from '../../api/client';
import { Button } from '../../parts/Button';
import { Form, TextField } from '../../parts/Fields';
import { Notice } from '../../parts/States';
import css from './SignIn.module.css';

const WELCOME = /^#\/welcome\/(.+)$/;

/** Signs in with an API key, or with the one-time link that `npm start` and `./trueup sign-in` print. */
export function SignIn({
  onSignedIn,
  isPage = false,
}: {
  onSignedIn: () => Promise<void>;
  isPage?: boolean;
}) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string>();
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
    const token = WELCOME.exec(window.location.hash)?.[1];
    if (!token || isUsed.current) return;
    isUsed.current = true;
    // The token leaves the address at once, so that it is not copied with it.
    window.history.replaceState(null, '', window.location.pathname);
    void signIn({ token });
  });
  const form = (
    <>
      {error && <Notice kind="bad">{error}</Notice>}
      <Form
        onSubmit={() => void signIn({ api_key: key.trim() })}
        actions={
          <Button kind="primary" type="submit" isDisabled={isBusy || key.trim() === ''}>
            {isBusy ? 'Signing in …' : 'Sign in'}
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
