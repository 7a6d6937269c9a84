import type { LimitRules } from '../../../domain/access/rate.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import type { TestDatabase } from '../../support/database.js';
import { type AppliedPolicy, readRateLimitFields } from './structuredFields.js';

const MINUTE = 60;
const HOUR = 3_600;
const perMinute = (quota: number, burst = quota) => ({ quota, windowSeconds: MINUTE, burst });
const perHour = (quota: number) => ({ quota, windowSeconds: HOUR, burst: quota });

/** Limits that a test never meets by chance: each test lowers the one that it is about. */
export const WIDE_LIMITS: LimitRules = {
  reads: perMinute(60_000),
  writes: perMinute(60_000),
  ingest: perMinute(60_000),
  ingestItems: perMinute(6_000_000),
  runs: perHour(10_000),
  imports: perHour(10_000),
  invoices: perHour(10_000),
  publicRequests: perMinute(60_000),
  failedAuthentication: perMinute(60_000),
  openRunsMax: 100,
  openImportsMax: 100,
  openInvoicesMax: 100,
  openExportsMax: 100,
};

/** An API whose clock for limits is stopped until the test moves it. */
export interface LimitedApi extends TestApi {
  forward(seconds: number): Promise<void>;
}

/** `database`: another instance on an existing database. `clock`, if given, is shared. */
export async function startLimitedApi(
  limits: Partial<LimitRules>,
  options: { database?: TestDatabase; clock?: { nowMs: number }; trustedProxies?: string[] } = {},
): Promise<LimitedApi> {
  const clock = options.clock ?? { nowMs: 1_000 };
  const api = await startTestApi({
    ...(options.database ? { database: options.database } : {}),
    ...(options.trustedProxies ? { trustedProxies: options.trustedProxies } : {}),
    limits: { ...WIDE_LIMITS, ...limits },
    limitsNowMs: () => clock.nowMs,
    // A loaded machine is no failing store.
    limitsStoreMs: 20_000,
  });
  return {
    ...api,
    forward: async (seconds) => {
      clock.nowMs += seconds * 1_000;
      await api.database.superuser.query(
        'update rate_buckets set refilled_at = refilled_at - make_interval(secs => $1)',
        [seconds],
      );
    },
  };
}

/** The policies of an answer, read by the grammar. */
export function policiesOf(answer: {
  headers: Headers | Record<string, string | string[] | undefined>;
}): Map<string, AppliedPolicy> {
  const { headers } = answer;
  const read = (name: string) =>
    headers instanceof Headers ? headers.get(name) : (headers[name] as string | undefined);
  return readRateLimitFields({ policy: read('ratelimit-policy'), limit: read('ratelimit') });
}

/** Repeats a request until it is refused; the number that were not, and the refusal. */
export async function untilRefused<A extends { status: number }>(
  ask: () => Promise<A>,
  max = 200,
): Promise<{ granted: number; refusal: A }> {
  for (let granted = 0; granted < max; granted += 1) {
    const answer = await ask();
    if (answer.status === 429) return { granted, refusal: answer };
  }
  throw new Error(`none of ${max} was refused`);
}
