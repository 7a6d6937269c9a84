import { useState } from 'react';
import { Link, useParams } from 'wouter';
import { query } from '../../api/client';
import { time, usd } from '../../app/format';
import { kindName } from '../../app/kinds';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { Actor } from '../../parts/Actor';
import { DataTable } from '../../parts/DataTable';
import { exactSum } from '../../parts/exactSum';
import { Button, ButtonLink, DownloadLink } from '../../parts/forms/Button';
import { Grade } from '../../parts/Grade';
import { Cents, Money } from '../../parts/Money';
import { Card, Chip, Facts, Page } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import css from './Claim.module.css';
import { ClaimActions } from './ClaimActions';
import { type EvidenceRate, evidenceOf } from './evidence';
import { MoveDialog } from './MoveDialog';
import { ProposedCredits } from './ProposedCredits';
import { TicketDraft } from './TicketDraft';
import { Timeline } from './Timeline';
import { type Claim, type ClaimStatus, daysOf, movesOf, NEXT_ACTION, STATUS } from './words';

export default function ClaimDetail() {
  const { id = '' } = useParams<{ id: string }>();
  const claim = query.useQuery('get', '/api/v1/claims/{id}', { params: { path: { id } } });
  if (claim.isPending) return <Loading />;
  if (claim.error)
    return (
      <Page title="Claim">
        <ErrorState error={claim.error} retry={() => void claim.refetch()} />
        <div>
          <ButtonLink href="/claims">All claims</ButtonLink>
        </div>
      </Page>
    );
  return <Detail claim={claim.data} />;
}

function Detail({ claim }: { claim: Claim }) {
  const evidence = evidenceOf(claim);
  const file = (kind: string) => `/api/v1/claims/${claim.id}/evidence.${kind}`;
  return (
    <Page
      title={`Claim on ${providerName(claim.provider)}`}
      lead={
        <>
          {daysOf(claim)} · account <code>{claim.provider_account_id}</code>
        </>
      }
      actions={
        <>
          <DownloadLink href={file('pdf')}>PDF</DownloadLink>
          <DownloadLink href={file('csv')}>CSV</DownloadLink>
          <DownloadLink href={file('json')}>JSON</DownloadLink>
          <ButtonLink href="/claims" kind="quiet">
            All claims
          </ButtonLink>
        </>
      }
    >
      {claim.evidence_stale_at && (
        <Notice kind="warn">
          The provider restated days of this claim on {time(claim.evidence_stale_at)}. The evidence shows the
          bill as it was before.
        </Notice>
      )}
      {claim.warnings.map((warning) => (
        <Notice key={warning.code} kind="warn">
          {warning.message}
        </Notice>
      ))}
      <div className={css.columns}>
        <div className={css.stack}>
          <State claim={claim} />
          <ProposedCredits claim={claim} />
          {claim.status === 'escalated' && <TicketDraft id={claim.id} />}
          <Card title="Disputes in this claim">
            <p className={css.muted}>{evidence.requested_remedy}</p>
            <DataTable
              caption="Disputes in this claim"
              rows={evidence.disputes}
              rowKey={({ dispute_id }) => dispute_id}
              columns={[
                {
                  id: 'kind',
                  head: 'Finding',
                  cell: (one) => <Link href={`/findings/${one.finding_id}`}>{kindName(one.kind)}</Link>,
                  foot: `Sum of ${evidence.disputes.length} ${evidence.disputes.length === 1 ? 'row' : 'rows'}`,
                },
                { id: 'model', head: 'Model', cell: ({ model }) => model },
                { id: 'days', head: 'Days', cell: daysOf },
                {
                  id: 'amount',
                  head: 'Overcharge',
                  isNumber: true,
                  cell: (one) => <Money usd={one.difference_usd_exact} />,
                  foot: <Money usd={exactSum(evidence.disputes.map((one) => one.difference_usd_exact))} />,
                },
                { id: 'grade', head: 'Confidence', cell: (one) => <Grade grade={one.confidence_tier} /> },
              ]}
            />
            <Facts
              items={[
                ['Billed on these days', <Money key="b" usd={evidence.totals.billed_usd_exact} />],
                ['Right amount', <Money key="e" usd={evidence.totals.expected_usd_exact} />],
                ['Disputed', <Money key="d" usd={evidence.totals.disputed_usd_exact} />],
                ['Undercharges netted', <Money key="n" usd={evidence.totals.netted_usd_exact} />],
                ['Claimed, rounded down', <Cents key="c" cents={claim.total_recoverable_cents} />],
                ['Calls in the evidence', evidence.events.total.toLocaleString('en-US')],
              ]}
            />
            {evidence.notes.map((note) => (
              <Notice key={note}>{note}</Notice>
            ))}
          </Card>
          <Prices claim={claim} />
        </div>
        <div className={css.stack}>
          <Card title="History">
            <Timeline claim={claim} />
          </Card>
          <Card title="Facts">
            <Facts
              items={[
                ['Claim', <code key="i">{claim.id}</code>],
                ['Created', time(claim.created_at)],
                ['Created by', <Actor key="a" id={claim.created_by} />],
                ['Submitted', claim.submitted_at ? time(claim.submitted_at) : '–'],
                ['Ended', claim.resolved_at ? time(claim.resolved_at) : '–'],
                ['Provider’s ticket', claim.external_ticket_id ?? '–'],
                ['Notes', claim.notes ?? '–'],
                ['SHA-256 of the evidence', <code key="s">{claim.evidence_sha256}</code>],
              ]}
            />
          </Card>
        </div>
      </div>
    </Page>
  );
}

