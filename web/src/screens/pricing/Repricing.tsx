import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { type components, errorText, query } from '../../api/client';
import { count, time } from '../../app/format';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { DateField } from '../../parts/forms/DateField';
import { Form, TextField } from '../../parts/forms/Fields';
import { addDays } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Card } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { RunProgress } from '../../parts/RunProgress';
import { RunStatus } from '../../parts/RunStatus';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { isUnderWay } from '../../parts/useRun';
import css from './Prices.module.css';
import { PricesPage } from './PricesPage';

type Run = components['schemas']['RepriceRun'];

const POLL_MS = 2_000;
const DAYS = 30;
const RUNS_KEY = ['get', '/api/v1/pricing/reprice-runs'];

export default function Repricing() {
  const may = useMay();
  const client = useQueryClient();
  const offset = useOffset();
  const runs = query.useQuery(
    'get',
    '/api/v1/pricing/reprice-runs',
    { params: { query: { limit: PAGE_ROWS, offset } } },
    {
      refetchInterval: ({ state }) =>
        state.data?.runs.some(({ status }) => isUnderWay(status)) ? POLL_MS : false,
    },
  );
  const cancel = query.useMutation('post', '/api/v1/pricing/reprice-runs/{id}/cancel', {
    onSuccess: () => client.invalidateQueries({ queryKey: RUNS_KEY }),
  });
  const mayWrite = may({ scope: 'pricing:write' });
  return (
    <PricesPage>
      {mayWrite && <Asker />}
      {cancel.error && <Notice kind="bad">{errorText(cancel.error)}</Notice>}
      {runs.data?.runs
        .filter(({ status }) => isUnderWay(status))
        .map((run) => (
          <RunProgress key={run.id} label={`Re-pricing of ${windowOf(run)}`} progress={run.progress}>
            {mayWrite && (
              <Button
                isPending={cancel.isPending}
                onPress={() => cancel.mutate({ params: { path: { id: run.id } } })}
              >
                Cancel
              </Button>
            )}
          </RunProgress>
        ))}
      {runs.isPending ? (
        <Loading />
      ) : runs.error ? (
        <ErrorState error={runs.error} retry={() => void runs.refetch()} />
      ) : runs.data.runs.length === 0 ? (
        <Empty title="Nothing was priced again yet">
          <p>Runs are listed here with the total before and after. Both prices of each call are kept.</p>
        </Empty>
      ) : (
        <DataTable
          caption="Re-pricings"
          csv={'/api/v1/pricing/reprice-runs?format=csv'}
          columns={COLUMNS}
          rows={runs.data.runs}
          rowKey={(run) => run.id}
          more={<Pager page={runs.data} />}
        />
      )}
    </PricesPage>
  );
}

/** Requests a re-pricing. Its progress appears below and continues when the page is left. */
function Asker() {
  const client = useQueryClient();
  const [params] = useSearchParams();
  const today = new Date().toISOString().slice(0, 10);
  const [from, setFrom] = useState(params.get('from') ?? addDays(today, -DAYS));
  const [to, setTo] = useState(today);
  const [model, setModel] = useState(params.get('model') ?? '');
  const start = query.useMutation('post', '/api/v1/pricing/reprice', {
    onSuccess: () => client.invalidateQueries({ queryKey: RUNS_KEY }),
  });
  return (
    <Card title="Price stored calls again">
      <p>Calls get the prices that hold now. Costs that a sender reported do not change.</p>
      <Form
        onSubmit={() =>
          start.mutate({ body: { from, to, ...(model.trim() ? { model: model.trim() } : {}) } })
        }
        actions={
          <Button
            kind="primary"
            type="submit"
            isPending={start.isPending}
            isDisabled={from === '' || to === ''}
          >
            {start.isPending ? 'Starting …' : 'Price again'}
          </Button>
        }
      >
        <div className={css.pair}>
          <DateField label="From (UTC)" value={from} onChange={setFrom} />
          <DateField label="To (UTC)" value={to} onChange={setTo} />
          <TextField label="Model (optional)" value={model} onChange={setModel} placeholder="All models" />
        </div>
        {start.error && <Notice kind="bad">{errorText(start.error)}</Notice>}
      </Form>
    </Card>
  );
}

const windowOf = (run: Run) => `${run.from.slice(0, 10)} – ${run.to.slice(0, 10)}`;

const COLUMNS: Column<Run>[] = [
  { id: 'window', head: 'Days (UTC)', cell: windowOf },
  { id: 'model', head: 'Model', cell: (run) => run.model ?? run.provider ?? 'All' },
  {
    id: 'status',
    head: 'Status',
    isWide: true,
    cell: (run) => <RunStatus run={run} />,
  },
  {
    id: 'calls',
    head: 'Calls',
    isNumber: true,
    cell: (run) => (run.result ? count(run.result.events) : '–'),
  },
  {
    id: 'changed',
    head: 'Changed',
    isNumber: true,
    cell: (run) => (run.result ? count(run.result.changed) : '–'),
  },
  {
    id: 'old',
    head: 'Before',
    isNumber: true,
    cell: (run) => <Money usd={run.result?.old_cost_usd_exact} />,
  },
  { id: 'new', head: 'After', isNumber: true, cell: (run) => <Money usd={run.result?.new_cost_usd_exact} /> },
  { id: 'at', head: 'Asked for', cell: (run) => time(run.created_at) },
];
