import { useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { type components, errorText, type paths, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { FilterSelect } from '../../parts/forms/Filters';
import { Period, usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card, Grid } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { RunProgress } from '../../parts/RunProgress';
import { RunStatus } from '../../parts/RunStatus';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { isUnderWay } from '../../parts/useRun';
import { EnforcementPage } from './EnforcementPage';
import { ruleName } from './ruleTypes';

type Savings = components['schemas']['EnforcementSavings'];
type Run = components['schemas']['SavingsRun'];
type Prevented = Savings['prevented']['by_rule'][number];
type Modeled = NonNullable<Savings['modeled']>['by_rule'][number];

const POLL_MS = 2_000;
const PATH = '/api/v1/enforcement/savings/calls';

/** Prevented spend, and modeled savings of the calls that were let through. */
export default function SavingsScreen() {
  const mayWrite = useMay()({ scope: 'enforcement:write' });
  const client = useQueryClient();
  const days = usePeriod();
  // Without bounds the API answers for the 30 days up to now, which the schedule models.
  const window = days.name === '30d' ? {} : { from: days.from, to: days.to };
  const offset = useOffset();
  const runs = query.useQuery(
    'get',
    '/api/v1/enforcement/savings/runs',
    { params: { query: { limit: PAGE_ROWS, offset } } },
    {
      refetchInterval: ({ state }) =>
        state.data?.runs.some(({ status }) => isUnderWay(status)) ? POLL_MS : false,
    },
  );
  const open = runs.data?.runs.find(({ status }) => isUnderWay(status));
  const savings = query.useQuery(
    'get',
    '/api/v1/enforcement/savings',
    { params: { query: window } },
    { refetchInterval: open ? POLL_MS : false },
  );
  const start = query.useMutation('post', '/api/v1/enforcement/savings/runs', {
    onSuccess: () => client.invalidateQueries({ queryKey: ['get', '/api/v1/enforcement/savings/runs'] }),
  });
  return (
    <EnforcementPage
      actions={
        mayWrite && (
          <Button
            kind="primary"
            isPending={start.isPending}
            isDisabled={open !== undefined}
            onPress={() => start.mutate({ body: window })}
          >
            {days.name === 'custom' ? 'Model these days' : `Model the last ${days.days} days`}
          </Button>
        )
      }
    >
      <Period />
      {start.error && <Notice kind="bad">{errorText(start.error)}</Notice>}
      {open && <RunProgress label="Savings run" progress={open.progress} />}
      {savings.isPending ? (
        <Loading />
      ) : savings.error ? (
        <ErrorState error={savings.error} retry={() => void savings.refetch()} />
      ) : (
        <>
          <Figures savings={savings.data} />
          {savings.data.modeled && (
            <Calls modeled={savings.data.modeled} total={savings.data.preventable_modeled_usd_exact} />
          )}
        </>
      )}
      {runs.data && runs.data.runs.length > 0 && (
        <Card title="Savings runs">
          <DataTable
            caption="Savings runs"
            columns={RUNS}
            rows={runs.data.runs}
            rowKey={(run) => run.id}
            more={<Pager page={runs.data} />}
            csv="/api/v1/enforcement/savings/runs?format=csv"
          />
        </Card>
      )}
    </EnforcementPage>
  );
}

function Figures({ savings }: { savings: Savings }) {
  const { prevented, modeled } = savings;
  return (
    <>
      <Grid>
        <Card title="Prevented">
          <a href="#prevented">
            <Money usd={savings.prevented_usd_exact} />
          </a>
          <p>{count(prevented.calls)} calls that wrappers blocked.</p>
        </Card>
        <Card title="Would have been saved">
          <a href="#modelled">
            <Money usd={savings.preventable_modeled_usd_exact} isModeled />
          </a>
          <p>
            {modeled
              ? `Modelled on ${count(modeled.calls)} calls, as of ${time(modeled.as_of)}.`
              : 'Nothing was modelled for these days yet. Model them with the button above.'}
          </p>
        </Card>
      </Grid>
      <div id="prevented">
        {prevented.by_rule.length > 0 && (
          <DataTable
            caption="Prevented by rule"
            columns={preventedColumns(savings)}
            rows={prevented.by_rule}
            rowKey={(row) => row.rule_id ?? 'none'}
          />
        )}
      </div>
      <div id="modelled">
        {modeled && modeled.by_rule.length > 0 && (
          <DataTable
            caption="Modelled by rule"
            columns={modeledColumns(savings)}
            rows={modeled.by_rule}
            rowKey={(row) => row.rule_id}
          />
        )}
      </div>
    </>
  );
}

const preventedColumns = (savings: Savings): Column<Prevented>[] => [
  {
    id: 'rule',
    head: 'Rule that blocked',
    isWide: true,
    cell: (row) => (row.rule ? ruleName(row.rule) : (row.rule_id ?? 'No rule named')),
    ...(savings.prevented.by_other_rules ? {} : { foot: 'Total' }),
  },
  { id: 'calls', head: 'Blocked calls', isNumber: true, cell: (row) => count(row.calls) },
  {
    id: 'without',
    head: 'Without an amount',
    isNumber: true,
    cell: (row) => count(row.calls_without_amount),
  },
  {
    id: 'usd',
    head: 'Prevented',
    isNumber: true,
    cell: (row) => <Money usd={row.prevented_usd_exact} />,
    ...(savings.prevented.by_other_rules ? {} : { foot: <Money usd={savings.prevented_usd_exact} /> }),
  },
];

const modeledColumns = (savings: Savings): Column<Modeled>[] => [
  {
    id: 'rule',
    head: 'Rule',
    isWide: true,
    cell: (row) => (
      <Link href={withQuery('/enforcement/savings', { rule: row.rule_id })}>{ruleName(row)}</Link>
    ),
    foot: 'Total',
  },
  { id: 'asked', head: 'Calls asked', isNumber: true, cell: (row) => count(row.asked_calls) },
  { id: 'blocked', head: 'Would block', isNumber: true, cell: (row) => count(row.blocked_calls) },
  { id: 'down', head: 'Would downgrade', isNumber: true, cell: (row) => count(row.downgraded_calls) },
  { id: 'unknown', head: 'Amount unknown', isNumber: true, cell: (row) => count(row.unpriced_calls) },
  {
    id: 'usd',
    head: 'Would have saved',
    isNumber: true,
    cell: (row) => <Money usd={row.preventable_modeled_usd_exact} isModeled />,
    foot: <Money usd={savings.preventable_modeled_usd_exact} isModeled />,
  },
];

/** The calls of the modelled amount, of all rules or of one. */
function Calls({ modeled, total }: { modeled: NonNullable<Savings['modeled']>; total: string | null }) {
  const [chosen, setRule] = useFilter<string>('rule', '');
  const [cursor, setCursor] = useFilter<string>('cursor', '');
  const rule = modeled.by_rule.find(({ rule_id }) => rule_id === chosen);
  const filters = { run_id: modeled.run_id, rule_id: rule?.rule_id };
  const calls = query.useQuery('get', PATH, {
    params: { query: { ...filters, limit: PAGE_ROWS, ...(cursor ? { cursor } : {}) } },
  });
  const counted = rule ? [rule] : modeled.by_rule;
  const all = counted.reduce((sum, one) => sum + one.blocked_calls + one.downgraded_calls, 0);
  const columns = CALLS.map((column) =>
    column.id === 'time'
      ? { ...column, foot: `Total of ${count(all)} calls on all pages` }
      : column.id === 'saved'
        ? { ...column, foot: <Money usd={rule ? rule.preventable_modeled_usd_exact : total} isModeled /> }
        : column,
  );
  return (
    <Card
      title="Modelled calls"
      aside={
        modeled.by_rule.length > 1 && (
          <FilterSelect
            label="Rule"
            value={rule ? chosen : ''}
            onChange={setRule}
            options={modeled.by_rule.map((one) => ({ value: one.rule_id, label: ruleName(one) }))}
          />
        )
      }
    >
      {calls.isPending ? (
        <Loading />
      ) : calls.error ? (
        <ErrorState error={calls.error} retry={() => void calls.refetch()} />
      ) : calls.data.calls.length === 0 ? (
        <Empty title="No modelled calls">
          <p>In these days no call broke a rule.</p>
        </Empty>
      ) : (
        <DataTable
          caption="Modelled calls"
          columns={columns}
          rows={calls.data.calls}
          rowKey={(row) => `${row.event_id} ${row.rule_id}`}
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={
            <>
              {cursor && <Button onPress={() => setCursor('')}>Newest</Button>}
              {calls.data.next_cursor && (
                <Button onPress={() => setCursor(calls.data.next_cursor ?? '')}>Older</Button>
              )}
            </>
          }
        />
      )}
    </Card>
  );
}

type Call =
  paths['/api/v1/enforcement/savings/calls']['get']['responses'][200]['content']['application/json']['calls'][number];

const CALLS: Column<Call>[] = [
  {
    id: 'time',
    head: 'Call',
    cell: (row) => <Link href={`/events/${row.event_id}`}>{time(row.timestamp)}</Link>,
  },
  { id: 'model', head: 'Model', cell: (row) => row.event?.model ?? 'no longer kept' },
  { id: 'team', head: 'Team', cell: (row) => row.event?.team_id ?? '–' },
  { id: 'action', head: 'Action', cell: (row) => row.action },
  { id: 'cost', head: 'Cost', isNumber: true, cell: (row) => <Money usd={row.event?.cost_usd} /> },
  {
    id: 'saved',
    head: 'Would have saved',
    isNumber: true,
    cell: (row) => <Money usd={row.saved_usd_exact} isModeled />,
  },
];

const RUNS: Column<Run>[] = [
  {
    id: 'window',
    head: 'Savings run of',
    cell: (run) => `${run.from.slice(0, 10)} – ${run.to.slice(0, 10)}`,
  },
  { id: 'cause', head: 'Cause', cell: (run) => run.cause.replaceAll('_', ' ') },
  {
    id: 'status',
    head: 'Status',
    isWide: true,
    cell: (run) => <RunStatus run={run} />,
  },
  { id: 'calls', head: 'Calls', isNumber: true, cell: (run) => (run.result ? count(run.result.calls) : '–') },
  {
    id: 'usd',
    head: 'Would have saved',
    isNumber: true,
    cell: (run) => <Money usd={run.result?.preventable_modeled_usd_exact} isModeled />,
  },
  { id: 'at', head: 'Asked for', cell: (run) => time(run.created_at) },
];
