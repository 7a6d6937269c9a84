import type pg from 'pg';
import { expect } from 'vitest';
import type { OrgDb } from '../../../db/orgDb.js';
import { listObservedSources } from '../../../db/queries/observedSources.js';
import { timesOfBillingDay } from '../../../domain/billing/billingDay.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY } from '../../../domain/period.js';
import type { Biller } from '../../../domain/providers.js';
import { SOURCES_MAX } from '../../../domain/reconciliation/evidence/seriesDay.js';
import { DAYS, FIRST } from './drawSteps.js';

interface CountedSource {
  account: string;
  model: string;
  service: string;
  calls: number;
  without: number;
  named: number;
  refused: number;
}

/** The same counted from the live events, call by call, of calls that name their account or have none. */
async function countSources(
  superuser: pg.Pool,
  orgId: string,
  scope: { provider: Biller; day: string; offsetHours: number },
): Promise<CountedSource[]> {
  const { startMicros, endMicros } = timesOfBillingDay(scope.provider, scope.day, scope.offsetHours);
  const { rows } = await superuser.query<CountedSource>(
    `select coalesce(provider_account_id, '') as account, coalesce(response_model, model) as model, service_name as service, count(*)::int as calls,
       count(*) filter (where unmetered or 'cache_read' = any(usage_missing) or 'cache_write_5m' = any(usage_missing) or 'cache_write_1h' = any(usage_missing))::int as without,
       count(*) filter (where response_model is not null and status <> 'error')::int as named,
       count(*) filter (where status = 'error' and http_status >= 400)::int as refused
     from events where org_id = $1 and billed_by = $2 and end_at >= $3 and end_at < $4 and superseded_by is null and status <> 'blocked'
     group by 1, 2, 3`,
    [orgId, scope.provider, isoFromMicros(startMicros), isoFromMicros(endMicros)],
  );
  return rows.sort((a, b) => b.calls - a.calls || (a.service < b.service ? -1 : 1));
}

/** Which services a day's calls came from, against the events themselves, by clocks of which some are the ones that days are folded by. */
export async function compareSources(
  superuser: pg.Pool,
  orgDb: OrgDb,
  days = Array.from({ length: Number(DAYS) + 1 }, (_, index) =>
    dayOf(FIRST + BigInt(index) * MICROS_PER_DAY),
  ),
): Promise<void> {
  for (const provider of ['openai', 'anthropic', 'google', 'unknown'] as const)
    for (const day of days)
      for (const offsetHours of provider === 'google' ? [-8] : [0, 9]) {
        const scope = { provider, day, offsetHours };
        const [answer, counted] = await Promise.all([
          listObservedSources(orgDb, scope),
          countSources(superuser, orgDb.orgId, scope),
        ]);
        const expected = new Map<string, Map<string, unknown[]>>();
        for (const { account, model, service, calls, without, named, refused } of counted) {
          const models = expected.get(account) ?? new Map<string, unknown[]>();
          const sources = models.get(model) ?? [];
          expected.set(account, models.set(model, sources));
          if (sources.length === SOURCES_MAX) continue;
          sources.push({
            serviceName: service,
            calls,
            callsWithoutCache: without,
            ...(named > 0 && { namedByAnswer: named }),
            ...(refused > 0 && { refused }),
          });
        }
        expect(answer, `${provider} ${day} ${offsetHours}`).toEqual(expected);
      }
}
