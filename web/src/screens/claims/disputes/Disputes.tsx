import { useState } from 'react';
import { Checkbox } from 'react-aria-components';
import { Link, useLocation } from 'wouter';
import { api, query } from '../../../api/client';
import { useFilter, withQuery } from '../../../app/filters';
import { day, time } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { useMay } from '../../../app/session';
import { type Column, DataTable, RowButton } from '../../../parts/DataTable';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { ClearFilters, FilterSelect, optionsOf, ProviderFilter } from '../../../parts/forms/Filters';
import { useIdempotencyKey } from '../../../parts/forms/idempotency';
import { Grade } from '../../../parts/Grade';
import { Cents } from '../../../parts/Money';
import { Chip, Page } from '../../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../../parts/Pager';
import { Empty, ErrorState, Loading, Notice } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { useClaimChange } from '../useClaimChange';
import { daysOf } from '../words';
import { DisputeDrawer } from './DisputeDrawer';
import css from './Disputes.module.css';
import { type Dispute, STATUS } from './words';

const PATH = '/api/v1/financial/disputes';

/** Disputes, and the way from them to a claim. The chosen ones live in the URL. */
export default function Disputes() {
  const may = useMay();
  const [, go] = useLocation();
  const [status, setStatus] = useFilter<string>('status', '');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [id, setId] = useFilter<string>('id', '');
  const [chosenText, setChosen] = useFilter<string>('chosen', '');
  const offset = useOffset();
  const filters = {
    status: (status || undefined) as Dispute['status'] | undefined,
    provider: provider || undefined,
  };
  const disputes = query.useQuery('get', PATH, {
    params: { query: { ...filters, limit: PAGE_ROWS, offset } },
  });
  const rows = disputes.data?.disputes ?? [];
  const mayClaim = may({ scope: 'claims:write', admin: true });
  const isFree = (one: Dispute) => one.status === 'open' && one.claim_id === null;
  const chosen = rows.filter((one) => isFree(one) && chosenText.split(',').includes(one.id));
  const isFiltered = status !== '' || provider !== '';
  const clear = () => go('/disputes');
  const choose = (one: Dispute, isChosen: boolean) => {
    const rest = chosen.filter((other) => other.id !== one.id).map((other) => other.id);
    setChosen([...rest, ...(isChosen ? [one.id] : [])].join(','));
  };
  return (
    <Page
      title="Disputes"
      lead="Confirmed overcharges. Choose those of one account and make a claim of them, or resolve one without a claim."
      filters={
        <>
          <FilterSelect label="Status" value={status} onChange={setStatus} options={optionsOf(STATUS)} />
          <ProviderFilter value={provider} onChange={setProvider} />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {disputes.isPending ? (
        <Loading />
      ) : disputes.error ? (
        <ErrorState error={disputes.error} retry={() => void disputes.refetch()} />
      ) : rows.length > 0 ? (
        <>
          {mayClaim && rows.some(isFree) && (
            <ClaimBar
              chosen={chosen}
              free={rows.filter(isFree)}
              onChoose={(ones) => setChosen(ones.map((one) => one.id).join(','))}
            />
          )}
          <DataTable
            caption="Disputes"
            columns={[
              ...(mayClaim && rows.some(isFree)
                ? [
                    {
                      id: 'choose',
                      head: <span className="visually-hidden">Chosen</span>,
                      cell: (one: Dispute) =>
                        isFree(one) ? (
                          <Checkbox
                            className={css.box}
                            aria-label={`Choose ${kindName(one.kind)}, ${one.model}, ${daysOf(one)}`}
                            isSelected={chosen.includes(one)}
                            onChange={(isChosen) => choose(one, isChosen)}
                          >
                            <span aria-hidden="true">{chosen.includes(one) ? '✓' : ''}</span>
                          </Checkbox>
                        ) : null,
                    },
                  ]
                : []),
              ...columnsOf(rows, (one) => setId(one.id)),
            ]}
            rows={rows}
            rowKey={(one) => one.id}
            selectedKey={id}
            csv={withQuery('/api/v1/financial/disputes/export', { status: filters.status })}
            more={<Pager page={disputes.data} />}
          />
        </>
      ) : isFiltered ? (
        <Empty title="No dispute matches">
          <Button onPress={clear}>Clear filters</Button>
        </Empty>
      ) : (
        <Empty title="No disputes yet">
          <p>
            Each confirmed finding of the review queue becomes a dispute. This screen then makes claims of
            them.
          </p>
          <ButtonLink href="/review" kind="primary">
            Open the review queue
          </ButtonLink>
        </Empty>
      )}
      {id && <DisputeDrawer id={id} onClose={() => setId('')} />}
    </Page>
  );
}

/** The chosen disputes with their sum, and the button that makes a claim of them. */
function ClaimBar({
  chosen,
  free,
  onChoose,
}: {
  chosen: readonly Dispute[];
  free: readonly Dispute[];
  onChoose: (disputes: readonly Dispute[]) => void;
}) {
  const [, go] = useLocation();
  const toast = useToast();
  const changed = useClaimChange();
  const keyOf = useIdempotencyKey();
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<string>();
  const accounts = new Set(chosen.map((one) => `${one.provider} ${one.provider_account_id}`));
  const groups = [...new Set(free.map((one) => one.provider))];
  const make = async () => {
    setIsBusy(true);
    setError(undefined);
    const body = { dispute_ids: chosen.map((one) => one.id) };
    try {
      const answer = await api.POST('/api/v1/claims', {
        params: { header: { 'Idempotency-Key': keyOf(body) } },
        body,
      });
      await changed();
      if (answer.data) {
        toast('The claim is drafted and its evidence is frozen.');
        go(`/claims/${answer.data.id}`);
      } else setError((answer.error as { detail?: string }).detail);
    } catch {
      setError('The service does not answer. Nothing is lost; try again.');
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <>
      <div className={css.bar}>
        <span role="status">
          {chosen.length === 0 ? (
            'No dispute chosen'
          ) : (
            <>
              {chosen.length} chosen,{' '}
              <strong>
                <Cents cents={chosen.reduce((sum, one) => sum + one.amount_cents, 0)} />
              </strong>
            </>
          )}
        </span>
        {groups.map((provider) => (
          <Button key={provider} onPress={() => onChoose(free.filter((one) => one.provider === provider))}>
            Choose all of {providerName(provider)}
          </Button>
        ))}
        <Button
          kind="primary"
          isPending={isBusy}
          isDisabled={chosen.length === 0 || accounts.size > 1}
          onPress={() => void make()}
        >
          {isBusy ? 'Freezing the evidence …' : 'Make a claim'}
        </Button>
      </div>
      {accounts.size > 1 && (
        <Notice kind="warn">A claim covers one account. Choose disputes of one account.</Notice>
      )}
      {error !== undefined && <Notice kind="bad">{error}</Notice>}
    </>
  );
}

function columnsOf(rows: readonly Dispute[], open: (one: Dispute) => void): Column<Dispute>[] {
  return [
    {
      id: 'kind',
      head: 'Dispute',
      cell: (one) => <RowButton onClick={() => open(one)}>{kindName(one.kind)}</RowButton>,
      foot: rows.length > 1 ? `Sum of ${rows.length} rows` : undefined,
    },
    { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
    { id: 'model', head: 'Model', cell: ({ model }) => model },
    { id: 'days', head: 'Days (UTC)', cell: daysOf },
    {
      id: 'status',
      head: 'Status',
      cell: ({ status, still_found }) => (
        <>
          <Chip kind={STATUS[status].kind}>{STATUS[status].label}</Chip>{' '}
          {!still_found && <Chip kind="warn">No longer found</Chip>}
        </>
      ),
    },
    { id: 'grade', head: 'Confidence', cell: ({ confidence_tier }) => <Grade grade={confidence_tier} /> },
    {
      id: 'amount',
      head: 'Amount',
      isNumber: true,
      cell: ({ amount_cents }) => <Cents cents={amount_cents} />,
      foot:
        rows.length > 1 ? <Cents cents={rows.reduce((sum, one) => sum + one.amount_cents, 0)} /> : undefined,
    },
    {
      id: 'claim',
      head: 'Claim',
      cell: ({ claim_id }) => (claim_id ? <Link href={`/claims/${claim_id}`}>Open</Link> : '–'),
    },
    {
      id: 'opened',
      head: 'Opened',
      cell: ({ opened_at }) => <span title={time(opened_at)}>{day(opened_at)}</span>,
    },
  ];
}
