import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { dashboardFetch, onRunStarted } from '../api/client';
import { useToast } from '../parts/Toasts';
import { useRun } from '../parts/useRun';
import { useSession } from './session';

interface Kind {
  /** Begins the status URLs of its runs. */
  url: RegExp;
  name: string;
  /** The screen with the result, and the words of the link to it. */
  href: string;
  result: string;
}

const KINDS: readonly Kind[] = [
  {
    url: /^\/api\/v1\/reconciliation\/gap-explorer\/runs\//,
    name: 'Matching',
    href: '/gaps',
    result: 'Open the gap explorer',
  },
  {
    url: /^\/api\/v1\/enforcement\/savings\/runs\//,
    name: 'The savings run',
    href: '/enforcement/savings',
    result: 'Open the savings',
  },
  {
    url: /^\/api\/v1\/pricing\/reprice-runs\//,
    name: 'Re-pricing',
    href: '/prices/repricing',
    result: 'Open the re-pricings',
  },
  { url: /^\/api\/v1\/reports\//, name: 'The report', href: '/reports', result: 'Open the reports' },
  {
    url: /^\/api\/v1\/reconciliation\/invoices\/inv_/,
    name: 'Reading the invoice',
    href: '/invoices',
    result: 'Open the invoices',
  },
  {
    url: /^\/api\/v1\/billing-imports\//,
    name: 'The import',
    href: '/connections/imports',
    result: 'Open the imports',
  },
  {
    url: /^\/api\/v1\/billing-connections\//,
    name: 'The sync',
    href: '/connections',
    result: 'Open the connections',
  },
  {
    url: /^\/api\/v1\/demo\/runs\//,
    name: 'Loading the demo',
    href: '/settings',
    result: 'Open the settings',
  },
];

const UNDER_WAY = new Set(['queued', 'running', 'received', 'extracting', 'matching']);

const kindOf = (url: string) => KINDS.find((kind) => kind.url.test(url));

const RunsContext = createContext<readonly string[]>([]);

/** First segments of the screens whose runs are under way, for the navigation. */
export function useBusyScreens(): ReadonlySet<string> {
  return new Set(useContext(RunsContext).map((url) => kindOf(url)?.href.split('/')[1] ?? ''));
}

/** Follows the runs that this tab has started, on every screen, and announces the end of each. */
export function RunWatch({ children }: { children: ReactNode }) {
  const storage = `runs of ${useSession().organization.id}`;
  const [urls, setUrls] = useState<readonly string[]>(() =>
    JSON.parse(sessionStorage.getItem(storage) ?? '[]'),
  );
  useEffect(() => sessionStorage.setItem(storage, JSON.stringify(urls)), [storage, urls]);
  useEffect(
    () =>
      onRunStarted((url) => {
        if (kindOf(url)) setUrls((before) => [...before.filter((one) => one !== url), url]);
      }),
    [],
  );
  return (
    <RunsContext value={urls}>
      {children}
      {urls.map((url) => (
        <Watcher key={url} url={url} onEnd={() => setUrls((before) => before.filter((one) => one !== url))} />
      ))}
    </RunsContext>
  );
}

interface Run {
  status: string;
  error?: { message: string } | null;
}

async function readRun(url: string) {
  const response = await dashboardFetch(new Request(new URL(url, window.location.origin)));
  const body = await response.json();
  return response.ok ? { data: body as Run, response } : { error: body, response };
}

function Watcher({ url, onEnd }: { url: string; onEnd: () => void }) {
  const toast = useToast();
  const client = useQueryClient();
  const [location] = useLocation();
  const polled = useRun([url], () => readRun(url), { underWay: UNDER_WAY });
  const run = polled.data?.run;
  const status = run?.status;
  const isGone = polled.error !== null && !polled.isFetching;
  useEffect(() => {
    if (isGone) onEnd();
    else if (status && !UNDER_WAY.has(status)) {
      const kind = kindOf(url);
      const isBad = status === 'failed';
      const words = status.replaceAll('_', ' ') + (run?.error ? `: ${run.error.message}` : '');
      if (kind?.href === location) toast(`${kind.name} has ended: ${words}.`, isBad ? 'bad' : 'good');
      else if (kind)
        toast(
          <>
            {kind.name} has ended: {words}. <Link href={kind.href}>{kind.result}</Link>
          </>,
          isBad ? 'bad' : 'good',
          { stays: true },
        );
      void client.invalidateQueries();
      onEnd();
    }
  });
  return null;
}
