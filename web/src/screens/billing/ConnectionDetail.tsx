import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link, useLocation, useParams, useSearchParams } from 'wouter';
import { type components, query } from '../../api/client';
import { count, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { TextField } from '../../parts/forms/Fields';
import { Money } from '../../parts/Money';
import { Card, Chip, Facts, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { RunProgress } from '../../parts/RunProgress';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { CredentialFields, credentialsOf } from './ConnectForm';
import { CONNECTION_STATUS, type Connection } from './connectors';
import { PermissionCheck } from './PermissionCheck';

const PATH = '/api/v1/billing-connections/{id}';
const POLL_MS = 2_000;

type Sync = components['schemas']['BillingSyncRun'];
const isOpenRun = ({ status }: Sync) => status === 'queued' || status === 'running';

export default function ConnectionDetail() {
  const { id } = useParams<{ id: string }>();
  const connection = query.useQuery('get', PATH, { params: { path: { id } } });
  if (connection.isPending) return <Loading />;
  if (connection.error)
    return <ErrorState error={connection.error} retry={() => void connection.refetch()} />;
  return <Whole connection={connection.data} />;
}

function Whole({ connection }: { connection: Connection }) {
  const client = useQueryClient();
  const mayWrite = useMay()({ scope: 'billing:write' });
  const offset = useOffset();
  const [params] = useSearchParams();
  const runs = query.useQuery(
    'get',
    `${PATH}/runs`,
    { params: { path: { id: connection.id }, query: { limit: PAGE_ROWS, offset } } },
    { refetchInterval: ({ state }) => (state.data?.runs.some(isOpenRun) ? POLL_MS : false) },
  );
  const running = runs.data?.runs.find(isOpenRun);
  const isRunning = running !== undefined;
  useEffect(() => {
    // The connection's status and times change when a sync ends.
    if (!isRunning) void client.invalidateQueries({ queryKey: ['get', PATH] });
  }, [isRunning, client]);
  const { label, kind } = CONNECTION_STATUS[connection.status];
  return (
    <Page
      title={connection.name}
      lead={
        <>
          <Link href="/connections">Connections</Link> · {providerName(connection.provider)} ·{' '}
          <Chip kind={kind}>{label}</Chip>
        </>
      }
      actions={
        mayWrite && connection.status !== 'ended' && <Actions connection={connection} isRunning={isRunning} />
      }
    >
      {!connection.has_credentials && connection.status !== 'ended' && (
        <Notice kind="bad">The credentials are gone with a lost secret key. Give new ones.</Notice>
      )}
      {connection.last_error && (
        <Notice kind="bad">
          {connection.last_failed_at && `${time(connection.last_failed_at)}: `}
          {connection.last_error.message}
        </Notice>
      )}
      {running && (
        <Card>
          <RunProgress label="Fetching bills" progress={running.progress} />
          {running.waiting && (
            <p>
              Waiting until {time(running.waiting.until)}: {running.waiting.message}
            </p>
          )}
        </Card>
      )}
      <Card>
        <Facts
          items={[
            ['Account', <code key="a">{connection.provider_account_id}</code>],
            ['Bills since', connection.backfill_from],
            ['Last sync', connection.last_synced_at ? time(connection.last_synced_at) : '–'],
            ['Next sync', connection.next_sync_at ? time(connection.next_sync_at) : '–'],
            ['Reads', scopeText(connection)],
            ['Connected', time(connection.created_at)],
          ]}
        />
      </Card>
      {mayWrite && connection.status !== 'ended' && (
        <PermissionCheck id={connection.id} isImmediate={params.get('check') === '1'} />
      )}
      <h2>Syncs</h2>
      {runs.isPending ? (
        <Loading />
      ) : runs.error ? (
        <ErrorState error={runs.error} retry={() => void runs.refetch()} />
      ) : runs.data.runs.length === 0 ? (
        <Empty title="No sync yet" />
      ) : (
        <Runs
          csv={`/api/v1/billing-connections/${connection.id}/runs?format=csv`}
          runs={runs.data.runs}
          more={<Pager page={runs.data} />}
        />
      )}
    </Page>
  );
}

function scopeText({ settings: { scope } }: Connection): string {
  if (!scope) return 'the whole account';
  if (typeof scope === 'string') return scope;
  return Object.entries(scope)
    .map(([part, ids]) => `${part}: ${(ids ?? []).join(', ')}`)
    .join('; ');
}

const TRIGGER: Record<Sync['trigger'], string> = {
  connect: 'first sync',
  schedule: 'schedule',
  request: 'by hand',
  settings: 'changed settings',
};

function Runs({ runs, more, csv }: { runs: readonly Sync[]; more: React.ReactNode; csv: string }) {
  return (
    <DataTable
      caption="Syncs, newest first"
      csv={csv}
      rows={runs}
      rowKey={({ id }) => id}
      more={more}
      columns={[
        { id: 'at', head: 'Started', cell: ({ created_at }) => time(created_at) },
        { id: 'trigger', head: 'Started by', cell: ({ trigger }) => TRIGGER[trigger] },
        {
          id: 'status',
          head: 'Status',
          cell: ({ status }) => (
            <Chip
              kind={
                status === 'succeeded'
                  ? 'good'
                  : status === 'failed'
                    ? 'bad'
                    : status === 'partial'
                      ? 'warn'
                      : 'plain'
              }
            >
              {status}
            </Chip>
          ),
        },
        {
          id: 'rows',
          head: 'Rows',
          isNumber: true,
          cell: ({ result }) => (result ? count(result.rows) : '–'),
        },
        {
          id: 'days',
          head: 'Changed days',
          isNumber: true,
          cell: ({ result }) => (result ? count(result.changed_days) : '–'),
        },
        {
          id: 'notes',
          head: 'Notes',
          isWide: true,
          cell: ({ error, result }) => (
            <>
              {error?.message}
              {result?.missing.map((one) => (
                <p key={`${one.report} ${one.period_start}`}>
                  Missing {one.report} {one.period_start} – {one.period_end}: {one.message}. The next sync
                  takes it up.
                </p>
              ))}
              {result?.restated.map((one) => (
                <p key={`${one.report} ${one.day}`}>
                  Restated {one.day}: <Money usd={one.old_usd} /> is now <Money usd={one.new_usd} />
                </p>
              ))}
              {result && result.restated_count > result.restated.length && (
                <p>and {count(result.restated_count - result.restated.length)} more restated days</p>
              )}
            </>
          ),
        },
      ]}
    />
  );
}

function Actions({ connection, isRunning }: { connection: Connection; isRunning: boolean }) {
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  const [dialog, setDialog] = useState<'edit' | 'end'>();
  const params = { path: { id: connection.id } };
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ['get', PATH] }),
      client.invalidateQueries({ queryKey: ['get', `${PATH}/runs`] }),
      client.invalidateQueries({ queryKey: ['get', '/api/v1/billing-connections'] }),
    ]);
  const sync = query.useMutation('post', `${PATH}/sync`, {
    onSuccess: async (run) => {
      await refresh();
      toast(run.existing ? 'A sync is under way already.' : 'The sync has started.');
    },
    onError: (error) => toast((error as { detail?: string }).detail ?? 'The sync did not start.', 'bad'),
  });
  const change = query.useMutation('patch', PATH, {
    onSuccess: async (now) => {
      await refresh();
      toast(now.status === 'paused' ? 'Scheduled syncs are paused.' : 'The connection is changed.');
      setDialog(undefined);
    },
  });
  const end = query.useMutation('delete', PATH, {
    onSuccess: async () => {
      toast('The connection has ended. Its credentials are erased.');
      go('/connections');
      await refresh();
    },
  });
  return (
    <>
      <Button
        kind="primary"
        isPending={sync.isPending}
        isDisabled={isRunning}
        onPress={() => sync.mutate({ params })}
      >
        {isRunning ? 'Syncing …' : 'Sync now'}
      </Button>
      <Button
        isPending={change.isPending}
        onPress={() => change.mutate({ params, body: { paused: connection.status !== 'paused' } })}
      >
        {connection.status === 'paused' ? 'Resume' : 'Pause'}
      </Button>
      <Button onPress={() => setDialog('edit')}>Edit</Button>
      <Button kind="danger" onPress={() => setDialog('end')}>
        End
      </Button>
      {dialog === 'edit' && (
        <Edit
          connection={connection}
          isBusy={change.isPending}
          error={change.error}
          onSave={(body) => change.mutate({ params, body })}
          onClose={() => setDialog(undefined)}
        />
      )}
      <Confirm
        title={`End ${connection.name}`}
        action="End the connection"
        isDanger
        isOpen={dialog === 'end'}
        isBusy={end.isPending}
        error={end.error}
        onClose={() => setDialog(undefined)}
        onConfirm={() => end.mutate({ params })}
      >
        <p>
          Its credentials are erased at once and nothing more is fetched. The bills that it fetched are kept.
        </p>
      </Confirm>
    </>
  );
}

function Edit({
  connection,
  isBusy,
  error,
  onSave,
  onClose,
}: {
  connection: Connection;
  isBusy: boolean;
  error: unknown;
  onSave: (body: { name?: string; credentials?: Record<string, string> }) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(connection.name);
  const [values, setValues] = useState<Record<string, string>>({});
  const credentials = credentialsOf(connection.provider, values);
  const body = {
    ...(name.trim() !== connection.name ? { name: name.trim() } : {}),
    ...(Object.keys(credentials).length > 0 ? { credentials } : {}),
  };
  return (
    <Confirm
      title={`Edit ${connection.name}`}
      action="Save"
      isOpen
      isBusy={isBusy}
      isDisabled={Object.keys(body).length === 0 || name.trim() === ''}
      error={error}
      onClose={onClose}
      onConfirm={() => onSave(body)}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <p style={{ color: 'var(--muted)' }}>
        New credentials must belong to the same account. Leave them empty to keep the present ones.
      </p>
      <CredentialFields provider={connection.provider} values={values} onChange={setValues} error={error} />
    </Confirm>
  );
}
