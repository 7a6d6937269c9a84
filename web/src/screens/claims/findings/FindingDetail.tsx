import { useState } from 'react';
import { useParams } from 'wouter';
import { query } from '../../../api/client';
import { withQuery } from '../../../app/filters';
import { count, time } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { useMay } from '../../../app/session';
import { Actor } from '../../../parts/Actor';
import { DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { Grade } from '../../../parts/Grade';
import { Money } from '../../../parts/Money';
import { Card, Chip, Facts, Grid, Page } from '../../../parts/Page';
import { ErrorState, Loading, Notice } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { daysOf } from '../words';
import { DismissDialog } from './DismissDialog';
import { type Decision, useDecision } from './useDecision';
import { BLAME, GATE, STATUS, type WholeFinding } from './words';

export default function FindingDetail() {
  const { id = '' } = useParams<{ id: string }>();
  const finding = query.useQuery('get', '/api/v1/financial/findings/{id}', { params: { path: { id } } });
  if (finding.isPending) return <Loading />;
  if (finding.error)
    return (
      <Page title="Finding">
        <ErrorState error={finding.error} retry={() => void finding.refetch()} />
      </Page>
    );
  return <Detail finding={finding.data} />;
}

function Detail({ finding }: { finding: WholeFinding }) {
  const { label, kind } = STATUS[finding.status];
  return (
    <Page
      title={kindName(finding.kind)}
      lead={`${providerName(finding.provider)} · ${finding.model} · ${daysOf(finding)} (UTC)`}
      actions={<Decide finding={finding} />}
    >
      {finding.provisional && (
        <Notice kind="warn">The provider may still restate these days, so nobody has to decide yet.</Notice>
      )}
      <Card
        title="Explanation"
        aside={
          <span style={{ display: 'flex', gap: 8 }}>
            <Chip kind={kind}>{label}</Chip>
            <Grade grade={finding.confidence} score={finding.confidence_score} />
          </span>
        }
      >
        <p>{finding.reason}</p>
        {finding.advice.map((one) => (
          <p key={one}>{one}</p>
        ))}
        <Facts
          items={[
            ['Billed', <Money key="b" usd={finding.provider_cost_usd} />],
            ['Right amount', <Money key="r" usd={finding.our_cost_usd} />],
            [
              'Billed − right',
              <Money
                key="i"
                usd={finding.impact_usd_exact}
                isClaimable
                isProvisional={finding.provisional}
              />,
            ],
            ['Mistake of', BLAME[finding.blame]],
            ['Account', finding.provider_account_id || '–'],
            [
              'Next explanation',
              finding.next_best
                ? `${kindName(finding.next_best.kind)}${finding.next_best.odds === null ? '' : `, ${count(Math.round(finding.next_best.odds))} times less likely`}`
                : '–',
            ],
            ...(finding.decided_at
              ? ([
                  ['Decided', time(finding.decided_at)],
                  ['Decided by', <Actor key="d" id={finding.decided_by} />],
                  ['Reason of the decision', finding.decision_reason ?? '–'],
                ] as [string, React.ReactNode][])
              : []),
          ]}
        />
        {finding.missing_gates.length > 0 && (
          <p>Missing for a better grade: {finding.missing_gates.map((gate) => GATE[gate]).join(' ')}</p>
        )}
        <div style={{ display: 'flex', flexWrap: 'wrap', gap: 8 }}>
          <ButtonLink
            href={withQuery('/gaps', {
              period: '90d',
              provider: finding.provider,
              cell: `${finding.provider}|${finding.provider_account_id}|${finding.model}|${finding.period_start}`,
            })}
          >
            Show in the gap explorer
          </ButtonLink>
          {finding.dispute_id && <ButtonLink href={`/disputes?id=${finding.dispute_id}`}>Dispute</ButtonLink>}
          {finding.invoice_id && <ButtonLink href={`/invoices/${finding.invoice_id}`}>Invoice</ButtonLink>}
        </div>
      </Card>
      <Days finding={finding} />
      <Lines finding={finding} />
      <Grid min={480}>
        <Card title="Parts of the difference">
          <DataTable
            caption="Parts of the difference"
            rows={[
              { name: 'Rate: another price than agreed', usd: finding.parts.rate_usd_exact },
              { name: 'Volume: other quantities', usd: finding.parts.volume_usd_exact },
              { name: 'Own pricing', usd: finding.parts.own_pricing_usd_exact },
            ]}
            rowKey={({ name }) => name}
            columns={[
              { id: 'part', head: 'Part', cell: ({ name }) => name, foot: 'Sum of 3 rows' },
              {
                id: 'usd',
                head: 'Amount',
                isNumber: true,
                cell: ({ usd }) => <Money usd={usd} />,
                foot: <Money usd={exactSum(Object.values(finding.parts))} />,
              },
            ]}
          />
        </Card>
        <Card title="Evidence in bits">
          <DataTable
            caption="Evidence in bits"
            rows={finding.waterfall.map((step, at) => ({ ...step, at }))}
            rowKey={({ at }) => String(at)}
            columns={[
              { id: 'signal', head: 'Signal', cell: ({ signal }) => signal.replaceAll('_', ' ') },
              {
                id: 'level',
                head: 'Level',
                isWide: true,
                cell: ({ level }) => level.replace(/(\d)_(\d)/, '$1.$2').replaceAll('_', ' '),
              },
              { id: 'bits', head: 'Bits', isNumber: true, cell: ({ bits }) => bits.toFixed(2) },
            ]}
          />
        </Card>
      </Grid>
    </Page>
  );
}

function Days({ finding }: { finding: WholeFinding }) {
  return (
    <Card title="Days">
      <DataTable
        caption="Days of the finding"
        csv={`/api/v1/financial/findings/${finding.id}?format=csv`}
        rows={finding.days}
        rowKey={({ day }) => day}
        columns={[
          {
            id: 'day',
            head: 'Day (UTC)',
            cell: ({ day }) => day,
            foot: `Sum of ${finding.days.length} rows`,
          },
          {
            id: 'billed',
            head: 'Billed',
            isNumber: true,
            cell: (one) => <Money usd={one.provider_cost_usd_exact} />,
            foot: <Money usd={exactSum(finding.days.map((one) => one.provider_cost_usd_exact))} />,
          },
          {
            id: 'right',
            head: 'Right amount',
            isNumber: true,
            cell: (one) => <Money usd={one.our_cost_usd_exact} />,
            foot: <Money usd={exactSum(finding.days.map((one) => one.our_cost_usd_exact))} />,
          },
          {
            id: 'impact',
            head: 'Billed − right',
            isNumber: true,
            cell: (one) => <Money usd={one.impact_usd_exact} isClaimable />,
            foot: <Money usd={exactSum(finding.days.map((one) => one.impact_usd_exact))} isClaimable />,
          },
        ]}
      />
    </Card>
  );
}

function Lines({ finding }: { finding: WholeFinding }) {
  if (finding.lines.length === 0) return null;
  return (
    <Card title="Computation by class">
      <DataTable
        caption="Computation by class"
        rows={finding.lines.map((line, at) => ({ ...line, at }))}
        rowKey={({ at }) => String(at)}
        columns={[
          {
            id: 'class',
            head: 'Class',
            cell: (line) =>
              [
                line.token_class.replaceAll('_', ' '),
                line.is_batch && 'batch',
                line.long_context && 'long context',
                line.service_tier !== 'standard' && line.service_tier,
              ]
                .filter(Boolean)
                .join(', '),
            foot: `Sum of ${finding.lines.length} rows`,
          },
          {
            id: 'billedQ',
            head: 'Billed quantity',
            isNumber: true,
            cell: (line) => quantity(line.billed_quantity),
          },
          {
            id: 'seenQ',
            head: 'Observed quantity',
            isNumber: true,
            cell: (line) => quantity(line.observed_quantity),
          },
          {
            id: 'billedRate',
            head: 'Billed per M',
            isNumber: true,
            cell: (line) => <Money usd={line.billed_usd_per_mtok} />,
          },
          {
            id: 'rightRate',
            head: 'Agreed per M',
            isNumber: true,
            cell: (line) => <Money usd={line.expected_usd_per_mtok} />,
          },
          {
            id: 'billed',
            head: 'Billed',
            isNumber: true,
            cell: (line) => <Money usd={line.provider_cost_usd_exact} />,
            foot: <Money usd={exactSum(finding.lines.map((line) => line.provider_cost_usd_exact))} />,
          },
          {
            id: 'right',
            head: 'Right amount',
            isNumber: true,
            cell: (line) => <Money usd={line.our_cost_usd_exact} />,
            foot: <Money usd={exactSum(finding.lines.map((line) => line.our_cost_usd_exact))} />,
          },
        ]}
      />
    </Card>
  );
}

// BigInt keeps all digits of a large count.
const quantity = (text: string | null) =>
  text === null ? '–' : /^-?\d+$/.test(text) ? BigInt(text).toLocaleString('en-US') : text;

function Decide({ finding }: { finding: WholeFinding }) {
  const may = useMay();
  const toast = useToast();
  const { decide, isBusy } = useDecision();
  const [isDismissing, setIsDismissing] = useState(false);
  // A dialog stays open when another person's decision takes the finding out of the queue.
  if (!may({ scope: 'financial:write' }) || !(finding.in_review_queue || isDismissing)) return null;
  const isOvercharge = finding.direction === 'overcharge';
  const run = async (decision: Decision) => {
    const result = await decide(finding.id, decision);
    if (result.error) {
      if (decision.kind !== 'dismiss') toast(result.error, 'bad');
    } else {
      setIsDismissing(false);
      toast(decision.kind === 'dismiss' ? 'Dismissed.' : 'Confirmed: a dispute is open.');
    }
    return result;
  };
  return (
    <>
      {finding.status === 'open' && (
        <>
          {isOvercharge && (
            <Button kind="primary" isPending={isBusy} onPress={() => void run({ kind: 'confirm' })}>
              {isBusy ? 'Saving …' : 'Confirm'}
            </Button>
          )}
          <Button isPending={isBusy} onPress={() => setIsDismissing(true)}>
            Dismiss …
          </Button>
        </>
      )}
      {finding.status === 'dismissed' && isOvercharge && (
        <Button isPending={isBusy} onPress={() => void run({ kind: 'reopen' })}>
          Confirm after all
        </Button>
      )}
      {isDismissing && (
        <DismissDialog
          title={`${kindName(finding.kind)}, ${daysOf(finding)}`}
          isBusy={isBusy}
          onDismiss={(reason) => run({ kind: 'dismiss', reason })}
          onClose={() => setIsDismissing(false)}
        />
      )}
    </>
  );
}
