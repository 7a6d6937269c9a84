import type pg from 'pg';
import { expect } from 'vitest';
import { listObservedSources } from '../../../db/events/observedCalls.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { timesOfBillingDay } from '../../../domain/billing/billingDay.js';
import { dayOf, MICROS_PER_DAY } from '../../../domain/period.js';
import { type ObservedSource, SOURCES_MAX } from '../../../domain/reconciliation/evidence/evidenceText.js';
import { DAYS, FIRST } from './drawSteps.js';

interface LiveCall {
  billedBy: string;
  endMicros: bigint;
  account: string;
  model: string;
  service: string;
  lacksCache: boolean;
  isNamed: boolean;
  isRefused: boolean;
}

/** The calls that count, one by one. */
async function readLiveCalls(superuser: pg.Pool, orgId: string): Promise<LiveCall[]> {
  const { rows } = await superuser.query<Omit<LiveCall, 'endMicros'> & { end_micros: string }>(
    `select billed_by as "billedBy", (extract(epoch from end_at) * 1000000)::bigint::text as end_micros, coalesce(provider_account_id, '') as account,
       coalesce(response_model, model) as model, service_name as service,
       unmetered or coalesce(usage_missing && '{cache_read,cache_write_5m,cache_write_1h}', false) as "lacksCache",
       response_model is not null and status <> 'error' as "isNamed", coalesce(status = 'error' and http_status >= 400, false) as "isRefused"
     from events where org_id = $1 and superseded_by is null and status <> 'blocked'`,
    [orgId],
  );
  return rows.map(({ end_micros, ...row }) => ({ ...row, endMicros: BigInt(end_micros) }));
}

const byBusiest = (a: ObservedSource, b: ObservedSource) =>
  b.calls - a.calls || (a.serviceName < b.serviceName ? -1 : 1);

/** By account and model, in the product's form. */
function countSources(calls: readonly LiveCall[]): Map<string, Map<string, ObservedSource[]>> {
  const sources = new Map<string, Map<string, ObservedSource[]>>();
  for (const { account, model, service, lacksCache, isNamed, isRefused } of calls) {
    const models = sources.get(account) ?? new Map<string, ObservedSource[]>();
    sources.set(account, models);
    const own = models.get(model) ?? [];
    const known = own.find(({ serviceName }) => serviceName === service);
    const named = (known?.namedByAnswer ?? 0) + Number(isNamed);
    const refused = (known?.refused ?? 0) + Number(isRefused);
    const source: ObservedSource = {
      serviceName: service,
      calls: (known?.calls ?? 0) + 1,
      callsWithoutCache: (known?.callsWithoutCache ?? 0) + Number(lacksCache),
      ...(named > 0 && { namedByAnswer: named }),
      ...(refused > 0 && { refused }),
    };
    models.set(model, [...own.filter((one) => one !== known), source]);
  }
  for (const models of sources.values())
    for (const [model, own] of models) models.set(model, own.sort(byBusiest).slice(0, SOURCES_MAX));
  return sources;
}

/** Clocks of which some are those that days are folded by. */
const CLOCKS = [
  ['openai', 0],
  ['openai', 9],
  ['anthropic', 0],
  ['google', -8],
  ['unknown', 0],
] as const;

/** Compares the services of a day's calls with the events themselves. */
export async function compareSources(
  superuser: pg.Pool,
  orgDb: OrgDb,
  days = Array.from({ length: Number(DAYS) + 1 }, (_, index) =>
    dayOf(FIRST + BigInt(index) * MICROS_PER_DAY),
  ),
): Promise<void> {
  const calls = await readLiveCalls(superuser, orgDb.orgId);
  for (const [provider, offsetHours] of CLOCKS)
    for (const day of days) {
      const { startMicros, endMicros } = timesOfBillingDay(provider, day, offsetHours);
      const own = calls.filter(
        (call) => call.billedBy === provider && call.endMicros >= startMicros && call.endMicros < endMicros,
      );
      const answer = await listObservedSources(orgDb, { provider, day, offsetHours });
      expect(answer, `${provider} ${day} ${offsetHours}`).toEqual(countSources(own));
    }
}