/** Amount, status, the next reminder and the possible moves. */
function State({ claim }: { claim: Claim }) {
  const may = useMay();
  const [to, setTo] = useState<ClaimStatus>();
  const moves = may({ scope: 'claims:write', admin: true }) ? movesOf(claim) : [];
  const { label, kind } = STATUS[claim.status];
  return (
    <Card
      aside={
        <>
          <div>
            <div className={css.amount}>
              <Cents cents={claim.total_recoverable_cents} />
            </div>
            {claim.credit_issued_cents !== null && (
              <div className={css.muted}>
                credited <Cents cents={claim.credit_issued_cents} />
              </div>
            )}
          </div>
          <div className={css.moves}>
            <Chip kind={kind}>{label}</Chip>
            <Grade grade={claim.confidence_tier} />
          </div>
        </>
      }
    >
      {claim.snoozed_until ? (
        <p>Reminders are snoozed until {time(claim.snoozed_until)}.</p>
      ) : (
        claim.next_action_at && (
          <p>
            {NEXT_ACTION[claim.next_action ?? ''] ?? 'Reminder'}: {time(claim.next_action_at)}
          </p>
        )
      )}
      <div className={css.moves}>
        {moves.map((status, at) => (
          <Button
            key={status}
            kind={at === 0 ? 'primary' : status === 'denied' ? 'danger' : 'secondary'}
            onPress={() => setTo(status)}
          >
            {STATUS[status].move}
          </Button>
        ))}
        <ClaimActions claim={claim} />
      </div>
      {to && <MoveDialog claim={claim} to={to} onClose={() => setTo(undefined)} />}
    </Card>
  );
}

/** The rates that the claim's expected amounts use, frozen with the evidence. */
function Prices({ claim }: { claim: Claim }) {
  const { pricing_snapshot: prices } = evidenceOf(claim);
  const sources = new Map(prices.sources.map((source) => [source.key, source.name]));
  return (
    <Card title="Pricing snapshot">
      <p className={css.muted}>
        Frozen {time(prices.captured_at)}, version {prices.version}
      </p>
      {prices.rates.length === 0 ? (
        <p>This claim needs no rate: the whole charge is disputed.</p>
      ) : (
        <DataTable
          caption="Rates of the claim"
          rows={prices.rates}
          rowKey={({ id }) => id}
          columns={[
            {
              id: 'model',
              head: 'Model and class',
              cell: (rate) => (
                <>
                  {rate.model}
                  <br />
                  <span className={css.muted}>{classOf(rate)}</span>
                </>
              ),
            },
            {
              id: 'rate',
              head: 'Rate per M tokens',
              isNumber: true,
              cell: (rate) => <Rate value={rate.usd_per_mtok_exact} />,
            },
            {
              id: 'list',
              head: 'List',
              isNumber: true,
              cell: (rate) =>
                rate.list_usd_per_mtok_exact ? <Rate value={rate.list_usd_per_mtok_exact} /> : '–',
            },
            {
              id: 'days',
              head: 'Valid from',
              cell: ({ effective_from: from, effective_to: end }) =>
                `${from ?? 'always'}${end ? ` to ${end}` : ''}`,
            },
            {
              id: 'source',
              head: 'Source',
              isWide: true,
              cell: ({ contract, source_keys: keys }) =>
                contract
                  ? [contract.document, contract.clause && `clause ${contract.clause}`]
                      .filter(Boolean)
                      .join(', ')
                  : keys.map((key) => sources.get(key) ?? key).join(', '),
            },
          ]}
        />
      )}
    </Card>
  );
}

const RATE_PLACES = /\.(\d{2}\d*?)0*$/;
/** A rate with all its digits, at least two after the point. */
function Rate({ value }: { value: string }) {
  const [, places = ''] = RATE_PLACES.exec(value) ?? [];
  return <>{places.length > 2 ? `$${value}` : usd(value)}</>;
}

function classOf({ token_class, is_batch, long_context, service_tier }: EvidenceRate): string {
  return [
    token_class.replaceAll('_', ' '),
    is_batch && 'batch',
    long_context && 'long context',
    service_tier !== 'standard' && service_tier,
  ]
    .filter(Boolean)
    .join(', ');
}
