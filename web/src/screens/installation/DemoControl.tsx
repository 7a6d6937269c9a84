import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, errorText, query } from '../../api/client';
import { useEnterDemo } from '../../app/demo';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { RunProgress } from '../../parts/RunProgress';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { isUnderWay } from '../../parts/useRun';

const PATH = '/api/v1/demo';
const POLL_MS = 2_000;

/** Loads Demo Labs, signs in there, and removes it. For admins of another organization. */
export default function DemoControl({ isRemovable = false }: { isRemovable?: boolean }) {
  const client = useQueryClient();
  const toast = useToast();
  const [isRemoving, setIsRemoving] = useState(false);
  const demo = query.useQuery(
    'get',
    PATH,
    {},
    {
      refetchInterval: ({ state }) =>
        isUnderWay(state.data?.run?.status ?? '') || state.data?.run?.stage === 'queued' ? POLL_MS : false,
    },
  );
  const refresh = () => client.invalidateQueries({ queryKey: ['get', PATH] });
  const load = query.useMutation('post', PATH, {
    onSuccess: refresh,
    onError: (error) => toast(errorText(error), 'bad'),
  });
  const remove = query.useMutation('delete', PATH, {
    onSuccess: async () => {
      setIsRemoving(false);
      toast('The demo is removed.');
      await refresh();
    },
  });
  const enter = useEnterDemo();
  if (demo.isPending) return <Loading rows={1} />;
  if (demo.error) return <ErrorState error={demo.error} retry={() => void demo.refetch()} />;
  const { organization, run } = demo.data;
  if (run && isUnderWay(run.status))
    return <RunProgress label="Loading the demo" progress={{ stage: run.stage, done: 0, total: 0 }} />;
  const isLoaded = organization !== null && run?.status === 'succeeded';
  return (
    <>
      {run?.status === 'failed' && <Notice kind="bad">The demo was not loaded: {run.error?.message}</Notice>}
      <div style={{ display: 'flex', flexWrap: 'wrap', gap: 10 }}>
        {isLoaded ? (
          <>
            <Button kind="primary" isPending={enter.isPending} onPress={() => enter.mutate(run.run_id)}>
              Open the demo
            </Button>
            <LinkButton runId={run.run_id} />
          </>
        ) : (
          <Button isPending={load.isPending} onPress={() => load.mutate({})}>
            Load the demo
          </Button>
        )}
        {isRemovable && organization !== null && (
          <Button kind="danger" onPress={() => setIsRemoving(true)}>
            Remove the demo
          </Button>
        )}
      </div>
      {isLoaded && (
        <p style={{ color: 'var(--muted)' }}>
          Opening it signs this browser out of here. To stay, copy the link and open it in a private window.
        </p>
      )}
      <Confirm
        title="Remove the demo?"
        action="Remove the demo"
        isDanger
        isOpen={isRemoving}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({})}
        onClose={() => setIsRemoving(false)}
      >
        <p>
          Demo Labs is deleted with its calls, bills, findings and claims, for everybody who looks at it. Your
          own organization keeps everything. The demo can be loaded again.
        </p>
      </Confirm>
    </>
  );
}

/** Copies a one-time link into the demo. */
function LinkButton({ runId }: { runId: string }) {
  const toast = useToast();
  const [link, setLink] = useState('');
  const make = async () => {
    const { data, error } = await api.GET('/api/v1/demo/runs/{id}', { params: { path: { id: runId } } });
    const made = data?.result?.sign_in_link;
    if (!made) {
      toast(error ? errorText(error) : 'The demo was removed. Load it again.', 'bad');
      return;
    }
    setLink(made);
    await navigator.clipboard.writeText(made).then(
      () => toast('The link is copied. It signs in once, within ten minutes.'),
      () => undefined,
    );
  };
  return (
    <>
      <Button onPress={() => void make()}>Copy a link</Button>
      {link && (
        <code style={{ overflowWrap: 'anywhere', userSelect: 'all', alignSelf: 'center' }}>{link}</code>
      )}
    </>
  );
}
