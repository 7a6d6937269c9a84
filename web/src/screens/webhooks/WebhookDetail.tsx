import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation, useParams } from 'wouter';
import { errorText, query } from '../../api/client';
import { time } from '../../app/format';
import { Actor } from '../../parts/Actor';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { Select } from '../../parts/forms/Fields';
import { Modal } from '../../parts/forms/Modal';
import { SecretOnce } from '../../parts/forms/SecretOnce';
import { Card, Chip, Facts, Page } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { Deliveries } from './Deliveries';
import { WebhookForm } from './WebhookForm';
import { type Endpoint, EVENT_TYPES, FORMATS, stateOf, targetOf, WEBHOOKS } from './webhookWords';

export default function WebhookDetail() {
  const { id } = useParams<{ id: string }>();
  const endpoint = query.useQuery('get', `${WEBHOOKS}/{id}`, { params: { path: { id } } });
  if (endpoint.isPending) return <Loading />;
  if (endpoint.error) return <ErrorState error={endpoint.error} retry={() => void endpoint.refetch()} />;
  return <Whole endpoint={endpoint.data} />;
}

function Whole({ endpoint }: { endpoint: Endpoint }) {
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  const [dialog, setDialog] = useState<'edit' | 'rotate' | 'delete'>();
  const [grace, setGrace] = useState('86400');
  const params = { path: { id: endpoint.id } };
  const close = () => setDialog(undefined);
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ['get', WEBHOOKS] }),
      client.invalidateQueries({ queryKey: ['get', `${WEBHOOKS}/{id}`] }),
      client.invalidateQueries({ queryKey: ['get', `${WEBHOOKS}/{id}/deliveries`] }),
    ]);
  const test = query.useMutation('post', `${WEBHOOKS}/{id}/test`, { onSettled: () => void refresh() });
  const change = query.useMutation('patch', `${WEBHOOKS}/{id}`, {
    onSuccess: async ({ enabled }) => {
      await refresh();
      toast(enabled ? 'The receiver is on.' : 'The receiver is off. Waiting messages are cancelled.');
    },
    onError: (error) => toast(errorText(error), 'bad'),
  });
  const rotate = query.useMutation('post', `${WEBHOOKS}/{id}/rotate-secret`, {
    onSuccess: async () => {
      close();
      await refresh();
    },
  });
  const remove = query.useMutation('delete', `${WEBHOOKS}/{id}`, {
    onSuccess: async () => {
      toast('The receiver is removed.');
      go('/settings/webhooks');
      await client.invalidateQueries({ queryKey: ['get', WEBHOOKS] });
    },
  });
  const state = stateOf(endpoint);
  return (
    <Page
      title={endpoint.description || targetOf(endpoint)}
      lead={
        <>
          <Link href="/settings/webhooks">Notifications</Link> ·{' '}
          {FORMATS.find(({ value }) => value === endpoint.format)?.label} ·{' '}
          <Chip kind={state.kind}>{state.label}</Chip>
        </>
      }
      actions={
        <>
          <Button kind="primary" isPending={test.isPending} onPress={() => test.mutate({ params })}>
            {test.isPending ? 'Sending …' : 'Send a test'}
          </Button>
          <Button onPress={() => setDialog('edit')}>Edit</Button>
          <Button
            isPending={change.isPending}
            onPress={() => change.mutate({ params, body: { enabled: !endpoint.enabled } })}
          >
            {endpoint.enabled ? 'Switch off' : 'Switch on'}
          </Button>
          {endpoint.format === 'standard' && (
            <Button onPress={() => setDialog('rotate')}>Rotate secret</Button>
          )}
          <Button kind="danger" onPress={() => setDialog('delete')}>
            Remove
          </Button>
        </>
      }
    >
      <div role="status">
        {test.error ? (
          <Notice kind="bad">{errorText(test.error)}</Notice>
        ) : (
          test.data && (
            <Notice kind={test.data.ok ? 'good' : 'warn'}>
              {test.data.ok ? 'The receiver took the test' : 'The receiver did not take the test'}
              {test.data.http_status !== null && ` and answered ${test.data.http_status}`}, after{' '}
              {test.data.duration_ms} ms.{test.data.error && ` ${test.data.error}`}
              {test.data.answer && ` It answered: ${test.data.answer.slice(0, 200)}`}
            </Notice>
          )
        )}
      </div>
      {endpoint.format === 'standard' && !endpoint.has_secret && (
        <Notice kind="bad">The signing secret is gone with a lost secret key. Rotate it.</Notice>
      )}
      <Card>
        <Facts
          items={[
            ['Receiver', targetOf(endpoint)],
            [
              'Types',
              endpoint.event_types.length === 0
                ? 'every type'
                : EVENT_TYPES.filter(({ value }) => endpoint.event_types.includes(value))
                    .map(({ label }) => label)
                    .join(', '),
            ],
            ['Digest', endpoint.digest === 'daily' ? 'one message a day' : 'none'],
            ['Last delivered', endpoint.last_delivered_at ? time(endpoint.last_delivered_at) : '–'],
            ['Last failed', endpoint.last_failed_at ? time(endpoint.last_failed_at) : '–'],
            ['Created by', <Actor key="by" id={endpoint.created_by} />],
          ]}
        />
      </Card>
      <h2>Deliveries</h2>
      <Deliveries id={endpoint.id} />
      <Modal title="Edit the receiver" isOpen={dialog === 'edit'} onClose={close}>
        <WebhookForm
          present={endpoint}
          onClose={close}
          onChanged={() => {
            close();
            toast('The receiver is changed.');
            void refresh();
          }}
        />
      </Modal>
      <Confirm
        title="Rotate the signing secret"
        action="Rotate"
        isOpen={dialog === 'rotate'}
        isBusy={rotate.isPending}
        error={rotate.error}
        onClose={close}
        onConfirm={() => rotate.mutate({ params, body: { grace_seconds: Number(grace) } })}
      >
        <p>Messages are signed with a new secret. The present one signs too until its time ends.</p>
        <Select
          label="The present secret still signs for"
          value={grace}
          onChange={setGrace}
          options={[
            { value: '0', label: 'Ends at once' },
            { value: '3600', label: '1 hour' },
            { value: '86400', label: '1 day' },
          ]}
        />
      </Confirm>
      <Confirm
        title="Remove the receiver"
        action="Remove"
        isDanger
        isOpen={dialog === 'delete'}
        isBusy={remove.isPending}
        error={remove.error}
        onClose={close}
        onConfirm={() => remove.mutate({ params })}
      >
        <p>Messages that wait for it are cancelled, and its delivery log is removed.</p>
      </Confirm>
      <SecretOnce title="The new signing secret" secret={rotate.data?.secret} onClose={() => rotate.reset()}>
        {rotate.data?.previous_valid_until && (
          <p>The secret before it signs too until {time(rotate.data.previous_valid_until)}.</p>
        )}
      </SecretOnce>
    </Page>
  );
}
