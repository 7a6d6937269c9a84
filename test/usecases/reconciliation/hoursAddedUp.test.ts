import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listObservedSince } from '../../../db/events/observedCalls.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { matchDay } from '../../../domain/reconciliation/matching/matchDay.js';
import { readProviderDay } from '../../../usecases/reconciliation/providerDay.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { dayAt } from '../../support/incrementalRuns.js';
import { aShiftedOrganization } from '../../support/shiftedDays.js';

const NOW_MICROS = BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1000n;
const DAY = dayAt(3);

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

describe('a day without kept hours', () => {
  it.each([-8, 0, 9])(
    'has the same whole-day result as a day with kept hours: %i hours ahead',
    async (offsetHours) => {
      const org = await aShiftedOrganization(api, offsetHours);
      const book = await loadPriceBook(api.database.database);
      // Five hours of the provider's day were never reported, half of the rest is folded, and two calls of it had another tier.
      const { superuser } = api.database;
      const at = `$2::timestamptz - $3 * interval '1 hour'`;
      const values = [org.orgId, `${DAY}T00:00:00Z`, offsetHours];
      await superuser.query(
        `delete from events where org_id = $1 and end_at >= ${at} + interval '9 hours' and end_at < ${at} + interval '14 hours'`,
        values,
      );
      await superuser.query(
        `update events set service_tier = 'priority' where org_id = $1 and end_at >= ${at} + interval '15 hours' and end_at < ${at} + interval '17 hours'`,
        values,
      );
      const observedSince = await listObservedSince(org.orgDb, 'openai');
      const read = async (withHours: boolean) => {
        const scope = { provider: 'openai', day: DAY, offsetHours } as const;
        const input = await readProviderDay(org.orgDb, scope, {
          nowMicros: NOW_MICROS,
          observedSince,
          withHours,
        });
        const { buckets, ...others } = matchDay(book, 'openai', input);
        return { ...others, buckets: buckets.filter(({ width }) => width === 'day') };
      };
      const unfolded = await read(true);
      expect(unfolded.buckets).toMatchObject([{ unobservedMinutes: 300, eventCount: 19 }]);
      expect(unfolded.buckets[0]?.gapMinutes).toBeGreaterThan(0);
      expect(await read(false)).toEqual(unfolded);
      await foldAll(api.database.superuser, org.orgDb);
      expect(await read(true)).toEqual(unfolded);
      expect(await read(false)).toEqual(unfolded);
    },
  );
});
