import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { api, errorText, query } from '../../../api/client';
import { count, time } from '../../../app/format';
import { useMay } from '../../../app/session';
import { Button } from '../../../parts/forms/Button';
import { RunProgress } from '../../../parts/RunProgress';
import { Notice } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { isUnderWay, useRun } from '../../../parts/useRun';
import css from './Gaps.module.css';

const RUNS = '/api/v1/reconciliation/gap-explorer/runs';

type RunProvider = 'openai' | 'anthropic' | 'aws_bedrock' | 'azure_openai';

/** The newest run: starts one, shows its progress, cancels it. A run that was started before shows again after a return. */
export function MatchAgain({ period, provider }: { period: '7d' | '30d' | '90d'; provider: string }) {
  const may = useMay();
  const toast = useToast();
  const client = useQueryClient();
  const [isBusy, setIsBusy] = useState(false);
  const newest = query.useQuery('get', RUNS, { params: { query: { limit: 1 } } });
  const id = newest.data?.runs[0]?.id ?? '';
  const polled = useRun([id], () => api.GET(`${RUNS}/{id}`, { params: { path: { id } } }), {
    isEnabled: id !== '',
  });
  const run = polled.data?.run;
  const isOpen = run !== undefined && isUnderWay(run.status);

  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !isOpen && run) {
      void client.invalidateQueries({
        predicate: ({ queryKey }) =>
          /^\/api\/v1\/(reconciliation|financial|claims)/.test(String(queryKey[1])),
      });
    }
    wasOpen.current = isOpen;
  }, [isOpen, run, client]);

  const start = async () => {
    setIsBusy(true);
    try {
      const { error } = await api.POST('/api/v1/reconciliation/gap-explorer/run', {
        params: { query: { period, provider: (provider || undefined) as RunProvider | undefined } },
      });
      if (error) toast(errorText(error), 'bad');
      else await newest.refetch();
    } catch (failure) {
      toast(errorText(failure), 'bad');
    } finally {
      setIsBusy(false);
    }
  };
  const cancel = async () => {
    setIsBusy(true);
    try {
      const { error } = await api.POST(`${RUNS}/{id}/cancel`, { params: { path: { id } } });
      if (error) toast(errorText(error), 'bad');
      await polled.refetch();
    } catch (failure) {
      toast(errorText(failure), 'bad');
    } finally {
      setIsBusy(false);
    }
  };
  const mayRun = may({ scope: 'reconciliation:write' });
  if (isOpen)
    return (
      <RunProgress label="Matching" progress={run.progress}>
        {mayRun && (
          <Button isPending={isBusy} onPress={() => void cancel()}>
            Cancel
          </Button>
        )}
      </RunProgress>
    );
  return (
    <>
      <div className={css.links}>
        {mayRun && (
          <Button kind="primary" isPending={isBusy} onPress={() => void start()}>
            {isBusy ? 'Starting …' : 'Match again'}
          </Button>
        )}
        <span className={css.total} style={{ alignSelf: 'center' }}>
          {run ? (
            <>
              Last run {run.finished_at ? time(run.finished_at) : ''}: {run.status}
              {run.result &&
                `, ${count(run.result.flagged)} of ${count(run.result.total)} buckets flagged, ${count(run.result.unchanged_days ?? 0)} of ${count(run.result.provider_days ?? 0)} days unchanged`}
              {run.result && run.result.claims_drafted.length > 0 && (
                <>
                  ,{' '}
                  <Link href="/claims?status=draft">
                    {count(run.result.claims_drafted.length)}{' '}
                    {run.result.claims_drafted.length === 1 ? 'claim' : 'claims'} drafted
                  </Link>
                </>
              )}
            </>
          ) : newest.isPending ? (
            ''
          ) : (
            'No run yet'
          )}
        </span>
      </div>
      {run?.error && <Notice kind="bad">{run.error.message}</Notice>}
    </>
  );
}
