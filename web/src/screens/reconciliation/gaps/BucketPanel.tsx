import { query } from '../../../api/client';
import { withQuery } from '../../../app/filters';
import { count, percent } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { ButtonLink } from '../../../parts/forms/Button';
import { Modal } from '../../../parts/forms/Modal';
import { Grade } from '../../../parts/Grade';
import { Money } from '../../../parts/Money';
import { Chip, Facts } from '../../../parts/Page';
import { ErrorState, Loading, Notice } from '../../../parts/States';
import { type Bucket, columnName, exactGapOf, LOOK, lookOf, minutes, REASON } from './cells';
import css from './Gaps.module.css';

/** The facts of one bucket, and the compared records of its day. */
export function BucketPanel({
  bucket,
  column,
  onClose,
}: {
  bucket: Bucket;
  column: string;
  onClose: () => void;
}) {
  const { gap_parts: parts } = bucket;
  return (
    <Modal title={bucket.model} isOpen side onClose={onClose}>
      <p>
        {providerName(bucket.provider)} · {columnName(column)} ·{' '}
        <Chip
          kind={
            bucket.match_status === 'matched' ? 'good' : bucket.match_status === 'partial' ? 'warn' : 'bad'
          }
        >
          {LOOK[bucket.match_status]}
        </Chip>{' '}
        {bucket.flagged_gap && <Chip kind="bad">Flagged</Chip>}{' '}
        {bucket.provisional && <Chip>Provisional</Chip>}
      </p>
      {bucket.reason && <Notice>{REASON[bucket.reason]}</Notice>}
      <Facts
        items={[
          ['Billed', <Money key="b" usd={bucket.provider_cost_usd} isProvisional={bucket.provisional} />],
          ['Observed', <Money key="o" usd={bucket.our_cost_usd} />],
          ['Billed − observed', <Money key="g" usd={exactGapOf(bucket)} />],
          ['Confidence', <Grade key="c" grade={bucket.confidence} score={bucket.confidence_score} />],
          ['Probability', bucket.confidence_score === null ? '–' : percent(bucket.confidence_score)],
          ['Status', LOOK[lookOf(bucket)]],
          ['Distance in time', minutes(bucket.gap_minutes)],
          ['Billed without an event', minutes(bucket.unobserved_minutes)],
          ['Visibility of the bill', bucket.visibility],
          [
            'Invoice period',
            `${bucket.invoice_period_start.slice(0, 10)} – ${lastDay(bucket.invoice_period_end)}`,
          ],
          [
            'Agrees with the invoice',
            bucket.invoice_aligned ? 'yes' : bucket.invoice_id ? 'no' : 'no invoice',
          ],
          ['Account', bucket.provider_account_id || 'unknown'],
          ...(parts
            ? ([
                ['Of it: rate', <Money key="r" usd={parts.rate_usd} />],
                ['Of it: volume', <Money key="v" usd={parts.volume_usd} />],
                ['Of it: own pricing', <Money key="p" usd={parts.own_pricing_usd} />],
              ] as [string, React.ReactNode][])
            : []),
        ]}
      />
      <div className={css.links}>
        <ButtonLink
          href={withQuery('/findings', {
            provider: bucket.provider,
            model: bucket.model,
            from: column.slice(0, 10),
            to: column.slice(0, 10),
          })}
        >
          Findings of this day
        </ButtonLink>
        {bucket.invoice_id && <ButtonLink href={`/invoices/${bucket.invoice_id}`}>Invoice</ButtonLink>}
      </div>
      <Matches bucket={bucket} day={column.slice(0, 10)} />
    </Modal>
  );
}

const lastDay = (end: string) => new Date(Date.parse(end) - 1).toISOString().slice(0, 10);

function Matches({ bucket, day }: { bucket: Bucket; day: string }) {
  const matches = query.useQuery('get', '/api/v1/reconciliation/matches', {
    params: {
      query: {
        provider: bucket.provider,
        provider_account_id: bucket.provider_account_id,
        from: day,
        to: day,
        limit: 200,
      },
    },
  });
  if (matches.isPending) return <Loading />;
  if (matches.error) return <ErrorState error={matches.error} retry={() => void matches.refetch()} />;
  const own = matches.data.matches.filter(({ model }) => model === bucket.model);
  if (own.length === 0) return <p className={css.total}>No record of this day has been compared.</p>;
  return own.map((match) => (
    <section key={match.id} className={css.match} aria-label={`Compared record of ${day}`}>
      <h3>Compared record of the day</h3>
      <Facts
        items={[
          ['Calls', match.event_count === null ? '–' : count(match.event_count)],
          ['Quantity billed', match.quantity === null ? '–' : `${count(match.quantity)} ${match.unit ?? ''}`],
          ['Remarks', match.reasons.map((one) => one.replaceAll('_', ' ')).join(', ') || '–'],
        ]}
      />
      {match.lines.length > 0 && (
        <DataTable
          caption="Classes"
          rows={match.lines}
          rowKey={({ token_class }) => token_class}
          columns={[
            {
              id: 'class',
              head: 'Class',
              cell: (line) => line.token_class.replaceAll('_', ' '),
              foot: `Sum of ${match.lines.length} ${match.lines.length === 1 ? 'row' : 'rows'}`,
            },
            {
              id: 'quantity',
              head: 'Billed',
              isNumber: true,
              cell: (line) => (line.billed_quantity === null ? '–' : count(line.billed_quantity)),
            },
            {
              id: 'observed',
              head: 'Observed',
              isNumber: true,
              cell: (line) => count(line.observed_quantity),
            },
            {
              id: 'usd',
              head: 'Billed USD',
              isNumber: true,
              cell: (line) => <Money usd={line.billed_usd} />,
              foot: <Money usd={exactSum(match.lines.map((line) => line.billed_usd))} />,
            },
          ]}
        />
      )}
      <div className={css.links}>
        {match.findings.map((one) => (
          <ButtonLink key={one.id} href={`/findings/${one.id}`}>
            {kindName(one.kind)} <Money usd={one.impact_usd} isClaimable />
          </ButtonLink>
        ))}
        {match.dispute_id && <ButtonLink href={`/disputes?id=${match.dispute_id}`}>Dispute</ButtonLink>}
      </div>
      {match.findings.some((one) => one.status === 'open') && (
        <p className={css.total}>Open a finding to confirm it. A confirmed finding becomes a dispute.</p>
      )}
    </section>
  ));
}
