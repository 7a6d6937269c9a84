import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, errorText } from '../api/client';
import { Button } from '../parts/forms/Button';
import { useToast } from '../parts/Toasts';
import css from './Frame.module.css';
import { useSession } from './session';
import { useSignOut } from './useSignOut';
import { welcomeToken } from './welcome';

/** Signs this browser in to the demo that the run has loaded; its session here ends. */
export function useEnterDemo() {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: async (runId: string) => {
      // Each read makes another link, which is valid for ten minutes.
      const run = await api.GET('/api/v1/demo/runs/{id}', { params: { path: { id: runId } } });
      if (run.error) throw run.error;
      const link = run.data.result?.sign_in_link;
      if (!link) throw new Error('The demo was removed. Load it again.');
      const signIn = await api.POST('/api/v1/session', { body: { token: welcomeToken(new URL(link).hash) } });
      if (signIn.error) throw signIn.error;
      client.clear();
      window.location.assign('/');
    },
    onError: (error) => toast(errorText(error), 'bad'),
  });
}

/** Shows on every screen that the figures are invented, with a link back. */
export function DemoBar() {
  const { organization } = useSession();
  const signOut = useSignOut();
  if (!organization.is_demo) return null;
  return (
    <section className={css.demo} aria-label="Demo">
      <span>
        <strong>{organization.name}</strong> is an invented company: you can try everything. Your own
        organization is not touched. To return, sign in with your key, your company account, or a link of{' '}
        <code>./trueup sign-in</code>.
      </span>
      <Button onPress={() => void signOut()}>Back to my organization</Button>
    </section>
  );
}
