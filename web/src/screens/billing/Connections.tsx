import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { query } from '../../api/client';
import { day, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button, ButtonLink } from '../../parts/forms/Button';
import { Modal } from '../../parts/forms/Modal';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { Tabs } from '../../parts/Tabs';
import { useToast } from '../../parts/Toasts';
import { ConnectForm } from './ConnectForm';
import { CONNECTION_STATUS, type Connection, TABS } from './connectors';

const PATH = '/api/v1/billing-connections';
const POLL_MS = 3_000;

export default function Connections() {
  const mayWrite = useMay()({ scope: 'billing:write' });
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  const [isOpen, setIsOpen] = useState(false);
  const offset = useOffset();
  const connections = query.useQuery(
    'get',
    PATH,
    { params: { query: { limit: PAGE_ROWS, offset } } },
    {
      refetchInterval: ({ state }) =>
        state.data?.connections.some(({ status }) => status === 'connecting') ? POLL_MS : false,
    },
  );
  const connected = async (connection: Connection) => {
    setIsOpen(false);
    await client.invalidateQueries({ queryKey: ['get', PATH] });
    toast(`${connection.name} is connected. The bills since ${connection.backfill_from} are being fetched.`);
    go(`/connections/${connection.id}?check=1`);
  };
  const connect = mayWrite && (
    <Button kind="primary" onPress={() => setIsOpen(true)}>
      Connect a provider
    </Button>
  );
  return (
    <Page
      title="Connections"
      lead="A connection fetches a provider’s bill and usage reports every hour."
      tabs={<Tabs label="Sources of bills" tabs={TABS} />}
      actions={connections.data && connections.data.connections.length > 0 && connect}
    >
      {connections.isPending ? (
        <Loading />
      ) : connections.error ? (
        <ErrorState error={connections.error} retry={() => void connections.refetch()} />
      ) : connections.data.connections.length === 0 ? (
        <Empty title="No provider is connected">
          <p>
            Connect OpenAI, Anthropic, Azure OpenAI or AWS Bedrock with a key that may read the bill. The last
            90 days are fetched at once. For other providers, upload their bill as a file.
          </p>
          <div style={{ display: 'flex', flexWrap: 'wrap', gap: 10 }}>
            {connect}
            <ButtonLink href="/connections/imports">Upload a bill file</ButtonLink>
          </div>
        </Empty>
      ) : (
        <DataTable
          caption="Connections"
          csv={`${PATH}?format=csv`}
          columns={COLUMNS}
          rows={connections.data.connections}
          rowKey={({ id }) => id}
          rowLabel={({ name }) => `Open connection ${name}`}
          onOpen={({ id }) => go(`/connections/${id}`)}
          more={<Pager page={connections.data} />}
        />
      )}
      <Modal title="Connect a provider" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <ConnectForm onConnected={(one) => void connected(one)} onClose={() => setIsOpen(false)} />
      </Modal>
    </Page>
  );
}

const COLUMNS: Column<Connection>[] = [
  { id: 'name', head: 'Connection', cell: ({ name }) => name },
  { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
  {
    id: 'status',
    head: 'Status',
    isWide: true,
    cell: ({ status, last_error }) => (
      <>
        <Chip kind={CONNECTION_STATUS[status].kind}>{CONNECTION_STATUS[status].label}</Chip>{' '}
        {last_error && status === 'failing' && last_error.message}
      </>
    ),
  },
  { id: 'account', head: 'Account', cell: ({ provider_account_id }) => <code>{provider_account_id}</code> },
  { id: 'since', head: 'Bills since', cell: ({ backfill_from }) => day(backfill_from) },
  { id: 'last', head: 'Last sync', cell: ({ last_synced_at: at }) => (at ? time(at) : '–') },
  { id: 'next', head: 'Next sync', cell: ({ next_sync_at: at }) => (at ? time(at) : '–') },
];
