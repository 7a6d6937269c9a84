import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type components, query } from '../../api/client';
import { day, time } from '../../app/format';
import { useSession } from '../../app/session';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { SettingsTabs } from '../installation/SettingsTabs';

type Listed = components['schemas']['Session'];

const SIGN_IN: Record<Listed['sign_in'], string> = {
  key: 'API key',
  link: 'one-time link',
  oidc: 'identity provider',
};

export default function Sessions() {
  const own = useSession();
  const client = useQueryClient();
  const toast = useToast();
  const [isOpen, setIsOpen] = useState(false);
  const offset = useOffset();
  const sessions = query.useQuery('get', '/api/v1/sessions', {
    params: { query: { limit: PAGE_ROWS, offset } },
  });
  const end = query.useMutation('delete', '/api/v1/sessions/{id}', {
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/sessions'] });
      toast('The session has ended.');
    },
    onError: (error) =>
      toast((error as { detail?: string }).detail ?? 'The session could not be ended.', 'bad'),
  });
  const endAll = query.useMutation('delete', '/api/v1/sessions', {
    onSuccess: () => {
      client.clear();
      window.location.assign('/');
    },
  });
  return (
    <Page
      title="Sessions"
      lead={
        own.role === 'admin'
          ? 'Browsers that are signed in to this organization.'
          : 'Browsers in which you are signed in.'
      }
      actions={
        <Button kind="danger" onPress={() => setIsOpen(true)}>
          Sign out everywhere
        </Button>
      }
      tabs={<SettingsTabs />}
    >
      {sessions.isPending ? (
        <Loading />
      ) : sessions.error ? (
        <ErrorState error={sessions.error} retry={() => void sessions.refetch()} />
      ) : sessions.data.sessions.length === 0 ? (
        <Empty title="Nobody is signed in by a browser" />
      ) : (
        <DataTable
          caption="Sessions"
          csv={'/api/v1/sessions?format=csv'}
          rows={sessions.data.sessions}
          rowKey={({ id }) => id}
          more={<Pager page={sessions.data} />}
          columns={[
            {
              id: 'who',
              head: 'Who',
              cell: ({ name, email, principal, is_current }) => (
                <span title={principal}>
                  {name ?? email ?? principal} {is_current && <Chip kind="accent">This browser</Chip>}
                </span>
              ),
            },
            { id: 'role', head: 'Role', cell: ({ role }) => role },
            { id: 'by', head: 'Signed in by', cell: ({ sign_in }) => SIGN_IN[sign_in] },
            {
              id: 'browser',
              head: 'Browser',
              cell: ({ user_agent }) => <span title={user_agent ?? undefined}>{browserOf(user_agent)}</span>,
            },
            {
              id: 'created',
              head: 'Since',
              cell: ({ created_at }) => <span title={time(created_at)}>{day(created_at)}</span>,
            },
            { id: 'seen', head: 'Last seen', cell: ({ last_seen_at }) => time(last_seen_at) },
            {
              id: 'expires',
              head: 'Ends',
              cell: ({ expires_at }) => <span title={time(expires_at)}>{day(expires_at)}</span>,
            },
            {
              id: 'end',
              head: <span className="visually-hidden">Actions</span>,
              cell: ({ id, name, is_current }) =>
                !is_current && (
                  <Button
                    kind="quiet"
                    isPending={end.isPending}
                    aria-label={`End the session of ${name ?? id}`}
                    onPress={() => end.mutate({ params: { path: { id } } })}
                  >
                    End
                  </Button>
                ),
            },
          ]}
        />
      )}
      <Confirm
        title="Sign out everywhere"
        action="Sign out everywhere"
        isDanger
        isOpen={isOpen}
        isBusy={endAll.isPending}
        error={endAll.error}
        onClose={() => setIsOpen(false)}
        onConfirm={() => endAll.mutate({})}
      >
        <p>
          All your own sessions end, this browser’s too. Keys keep working. Sessions of other people stay.
        </p>
      </Confirm>
    </Page>
  );
}

/** Browser and system in words: `Firefox, Linux`. */
function browserOf(agent: string | null): string {
  if (!agent) return 'unknown';
  const find = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = find([
    [/Edg\//, 'Edge'],
    [/Firefox\//, 'Firefox'],
    [/Chrome\//, 'Chrome'],
    [/Safari\//, 'Safari'],
  ]);
  const system = find([
    [/Windows/, 'Windows'],
    [/iPhone|iPad/, 'iOS'],
    [/Android/, 'Android'],
    [/Mac OS/, 'macOS'],
    [/Linux/, 'Linux'],
  ]);
  return [browser ?? agent.slice(0, 40), system].filter(Boolean).join(', ');
}
