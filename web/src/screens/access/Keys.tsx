import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type components, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { day, time } from '../../app/format';
import { useSession } from '../../app/session';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { Select } from '../../parts/forms/Fields';
import { FilterSelect, optionsOf } from '../../parts/forms/Filters';
import { Modal } from '../../parts/forms/Modal';
import { SecretOnce } from '../../parts/forms/SecretOnce';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { SettingsTabs } from '../installation/SettingsTabs';
import { KeyForm, type KeyWithSecret } from './KeyForm';

const PATH = '/api/v1/keys';
export type Key = components['schemas']['Key'];
type Status = Key['status'];

const STATUS: Record<Status, { label: string; kind: 'good' | 'warn' | 'bad' | 'plain' }> = {
  active: { label: 'Active', kind: 'good' },
  rotating: { label: 'Rotating', kind: 'warn' },
  expired: { label: 'Expired', kind: 'plain' },
  revoked: { label: 'Revoked', kind: 'plain' },
};

export default function Keys() {
  const session = useSession();
  const client = useQueryClient();
  const [status, setStatus] = useFilter<Status | ''>('status', '');
  const [isOpen, setIsOpen] = useState(false);
  const [shown, setShown] = useState<KeyWithSecret>();
  const [dialog, setDialog] = useState<{ kind: 'rotate' | 'revoke' | 'edit'; key: Key }>();
  const offset = useOffset();
  const keys = query.useQuery('get', PATH, {
    params: { query: { ...(status ? { status } : {}), limit: PAGE_ROWS, offset } },
  });
  const refresh = () => client.invalidateQueries({ queryKey: ['get', PATH] });
  const made = (key: KeyWithSecret) => {
    setIsOpen(false);
    setDialog(undefined);
    setShown(key);
    void refresh();
  };
  return (
    <Page
      title="Keys"
      lead="A key signs in programs and people. Its role limits what it can do; its scopes can narrow that."
      actions={
        <Button kind="primary" onPress={() => setIsOpen(true)}>
          Create a key
        </Button>
      }
      tabs={<SettingsTabs />}
      filters={
        <FilterSelect label="Status" value={status} onChange={setStatus} options={optionsOf(STATUS)} />
      }
    >
      {keys.isPending ? (
        <Loading />
      ) : keys.error ? (
        <ErrorState error={keys.error} retry={() => void keys.refetch()} />
      ) : keys.data.keys.length === 0 ? (
        <Empty title="No key matches">
          <Button onPress={() => setStatus('')}>Clear filters</Button>
        </Empty>
      ) : (
        <DataTable
          caption="Keys"
          csv={withQuery(PATH, { status, format: 'csv' })}
          rows={keys.data.keys}
          rowKey={({ id }) => id}
          rowLabel={({ name }) => `Edit key ${name}`}
          onOpen={(key) => setDialog({ kind: 'edit', key })}
          more={<Pager page={keys.data} />}
          columns={[
            { id: 'name', head: 'Name', cell: ({ name }) => name },
            {
              id: 'key',
              head: 'Key',
              cell: ({ id, last4 }) => <code title={id}>tu_live_…{last4}</code>,
            },
            {
              id: 'role',
              head: 'Role',
              cell: ({ role, scopes }) => (
                <span title={scopes?.join(', ')}>
                  {role}
                  {scopes && `, ${scopes.length} ${scopes.length === 1 ? 'scope' : 'scopes'}`}
                </span>
              ),
            },
            { id: 'status', head: 'Status', cell: (key) => <KeyStatus of={key} /> },
            { id: 'used', head: 'Last used', cell: ({ last_used_at: at }) => (at ? time(at) : 'never') },
            { id: 'expires', head: 'Expires', cell: ({ expires_at: at }) => (at ? day(at) : 'never') },
            {
              id: 'actions',
              head: <span className="visually-hidden">Actions</span>,
              cell: (key) =>
                (key.status === 'active' || key.status === 'rotating') && (
                  <>
                    <Button
                      kind="quiet"
                      aria-label={`Rotate ${key.name}`}
                      onPress={() => setDialog({ kind: 'rotate', key })}
                    >
                      Rotate
                    </Button>
                    <Button
                      kind="quiet"
                      aria-label={`Revoke ${key.name}`}
                      onPress={() => setDialog({ kind: 'revoke', key })}
                    >
                      Revoke
                    </Button>
                  </>
                ),
            },
          ]}
        />
      )}
      <Modal title="Create a key" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <KeyForm onMade={made} onClose={() => setIsOpen(false)} />
      </Modal>
      <Modal
        title={`Edit ${dialog?.key.name ?? ''}`}
        isOpen={dialog?.kind === 'edit'}
        onClose={() => setDialog(undefined)}
      >
        {dialog && (
          <KeyForm
            present={dialog.key}
            onChanged={() => {
              setDialog(undefined);
              void refresh();
            }}
            onClose={() => setDialog(undefined)}
          />
        )}
      </Modal>
      {dialog?.kind === 'rotate' && (
        <Rotate of={dialog.key} onMade={made} onClose={() => setDialog(undefined)} />
      )}
      {dialog?.kind === 'revoke' && (
        <Revoke
          of={dialog.key}
          isOwn={dialog.key.id === session.key?.id}
          onDone={() => {
            setDialog(undefined);
            void refresh();
          }}
          onClose={() => setDialog(undefined)}
        />
      )}
      <SecretOnce
        title={`The key ${shown?.name ?? ''}`}
        secret={shown?.key}
        onClose={() => setShown(undefined)}
      >
        {shown?.previous_valid_until && (
          <p>The key before it holds until {time(shown.previous_valid_until)}.</p>
        )}
      </SecretOnce>
    </Page>
  );
}

