import { useQuery } from '@tanstack/react-query';

/** Milliseconds between two requests where the answer has no Retry-After, and at least in a hidden tab. */
const POLL_MS = 2_000;
const HIDDEN_POLL_MS = 10_000;

const UNDER_WAY: ReadonlySet<string> = new Set(['queued', 'running']);

export const isUnderWay = (status: string) => UNDER_WAY.has(status);

interface Answer<Run> {
  data?: Run | undefined;
  error?: unknown;
  response: Response;
}

/** Asks for a run until it has ended, as often as Retry-After allows. */
export function useRun<Run extends { status: string }>(
  key: readonly unknown[],
  read: () => Promise<Answer<Run>>,
  {
    isEnabled = true,
    underWay = UNDER_WAY,
  }: {
    isEnabled?: boolean /** Statuses of a run that has not ended. */;
    underWay?: ReadonlySet<string>;
  } = {},
) {
  return useQuery({
    queryKey: ['run', ...key],
    enabled: isEnabled,
    queryFn: async () => {
      const { data, error, response } = await read();
      if (!data) throw error;
      const seconds = Number(response.headers.get('Retry-After'));
      return { run: data, pollMs: seconds > 0 ? seconds * 1_000 : POLL_MS };
    },
    refetchInterval: ({ state: { data } }) => {
      if (!data) return POLL_MS;
      if (!underWay.has(data.run.status)) return false;
      return document.hidden ? Math.max(HIDDEN_POLL_MS, data.pollMs) : data.pollMs;
    },
    refetchIntervalInBackground: true,
  });
}
