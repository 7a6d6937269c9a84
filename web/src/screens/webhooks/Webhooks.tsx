import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { query } from '../../api/client';
import { time } from '../../app/format';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Modal } from '../../parts/forms/Modal';
import { SecretOnce } from '../../parts/forms/SecretOnce';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { SettingsTabs } from '../installation/SettingsTabs';
import { type EndpointWithSecret, WebhookForm } from './WebhookForm';
import { FORMATS, stateOf, targetOf, WEBHOOKS } from './webhookWords';

export default function Webhooks() {
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  const [isOpen, setIsOpen] = useState(false);
  const [made, setMade] = useState<EndpointWithSecret>();
  const offset = useOffset();
  const endpoints = query.useQuery('get', WEBHOOKS, { params: { query: { limit: PAGE_ROWS, offset } } });
  const add = (
    <Button kind="primary" onPress={() => setIsOpen(true)}>
      Add a receiver
    </Button>
  );
  const onMade = (endpoint: EndpointWithSecret) => {
    setIsOpen(false);
    void client.invalidateQueries({ queryKey: ['get', WEBHOOKS] });
    if (endpoint.secret) setMade(endpoint);
    else {
      toast('The receiver is added.');
      go(`/settings/webhooks/${endpoint.id}`);
    }
  };
  return (
    <Page
      title="Notifications"
      lead="Messages to your own service, Slack, Teams or a mailbox when something happens here."
      actions={endpoints.data && endpoints.data.webhook_endpoints.length > 0 && add}
      tabs={<SettingsTabs />}
    >
      {endpoints.isPending ? (
        <Loading />
      ) : endpoints.error ? (
        <ErrorState error={endpoints.error} retry={() => void endpoints.refetch()} />
      ) : endpoints.data.webhook_endpoints.length === 0 ? (
        <Empty title="Nobody is notified yet">
          <p>
            Add a receiver to learn of alerts, findings, claims and invoices without opening the dashboard.
            You can choose the types of messages, and one message a day in place of single ones.
          </p>
          {add}
        </Empty>
      ) : (
        <DataTable
          caption="Receivers of notifications"
          csv={`${WEBHOOKS}?format=csv`}
          rows={endpoints.data.webhook_endpoints}
          rowKey={({ id }) => id}
          rowLabel={(endpoint) => `Open receiver ${targetOf(endpoint)}`}
          onOpen={({ id }) => go(`/settings/webhooks/${id}`)}
          more={<Pager page={endpoints.data} />}
          columns={[
            { id: 'target', head: 'Receiver', isWide: true, cell: targetOf },
            {
              id: 'format',
              head: 'By',
              cell: ({ format }) => FORMATS.find(({ value }) => value === format)?.label.split(',')[0],
            },
            {
              id: 'types',
              head: 'Types',
              cell: ({ event_types: types, digest }) => (
                <span title={types.join(', ')}>
                  {types.length === 0 ? 'every type' : `${types.length} types`}
                  {digest === 'daily' && ', daily'}
                </span>
              ),
            },
            {
              id: 'state',
              head: 'State',
              cell: (endpoint) => <Chip kind={stateOf(endpoint).kind}>{stateOf(endpoint).label}</Chip>,
            },
            { id: 'ok', head: 'Last delivered', cell: ({ last_delivered_at: at }) => (at ? time(at) : '–') },
            { id: 'bad', head: 'Last failed', cell: ({ last_failed_at: at }) => (at ? time(at) : '–') },
          ]}
        />
      )}
      <Modal title="Add a receiver" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <WebhookForm onMade={onMade} onClose={() => setIsOpen(false)} />
      </Modal>
      <SecretOnce
        title="The signing secret"
        secret={made?.secret ?? undefined}
        onClose={() => {
          const id = made?.id;
          setMade(undefined);
          if (id) go(`/settings/webhooks/${id}`);
        }}
      >
        <p>Your receiver checks the header webhook-signature of each message with it.</p>
      </SecretOnce>
    </Page>
  );
}
