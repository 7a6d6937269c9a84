import { Link } from 'wouter';
import { query } from '../../api/client';
import { count, day, time } from '../../app/format';
import { type Column, DataTable } from '../../parts/DataTable';
import { ButtonLink } from '../../parts/forms/Button';
import { Money } from '../../parts/Money';
import { Card, Chip, Grid, Page } from '../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { CHECKS, type Metered, problemsOf, rejectedCalls, type Source } from './health';
import css from './IngestHealth.module.css';

const AGAIN_MS = 10_000;

/** Whether calls arrive, and what they lack to be priced and compared with bills. */
export default function IngestHealth() {
  const health = query.useQuery('get', '/api/v1/ingest/health', {}, { refetchInterval: AGAIN_MS });
  const page = (content: React.ReactNode) => (
    <Page
      title="Ingest health"
      lead="Whether calls arrive, and what they lack to be priced and compared with bills. The last 30 days."
      actions={<ButtonLink href="/first-call">Send calls</ButtonLink>}
    >
      {content}
    </Page>
  );
  if (health.isPending) return page(<Loading />);
  if (health.error) return page(<ErrorState error={health.error} retry={() => void health.refetch()} />);
  const { sources, metered, instrumented_twice: twice, paired_reports: paired, since } = health.data;
  if (sources.length === 0 && metered.length === 0)
    return page(
      <Empty title={`No call has arrived since ${day(since)}`}>
        <p>
          Once applications report calls, this screen lists each service with what its calls lack: token
          counts, a price, a biller, and calls that were rejected or reported twice.
        </p>
        <ButtonLink kind="primary" href="/first-call">
          Send a first call
        </ButtonLink>
      </Empty>,
    );
  const problems = problemsOf(sources);
  return page(
    <>
      {twice.map((one) => (
        <Notice key={one.service} kind="warn">
          <strong>{one.service} is instrumented twice.</strong> {one.message} {count(one.calls)} calls (
          <Money usd={one.cost_usd} />) by {one.scopes.join(' and ')}.{' '}
          {one.counted_scopes.length > 0
            ? `Counted: ${one.counted_scopes.join(', ')}.`
            : 'Choose the one that counts in the settings of the organization (counted_scopes).'}
        </Notice>
      ))}
      {paired.map((one) => (
        <Notice key={JSON.stringify([one.service, one.scopes])} kind="info">
          <strong>{one.service || 'A service without a name'} reports calls twice.</strong> {count(one.pairs)}{' '}
          calls came from {one.scopes.join(' and ')} without a common id. Each counts once;{' '}
          <Money usd={one.not_counted_usd} /> of {one.scopes[1]} do not count. {count(one.leftovers)} reports
          of the two had no partner and count.
        </Notice>
      ))}
      {metered
        .filter(({ message }) => message !== null)
        .map((one) => (
          <Notice key={JSON.stringify([one.service, one.metric])} kind="warn">
            <strong>Calls of {one.service || 'a service without a name'} are missing.</strong> Its metric{' '}
            {one.metric} reports {count(one.uncovered_input_tokens)} input and{' '}
            {count(one.uncovered_output_tokens)} output tokens that no call covers since {time(one.since)}.
            Let it send its calls too, as logs or traces.
          </Notice>
        ))}
      {problems.length === 0 && twice.length === 0 && metered.every(({ message }) => message === null) && (
        <Notice kind="good">
          All clear: each call has usage, a price and a known biller, and none was rejected.
        </Notice>
      )}
      {problems.length > 0 && (
        <Grid>
          {problems.map((problem) => (
            <Card key={problem.id} title={problem.name}>
              <p className={css.number}>
                {problem.href ? (
                  <Link href={problem.href}>{count(problem.total)}</Link>
                ) : (
                  <a href="#sources">{count(problem.total)}</a>
                )}
              </p>
              <p className={css.todo}>{problem.todo}</p>
            </Card>
          ))}
        </Grid>
      )}
      <div id="sources">
        <DataTable
          caption="Sources of calls"
          columns={columnsOf(sources)}
          rows={sources}
          rowKey={keyOf}
          csv="/api/v1/ingest/health?format=csv"
        />
      </div>
      {metered.length > 0 && (
        <DataTable
          caption="Tokens in metrics"
          columns={METERED_COLUMNS}
          rows={metered}
          rowKey={({ service, metric }) => JSON.stringify([service, metric])}
        />
      )}
    </>,
  );
}

const keyOf = (source: Source) => JSON.stringify([source.service, source.scope]);

const METERED_COLUMNS: Column<Metered>[] = [
  { id: 'service', head: 'Service', cell: (one) => one.service || '(without a name)' },
  { id: 'metric', head: 'Metric', cell: (one) => one.metric },
  { id: 'last', head: 'Last report', cell: (one) => time(one.last_seen) },
  { id: 'input', head: 'Input tokens', isNumber: true, cell: (one) => count(one.input_tokens) },
  { id: 'output', head: 'Output tokens', isNumber: true, cell: (one) => count(one.output_tokens) },
  {
    id: 'uncovered',
    head: 'In no call',
    isNumber: true,
    cell: (one) => count(one.uncovered_input_tokens + one.uncovered_output_tokens),
  },
];

/** Calls that are left out on purpose have a column only where there are some. */
const columnsOf = (sources: readonly Source[]): Column<Source>[] => [
  { id: 'service', head: 'Service', cell: (source) => source.service || '(without a name)' },
  { id: 'scope', head: 'Instrumentation', cell: (source) => source.scope || '–' },
  { id: 'last', head: 'Last call', cell: (source) => (source.last_seen ? time(source.last_seen) : '–') },
  { id: 'calls', head: 'Calls', isNumber: true, cell: (source) => count(source.calls) },
  ...CHECKS.filter(
    ({ id, calls }) => id !== 'not_counted' || sources.some((source) => calls(source) > 0),
  ).map(
    (check): Column<Source> => ({
      id: check.id,
      head: check.name,
      isNumber: true,
      cell: (source) => <Found source={source} check={check} />,
    }),
  ),
];

function Found({ source, check }: { source: Source; check: (typeof CHECKS)[number] }) {
  const calls = check.calls(source);
  if (calls === 0) return <span className={css.none}>0</span>;
  if (check.calls !== rejectedCalls)
    return <Chip kind={check.id === 'not_counted' ? 'plain' : 'warn'}>{count(calls)}</Chip>;
  return (
    <ul className={css.reasons}>
      {Object.entries(source.rejected).map(([reason, rejected]) => (
        <li key={reason}>
          <Chip kind="bad">
            {count(rejected)} {reason.replaceAll('_', ' ')}
          </Chip>
        </li>
      ))}
    </ul>
  );
}
