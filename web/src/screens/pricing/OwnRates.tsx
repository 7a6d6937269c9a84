import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type components, query } from '../../api/client';
import { useFilter } from '../../app/filters';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { DateField } from '../../parts/forms/DateField';
import { Modal } from '../../parts/forms/Modal';
import { Chip } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { PricesPage } from './PricesPage';
import { Rate } from './Rate';
import { RateForm } from './RateForm';

type Own = components['schemas']['PriceOverride'];
export type Kind = 'overrides' | 'contract-rates';

const WORDS: Record<Kind, { one: string; make: string; empty: string; text: string }> = {
  overrides: {
    one: 'override',
    make: 'Enter an override',
    empty: 'No overrides yet',
    text: 'An override corrects a list price, or enters one that is missing. Calls and bills are then priced with it.',
  },
  'contract-rates': {
    one: 'contract rate',
    make: 'Enter a contract rate',
    empty: 'No contract rates yet',
    text: 'A contract rate is what was agreed with a provider: a discount, or rates of its own. Bills are compared with it, so a charge above it becomes a finding.',
  },
};

export const Overrides = () => {
  const offset = useOffset();
  const list = query.useQuery('get', '/api/v1/pricing/overrides', {
    params: { query: { limit: PAGE_ROWS, offset } },
  });
  return <OwnRates kind="overrides" list={list} rows={list.data?.overrides ?? []} />;
};

export const ContractRates = () => {
  const offset = useOffset();
  const list = query.useQuery('get', '/api/v1/pricing/contract-rates', {
    params: { query: { limit: PAGE_ROWS, offset } },
  });
  return <OwnRates kind="contract-rates" list={list} rows={list.data?.contract_rates ?? []} />;
};

interface Listed {
  isPending: boolean;
  error: unknown;
  data?: { count: number; offset: number; has_more: boolean } | undefined;
  refetch: () => unknown;
}

/** Prices that the organization entered, ended ones too. An entry never changes: it ends, or a later one replaces it. */
function OwnRates({ kind, list, rows }: { kind: Kind; list: Listed; rows: readonly Own[] }) {
  const words = WORDS[kind];
  const mayWrite = useMay()({ scope: 'pricing:write' });
  const [isNew, setIsNew] = useFilter<string>('new', '');
  const [ending, setEnding] = useState<Own>();
  const make = mayWrite && (
    <Button kind="primary" onPress={() => setIsNew('1')}>
      {words.make}
    </Button>
  );
  const columns = mayWrite ? [...COLUMNS, endColumn(setEnding)] : COLUMNS;
  return (
    <PricesPage actions={make}>
      {list.isPending ? (
        <Loading />
      ) : list.error ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : rows.length === 0 ? (
        <Empty title={words.empty}>
          <p>{words.text}</p>
        </Empty>
      ) : (
        <DataTable
          caption={`Entered ${words.one}s`}
          csv={`/api/v1/pricing/${kind}?format=csv`}
          columns={columns}
          rows={rows}
          rowKey={(row) => row.id}
          more={list.data && <Pager page={list.data} />}
        />
      )}
      <Modal title={words.make} isOpen={mayWrite && isNew !== ''} onClose={() => setIsNew('')}>
        <RateForm kind={kind} onEnd={() => setIsNew('')} />
      </Modal>
      {ending && <EndRate kind={kind} row={ending} onEnd={() => setEnding(undefined)} />}
    </PricesPage>
  );
}

const today = () => new Date().toISOString().slice(0, 10);
const hasEnded = (row: Own) => row.ends_on !== null && row.ends_on <= today();

const COLUMNS: Column<Own>[] = [
  { id: 'provider', head: 'Provider', cell: (row) => providerName(row.provider) },
  { id: 'model', head: 'Model', cell: (row) => (row.model === '*' ? 'All models' : row.model) },
  {
    id: 'state',
    head: 'State',
    cell: (row) =>
      hasEnded(row) ? (
        <Chip>Ended</Chip>
      ) : row.effective_from > today() ? (
        <Chip kind="accent">Planned</Chip>
      ) : (
        <Chip kind="good">In force</Chip>
      ),
  },
  { id: 'days', head: 'Days (UTC)', cell: (row) => `${row.effective_from} – ${row.ends_on ?? 'no end'}` },
  {
    id: 'discount',
    head: 'Discount',
    isNumber: true,
    cell: (row) => (row.discount_percent === null ? '–' : `${row.discount_percent} %`),
  },
  { id: 'input', head: 'Input', isNumber: true, cell: (row) => <Rate value={row.rates?.input} /> },
  { id: 'output', head: 'Output', isNumber: true, cell: (row) => <Rate value={row.rates?.output} /> },
  {
    id: 'source',
    head: 'Proof',
    isWide: true,
    cell: (row) => (row.source ? [row.source.document, row.source.clause].filter(Boolean).join(', ') : '–'),
  },
];

const endColumn = (onEnd: (row: Own) => void): Column<Own> => ({
  id: 'end',
  head: <span className="visually-hidden">Action</span>,
  cell: (row) =>
    !hasEnded(row) && (
      <Button onPress={() => onEnd(row)} aria-label={`End the price of ${row.provider} ${row.model}`}>
        End
      </Button>
    ),
});

function EndRate({ kind, row, onEnd }: { kind: Kind; row: Own; onEnd: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [from, setFrom] = useState(today());
  const options = {
    onSuccess: async () => {
      toast(`The price ends on ${from}. Calls before that day keep it.`);
      onEnd();
      await client.invalidateQueries({ queryKey: ['get', `/api/v1/pricing/${kind}`] });
    },
  };
  const endOverride = query.useMutation('delete', '/api/v1/pricing/overrides/{id}', options);
  const endContractRate = query.useMutation('delete', '/api/v1/pricing/contract-rates/{id}', options);
  const end = kind === 'overrides' ? endOverride : endContractRate;
  return (
    <Confirm
      title={`End this ${WORDS[kind].one}`}
      action="End it"
      isDanger
      isOpen
      isBusy={end.isPending}
      isDisabled={from === ''}
      error={end.error}
      onConfirm={() => end.mutate({ params: { path: { id: row.id }, query: { from } } })}
      onClose={onEnd}
    >
      <p>
        {providerName(row.provider)}, {row.model === '*' ? 'all models' : row.model}. Its first day (
        {row.effective_from}) or an earlier one takes it back altogether.
      </p>
      <DateField label="First day without it (UTC)" value={from} onChange={setFrom} />
    </Confirm>
  );
}
