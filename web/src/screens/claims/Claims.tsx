import { useLocation } from 'wouter';
import { query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { day, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button, ButtonLink } from '../../parts/forms/Button';
import { ClearFilters, FilterSelect, ProviderFilter } from '../../parts/forms/Filters';
import { Segments } from '../../parts/forms/Segments';
import { Grade } from '../../parts/Grade';
import { Cents } from '../../parts/Money';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { ClaimBoard } from './ClaimBoard';
import { type ClaimStatus, daysOf, type ListedClaim, STATUS, STATUSES } from './words';

const PATH = '/api/v1/claims';
/** Claims that the board shows at most; the list has all. */
const BOARD_MAX = 200;

export default function Claims() {
  const [, go] = useLocation();
  const [view, setView] = useFilter<'list' | 'board'>('view', 'list');
  const [status, setStatus] = useFilter<string>('status', '');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const offset = useOffset();
  const isBoard = view === 'board';
  const filters = {
    status: (status || undefined) as ClaimStatus | undefined,
    provider: provider || undefined,
  };
  const claims = query.useQuery('get', PATH, {
    params: { query: { ...filters, ...(isBoard ? { limit: BOARD_MAX } : { limit: PAGE_ROWS, offset }) } },
  });
  const isFiltered = status !== '' || provider !== '';
  const clear = () => go(withQuery('/claims', { view: isBoard ? view : undefined }));
  return (
    <Page
      title="Claims"
      lead="Requests to providers to return what their bills charged too much, from the draft to the credit."
      actions={<ButtonLink href="/disputes?status=open">Open disputes</ButtonLink>}
      filters={
        <>
          <FilterSelect
            label="Status"
            value={status}
            onChange={setStatus}
            options={STATUSES.map((value) => ({ value: value as string, label: STATUS[value].label }))}
          />
          <ProviderFilter value={provider} onChange={setProvider} />
          <Segments
            label="View"
            value={view}
            onChange={setView}
            options={[
              { value: 'list', label: 'List' },
              { value: 'board', label: 'Board' },
            ]}
          />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {claims.isPending ? (
        <Loading />
      ) : claims.error ? (
        <ErrorState error={claims.error} retry={() => void claims.refetch()} />
      ) : claims.data.claims.length === 0 && offset === 0 ? (
        isFiltered ? (
          <Empty title="No claim matches">
            <Button onPress={clear}>Clear filters</Button>
          </Empty>
        ) : (
          <Empty title="No claims yet">
            <p>
              This screen will show each claim with its amount, its status and its next deadline. Confirm
              findings in the review queue; then make a claim of the disputes.
            </p>
            <ButtonLink href="/review" kind="primary">
              Open the review queue
            </ButtonLink>
          </Empty>
        )
      ) : isBoard ? (
        <>
          {claims.data.has_more && (
            <Notice>The board shows the newest {BOARD_MAX} claims. The list has all of them.</Notice>
          )}
          <ClaimBoard claims={claims.data.claims} />
        </>
      ) : (
        <DataTable
          caption="Claims"
          columns={columnsOf(claims.data.claims)}
          rows={claims.data.claims}
          rowKey={({ id }) => id}
          rowLabel={(claim) => `Open the claim on ${providerName(claim.provider)}, ${daysOf(claim)}`}
          onOpen={({ id }) => go(`/claims/${id}`)}
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={<Pager page={claims.data} />}
        />
      )}
    </Page>
  );
}

function columnsOf(rows: readonly ListedClaim[]): Column<ListedClaim>[] {
  const hasFoot = rows.length > 1;
  const credited = rows.filter(({ credit_issued_cents }) => credit_issued_cents !== null);
  return [
    {
      id: 'provider',
      head: 'Provider',
      cell: ({ provider }) => providerName(provider),
      foot: hasFoot ? `Sum of ${rows.length} rows` : undefined,
    },
    { id: 'days', head: 'Days', cell: daysOf },
    {
      id: 'status',
      head: 'Status',
      cell: (claim) => (
        <>
          <Chip kind={STATUS[claim.status].kind}>{STATUS[claim.status].label}</Chip>{' '}
          {claim.evidence_stale_at && <Chip kind="warn">Days restated</Chip>}
        </>
      ),
    },
    { id: 'grade', head: 'Confidence', cell: ({ confidence_tier }) => <Grade grade={confidence_tier} /> },
    {
      id: 'amount',
      head: 'Claimed',
      isNumber: true,
      cell: ({ total_recoverable_cents }) => <Cents cents={total_recoverable_cents} />,
      foot: hasFoot ? (
        <Cents cents={rows.reduce((sum, { total_recoverable_cents: cents }) => sum + cents, 0)} />
      ) : undefined,
    },
    {
      id: 'credit',
      head: 'Credited',
      isNumber: true,
      cell: ({ credit_issued_cents }) => <Cents cents={credit_issued_cents} />,
      foot:
        hasFoot && credited.length > 0 ? (
          <Cents cents={credited.reduce((sum, { credit_issued_cents: cents }) => sum + (cents ?? 0), 0)} />
        ) : undefined,
    },
    {
      id: 'next',
      head: 'Next reminder',
      cell: ({ next_action_at: at, snoozed_until: until }) =>
        until ? (
          <span title={time(until)}>{day(until)} (snoozed)</span>
        ) : at ? (
          <span title={time(at)}>{day(at)}</span>
        ) : (
          '–'
        ),
    },
    { id: 'ticket', head: 'Ticket', cell: ({ external_ticket_id }) => external_ticket_id ?? '–' },
    {
      id: 'created',
      head: 'Created',
      cell: ({ created_at }) => <span title={time(created_at)}>{day(created_at)}</span>,
    },
  ];
}