function KeyStatus({ of: key }: { of: Key }) {
  return (
    <>
      <Chip kind={STATUS[key.status].kind}>{STATUS[key.status].label}</Chip>
      {key.previous_valid_until && key.status === 'rotating' && (
        <div style={{ color: 'var(--muted)', fontSize: '0.75rem' }}>
          old secret until {time(key.previous_valid_until)}
        </div>
      )}
    </>
  );
}

const GRACES = [
  { value: '0', label: 'Ends at once' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
];

function Rotate({
  of: key,
  onMade,
  onClose,
}: {
  of: Key;
  onMade: (key: KeyWithSecret) => void;
  onClose: () => void;
}) {
  const [grace, setGrace] = useState('86400');
  const rotate = query.useMutation('post', '/api/v1/keys/{id}/rotate', { onSuccess: onMade });
  return (
    <Confirm
      title={`Rotate ${key.name}`}
      action="Rotate"
      isOpen
      isBusy={rotate.isPending}
      error={rotate.error}
      onClose={onClose}
      onConfirm={() =>
        rotate.mutate({ params: { path: { id: key.id } }, body: { grace_seconds: Number(grace) } })
      }
    >
      <p>The key gets a new secret. Its id, role and scopes stay, so calls keep their key.</p>
      <Select label="The present secret still holds for" value={grace} options={GRACES} onChange={setGrace} />
    </Confirm>
  );
}

function Revoke({
  of: key,
  isOwn,
  onDone,
  onClose,
}: {
  of: Key;
  isOwn: boolean;
  onDone: () => void;
  onClose: () => void;
}) {
  const toast = useToast();
  const revoke = query.useMutation('delete', '/api/v1/keys/{id}', {
    onSuccess: () => {
      toast(`${key.name} is revoked.`);
      onDone();
    },
  });
  return (
    <Confirm
      title={`Revoke ${key.name}`}
      action="Revoke the key"
      isDanger
      isOpen
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() => revoke.mutate({ params: { path: { id: key.id } } })}
    >
      <p>
        Requests with it are refused at once, and it cannot be restored.
        {isOwn && ' You are signed in with this key: your session ends too.'}
      </p>
    </Confirm>
  );
}
