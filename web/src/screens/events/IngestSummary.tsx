import { query } from '../../api/client';
import { count } from '../../app/format';
import { Chip, Facts } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';
import { problemsOf } from './health';

/** Milliseconds after which a page that stays open asks again. */
const AGAIN_MS = 10_000;

/** The completeness of the calls of the last 30 days, in few words. */
export function IngestSummary() {
  const health = query.useQuery('get', '/api/v1/ingest/health', {}, { refetchInterval: AGAIN_MS });
  if (health.isPending) return <Loading />;
  if (health.error) return <ErrorState error={health.error} retry={() => void health.refetch()} />;
  const { sources, instrumented_twice: twice } = health.data;
  if (sources.length === 0)
    return <p>No calls in the last 30 days. Once they arrive, this shows what they lack.</p>;
  const problems = problemsOf(sources);
  return (
    <>
      <p>
        {count(sources.reduce((sum, source) => sum + source.calls, 0))} calls of {count(sources.length)}{' '}
        {sources.length === 1 ? 'source' : 'sources'} in the last 30 days.
      </p>
      {problems.length + twice.length === 0 ? (
        <p>
          <Chip kind="good">Complete</Chip> Each call has usage, a price and a biller.
        </p>
      ) : (
        <Facts
          items={[
            ...problems.map((one): [string, string] => [one.name, count(one.total)]),
            ...(twice.length > 0 ? [['Instrumented twice', count(twice.length)] as [string, string]] : []),
          ]}
        />
      )}
    </>
  );
}
