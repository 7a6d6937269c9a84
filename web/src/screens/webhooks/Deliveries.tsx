import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { errorText, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { time } from '../../app/format';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { FilterSelect, optionsOf } from '../../parts/forms/Filters';
import { Modal } from '../../parts/forms/Modal';
import { Chip, Facts } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { DELIVERY_STATUS, type Delivery, WEBHOOKS } from './webhookWords';

const POLL_MS = 3_000;

/** Messages to one receiver with every attempt. */
export function Deliveries({ id }: { id: string }) {
  const client = useQueryClient();
  const toast = useToast();
  const [status, setStatus] = useFilter<Delivery['status'] | ''>('status', '');
  const [openId, setOpenId] = useState<string>();
  const offset = useOffset();
  const deliveries = query.useQuery(
    'get',
    `${WEBHOOKS}/{id}/deliveries`,
    { params: { path: { id }, query: { ...(status ? { status } : {}), limit: PAGE_ROWS, offset } } },
    {
      refetchInterval: ({ state }) =>
        state.data?.deliveries.some((one) => one.status === 'pending') ? POLL_MS : false,
    },
  );
  const redeliver = query.useMutation('post', `${WEBHOOKS}/deliveries/{id}/redeliver`, {
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['get', `${WEBHOOKS}/{id}/deliveries`] });
      toast('The message is sent again.');
    },
    onError: (error) => toast(errorText(error), 'bad'),
  });
  const again = (delivery: Delivery, kind: 'quiet' | 'primary') =>
    delivery.status !== 'pending' &&
    delivery.status !== 'gathered' && (
      <Button
        kind={kind}
        isPending={redeliver.isPending}
        aria-label={`Send ${delivery.message_id} again`}
        onPress={() => redeliver.mutate({ params: { path: { id: delivery.id } } })}
      >
        Send again
      </Button>
    );
  if (deliveries.isPending) return <Loading />;
  if (deliveries.error)
    return <ErrorState error={deliveries.error} retry={() => void deliveries.refetch()} />;
  const { deliveries: rows } = deliveries.data;
  const open = rows.find((one) => one.id === openId);
  return (
    <>
      <div style={{ maxWidth: 200 }}>
        <FilterSelect
          label="Status"
          value={status}
          onChange={setStatus}
          options={optionsOf(DELIVERY_STATUS)}
        />
      </div>
      {rows.length === 0 ? (
        <Empty title={status ? 'No delivery matches' : 'Nothing was sent yet'}>
          {status ? (
            <Button onPress={() => setStatus('')}>Clear filters</Button>
          ) : (
            <p>Each message appears here with its attempts. “Send a test” sends one now.</p>
          )}
        </Empty>
      ) : (
        <DataTable
          caption="Deliveries, newest first"
          csv={withQuery(`${WEBHOOKS}/${id}/deliveries`, { status, format: 'csv' })}
          rows={rows}
          rowKey={(one) => one.id}
          rowLabel={({ type, created_at }) => `Open delivery of ${type}, ${time(created_at)}`}
          onOpen={(one) => setOpenId(one.id)}
          more={<Pager page={deliveries.data} />}
          columns={[
            { id: 'at', head: 'Made', cell: ({ created_at }) => time(created_at) },
            { id: 'type', head: 'Type', cell: ({ type }) => <code>{type}</code> },
            {
              id: 'status',
              head: 'Status',
              cell: (one) => (
                <Chip kind={DELIVERY_STATUS[one.status].kind}>{DELIVERY_STATUS[one.status].label}</Chip>
              ),
            },
            { id: 'attempts', head: 'Attempts', isNumber: true, cell: ({ attempts_made }) => attempts_made },
            {
              id: 'answer',
              head: 'Last answer',
              isWide: true,
              cell: ({ last_status, last_error }) => last_error ?? last_status ?? '–',
            },
            { id: 'next', head: 'Next attempt', cell: ({ next_attempt_at: at }) => (at ? time(at) : '–') },
            {
              id: 'again',
              head: <span className="visually-hidden">Actions</span>,
              cell: (one) => again(one, 'quiet'),
            },
          ]}
        />
      )}
      <Modal title="Delivery" isOpen={open !== undefined} onClose={() => setOpenId(undefined)} side>
        {open && (
          <>
            <Facts
              items={[
                ['Type', <code key="t">{open.type}</code>],
                ['Message', <code key="m">{open.message_id}</code>],
                ['Status', DELIVERY_STATUS[open.status].label],
                ['Made', time(open.created_at)],
                ['Finished', open.finished_at ? time(open.finished_at) : '–'],
              ]}
            />
            <h3>Attempts, the latest first</h3>
            {open.attempts.length === 0 && <p>None yet.</p>}
            {open.attempts.map((attempt) => (
              <section key={attempt.number}>
                <p>
                  <strong>{attempt.number}.</strong> {time(attempt.started_at)} ·{' '}
                  {attempt.http_status ?? 'no answer'}
                  {attempt.duration_ms !== null && ` · ${attempt.duration_ms} ms`}
                </p>
                {attempt.error && <p>{attempt.error}</p>}
                {attempt.answer && (
                  <pre style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>{attempt.answer}</pre>
                )}
              </section>
            ))}
            <div>{again(open, 'primary')}</div>
          </>
        )}
      </Modal>
    </>
  );
}
