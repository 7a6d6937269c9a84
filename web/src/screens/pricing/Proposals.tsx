import { useState } from 'react';
import { type components, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, day, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { Actor } from '../../parts/Actor';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Select } from '../../parts/forms/Fields';
import { Money } from '../../parts/Money';
import { Chip } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { PricesPage } from './PricesPage';
import { ApplyProposal, DismissProposal } from './ProposalDialogs';
import { Rate } from './Rate';

export type Proposal = components['schemas']['PriceProposal'];
type Status = Proposal['status'];

const PATH = '/api/v1/pricing/proposals';
const STATUSES: { value: Status | 'all'; label: string }[] = [
  { value: 'open', label: 'Open' },
  { value: 'applied', label: 'Applied' },
  { value: 'dismissed', label: 'Dismissed' },
  { value: 'superseded', label: 'Superseded' },
  { value: 'all', label: 'All' },
];

/** Prices that differ in the public lists. Nothing is applied before somebody confirms it. */
export default function Proposals() {
  const [status, setStatus] = useFilter<Status | 'all'>('status', 'open');
  const offset = useOffset();
  const filter = status === 'all' ? {} : { status };
  const list = query.useQuery('get', PATH, {
    params: { query: { ...filter, limit: PAGE_ROWS, offset } },
  });
  const mayWrite = useMay()({ scope: 'pricing:write' });
  const [applying, setApplying] = useState<Proposal>();
  const [dismissing, setDismissing] = useState<Proposal>();
  const isOff = list.data?.feeds.length === 0 && list.data.count === 0 && status === 'open';
  const columns =
    mayWrite && (status === 'open' || status === 'all')
      ? [...COLUMNS, actions(setApplying, setDismissing)]
      : COLUMNS;
  return (
    <PricesPage
      filters={!isOff && <Select label="Status" value={status} onChange={setStatus} options={STATUSES} />}
    >
      {list.isPending ? (
        <Loading />
      ) : list.error ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : isOff ? (
        <FeedsOff />
      ) : (
        <>
          <Feeds feeds={list.data.feeds} />
          {list.data.count === 0 ? (
            <NoRows status={status} clear={() => setStatus('open')} />
          ) : (
            <DataTable
              caption="Proposed prices"
              columns={columns}
              rows={list.data.proposals}
              rowKey={(row) => row.id}
              csv={withQuery(PATH, { ...filter, format: 'csv' })}
              more={<Pager page={list.data} />}
            />
          )}
        </>
      )}
      {applying && <ApplyProposal row={applying} onEnd={() => setApplying(undefined)} />}
      {dismissing && <DismissProposal row={dismissing} onEnd={() => setDismissing(undefined)} />}
    </PricesPage>
  );
}

function FeedsOff() {
  return (
    <Empty title="Price feeds are off">
      <p>
        Trueup can compare its prices with the public lists of LiteLLM and models.dev each day, and show here
        what differs and what that changes in money. Nothing is applied before you confirm it.
      </p>
      <p>
        To switch it on, an operator sets <code>PRICE_FEEDS=litellm,models.dev</code> and restarts the
        service.
      </p>
    </Empty>
  );
}

function NoRows({ status, clear }: { status: Status | 'all'; clear: () => void }) {
  if (status === 'open')
    return (
      <Empty title="All clear">
        <p>No price in the feeds differs from yours, or each difference was decided on.</p>
      </Empty>
    );
  return (
    <Empty title="No proposals with this status">
      <Button onPress={clear}>Clear filters</Button>
    </Empty>
  );
}

function Feeds({ feeds }: { feeds: components['schemas']['PriceFeed'][] }) {
  const failed = feeds.filter(({ error }) => error !== null);
  const read = feeds.filter(({ error }) => error === null);
  return (
    <>
      {failed.map(({ name, error, retrieved_on: from }) => (
        <Notice key={name} kind="warn">
          {name} was not read: {error}.{' '}
          {from === null
            ? 'It is tried again tomorrow.'
            : `Its file of ${from} is shown until it is read again.`}
        </Notice>
      ))}
      {read.length > 0 && (
        <p>
          Read daily:{' '}
          {read
            .map(({ name, checked_at: at }) => `${name} (${at === null ? 'not yet read' : time(at)})`)
            .join(', ')}
          . The cost is that of your calls of the last 30 days.
        </p>
      )}
    </>
  );
}

const TONES: Record<Status, { label: string; kind: 'accent' | 'good' | 'plain' }> = {
  open: { label: 'Open', kind: 'accent' },
  applied: { label: 'Applied', kind: 'good' },
  dismissed: { label: 'Dismissed', kind: 'plain' },
  superseded: { label: 'Superseded', kind: 'plain' },
};

const COLUMNS: Column<Proposal>[] = [
  {
    id: 'model',
    head: 'Model',
    cell: (row) => (
      <>
        {row.model}
        <br />
        <small>{providerName(row.provider)}</small>
      </>
    ),
  },
  {
    id: 'state',
    head: 'State',
    cell: (row) => (
      <>
        <Chip kind={TONES[row.status].kind}>{TONES[row.status].label}</Chip>{' '}
        {row.kind === 'new' && <Chip>New model</Chip>} {row.is_jump && <Chip kind="warn">Large change</Chip>}
      </>
    ),
  },
  {
    id: 'rates',
    head: 'Now → proposed (per million tokens)',
    isWide: true,
    cell: (row) => <Rates row={row} />,
  },
  {
    id: 'source',
    head: 'Source',
    cell: (row) => (
      <>
        {row.feed}
        <br />
        <small>{day(row.retrieved_on)}</small>
      </>
    ),
  },
  { id: 'calls', head: 'Calls, 30 days', isNumber: true, cell: (row) => count(row.effect.calls) },
  {
    id: 'cost',
    head: 'Their cost → proposed',
    isNumber: true,
    cell: (row) => (
      <>
        <Money usd={row.effect.current_cost_usd} /> → <Money usd={row.effect.proposed_cost_usd} />
      </>
    ),
  },
  { id: 'change', head: 'Change', isNumber: true, cell: (row) => <Money usd={row.effect.change_usd} /> },
];

function Rates({ row }: { row: Proposal }) {
  return (
    <>
      {row.rates.map(({ tier, rate_class: name, current, proposed }) => (
        <div key={`${tier} ${name}`}>
          {tier === 'standard' ? '' : `${tier}: `}
          {name.replaceAll('_', ' ')} <Rate value={current} /> → <Rate value={proposed} />
        </div>
      ))}
      {row.suspicions.map((text) => (
        <div key={text}>
          <small>Check: {text}</small>
        </div>
      ))}
      {row.decided_by && (
        <div>
          <small>
            {row.reason ? `“${row.reason}”, ` : ''}
            <Actor id={row.decided_by} />
          </small>
        </div>
      )}
    </>
  );
}

const actions = (onApply: (row: Proposal) => void, onDismiss: (row: Proposal) => void): Column<Proposal> => ({
  id: 'act',
  head: <span className="visually-hidden">Action</span>,
  cell: (row) =>
    row.status === 'open' && (
      <>
        <Button onPress={() => onApply(row)} aria-label={`Apply the price of ${row.model}`}>
          Apply
        </Button>{' '}
        <Button onPress={() => onDismiss(row)} aria-label={`Dismiss the price of ${row.model}`}>
          Dismiss
        </Button>
      </>
    ),
});
