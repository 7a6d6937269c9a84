import { useLocation } from 'wouter';
import { query } from '../../../api/client';
import { useFilter, withQuery } from '../../../app/filters';
import { KIND_OPTIONS, kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { type Column, DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { ClearFilters, FilterSelect, optionsOf, ProviderFilter } from '../../../parts/forms/Filters';
import { Grade } from '../../../parts/Grade';
import { Money } from '../../../parts/Money';
import { Chip, Page } from '../../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../../parts/States';
import { daysOf } from '../words';
import { BLAME, type Finding, STATUS } from './words';

const PATH = '/api/v1/financial/findings';
const GRADES = { HIGH: 'High', MEDIUM: 'Medium', LOW: 'Low', UNVERIFIED: 'Unverified' };

/** Every finding, with the mistakes of the organization itself and those that need no decision. */
export default function Findings() {
  const [, go] = useLocation();
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [kind, setKind] = useFilter<string>('kind', '');
  const [status, setStatus] = useFilter<string>('status', '');
  const [confidence, setConfidence] = useFilter<string>('confidence', '');
  const [blame, setBlame] = useFilter<string>('blame', '');
  const [direction, setDirection] = useFilter<string>('direction', '');
  const [model] = useFilter<string>('model', '');
  const [from] = useFilter<string>('from', '');
  const [to] = useFilter<string>('to', '');
  const [invoice] = useFilter<string>('invoice_id', '');
  const offset = useOffset();
  const filters = Object.fromEntries(
    Object.entries({
      provider,
      kind,
      status,
      confidence,
      blame,
      direction,
      model,
      from,
      to,
      invoice_id: invoice,
    }).filter(([, value]) => value !== ''),
  );
  const findings = query.useQuery('get', PATH, {
    params: { query: { ...filters, limit: PAGE_ROWS, offset } },
  });
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => go('/findings');
  const fixed = [
    model && `model ${model}`,
    from && `from ${from}`,
    to && `to ${to}`,
    invoice && `invoice ${invoice}`,
  ]
    .filter(Boolean)
    .join(', ');
  return (
    <Page
      title="Findings"
      lead={`Differences between bills and calls, with their explanation.${fixed ? ` Shown: ${fixed}.` : ''}`}
      actions={
        <ButtonLink href="/review" kind="primary">
          Review queue
        </ButtonLink>
      }
      filters={
        <>
          <ProviderFilter value={provider} onChange={setProvider} />
          <FilterSelect label="Kind" value={kind} onChange={setKind} options={KIND_OPTIONS} />
          <FilterSelect label="Status" value={status} onChange={setStatus} options={optionsOf(STATUS)} />
          <FilterSelect
            label="Confidence"
            value={confidence}
            onChange={setConfidence}
            options={optionsOf(GRADES)}
          />
          <FilterSelect label="Mistake of" value={blame} onChange={setBlame} options={optionsOf(BLAME)} />
          <FilterSelect
            label="Direction"
            value={direction}
            onChange={setDirection}
            options={optionsOf({ overcharge: 'Overcharges', undercharge: 'Undercharges' })}
          />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {findings.isPending ? (
        <Loading />
      ) : findings.error ? (
        <ErrorState error={findings.error} retry={() => void findings.refetch()} />
      ) : findings.data.findings.length > 0 ? (
        <DataTable
          caption="Findings"
          columns={columnsOf(findings.data.findings)}
          rows={findings.data.findings}
          rowKey={({ id }) => id}
          rowLabel={(one) => `Open ${kindName(one.kind)}, ${one.model}, ${daysOf(one)}`}
          onOpen={({ id }) => go(`/findings/${id}`)}
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={<Pager page={findings.data} />}
        />
      ) : isFiltered ? (
        <Empty title="No finding matches">
          <Button onPress={clear}>Clear filters</Button>
        </Empty>
      ) : (
        <Empty title="No findings yet">
          <p>
            This screen will show each difference between a bill and your calls. Connect a provider or import
            a bill, then compare it with the calls.
          </p>
          <ButtonLink href="/gaps">Open the gap explorer</ButtonLink>
        </Empty>
      )}
    </Page>
  );
}

function columnsOf(rows: readonly Finding[]): Column<Finding>[] {
  return [
    {
      id: 'kind',
      head: 'Finding',
      cell: ({ kind }) => kindName(kind),
      foot: rows.length > 1 ? `Sum of ${rows.length} rows` : undefined,
    },
    { id: 'provider', head: 'Provider', cell: ({ provider }) => providerName(provider) },
    { id: 'model', head: 'Model', cell: ({ model }) => model },
    { id: 'days', head: 'Days (UTC)', cell: daysOf },
    {
      id: 'grade',
      head: 'Confidence',
      cell: (one) => <Grade grade={one.confidence} score={one.confidence_score} />,
    },
    {
      id: 'status',
      head: 'Status',
      cell: ({ status, blame }) => (
        <>
          <Chip kind={STATUS[status].kind}>{STATUS[status].label}</Chip>{' '}
          {blame !== 'provider' && <Chip>{blame === 'own' ? 'Own mistake' : 'No mistake known'}</Chip>}
        </>
      ),
    },
    {
      id: 'impact',
      head: 'Billed − right',
      isNumber: true,
      cell: (one) => <Money usd={one.impact_usd_exact} isClaimable isProvisional={one.provisional} />,
      foot:
        rows.length > 1 ? (
          <Money usd={exactSum(rows.map((one) => one.impact_usd_exact))} isClaimable />
        ) : undefined,
    },
  ];
}
