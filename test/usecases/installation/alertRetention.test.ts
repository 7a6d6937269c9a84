import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RetentionWork } from '../../../db/installation/retentionRuns.js';
import { findUuid } from '../../../domain/ids.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate, startOfDay } from '../../../domain/period.js';
import { ALERT_STATUSES } from '../../../domain/policies/alert.js';
import { NOTICE_DAYS, removeOldAlerts } from '../../../usecases/installation/retention.js';
import { storeAlerts } from '../../api/support/alerts.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { createTestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const SEED = testSeed();
const RUNS = propertyRuns(3);
const NOW = microsFromDate(new Date());

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

/** Removes old alerts; returns the reported number of rows. */
async function remove(eventDays: number | undefined): Promise<number> {
  let rows = 0;
  const work: RetentionWork = {
    database: test.database,
    directUrl: test.url,
    nowMicros: NOW,
    report: async (removed) => {
      rows += removed.rows;
    },
  };
  await removeOldAlerts(work, eventDays);
  return rows;
}

async function left(orgId: string): Promise<string[]> {
  const { rows } = await test.superuser.query<{ id: string }>(
    'select id from alerts where org_id = $1 order by id',
    [orgId],
  );
  return rows.map(({ id }) => id);
}

describe(`the retention of alerts (TEST_SEED=${SEED})`, () => {
  it('removes alerts of calls that are as old as calls are kept, notices that were acknowledged long ago, and nothing else', {
    timeout: 300_000,
  }, async () => {
    const alert = fc.record({
      isNotice: fc.boolean(),
      status: fc.constantFrom(...ALERT_STATUSES),
      daysOld: fc.integer({ min: 0, max: 900 }),
      isMerged: fc.boolean(),
    });
    const days = fc.option(fc.integer({ min: 30, max: 700 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fc.array(alert, { maxLength: 15 }), days, async (drawn, eventDays) => {
        const { orgId } = await createTestOrganization(test.database);
        const alerts = drawn.map((one) => ({
          ...one,
          id: randomUUID(),
          // An hour into a day, so that ages count in whole days.
          createdMicros: startOfDay(NOW) - BigInt(one.daysOld) * MICROS_PER_DAY + 3_600_000_000n,
        }));
        await storeAlerts(
          { database: test },
          orgId,
          alerts.map(({ id, isNotice, status, createdMicros, isMerged }) => ({
            id,
            status,
            policyType: isNotice ? null : 'banned_patterns',
            createdAt: isoFromMicros(createdMicros),
            mergedInto: isMerged && !isNotice ? randomUUID() : null,
          })),
        );
        const stays = alerts.filter(({ isNotice, status, daysOld, createdMicros }) =>
          isNotice
            ? status === 'open' || NOW - createdMicros <= NOTICE_DAYS * MICROS_PER_DAY
            : eventDays === undefined || daysOld <= eventDays,
        );
        expect(await remove(eventDays)).toBe(alerts.length - stays.length);
        expect(await left(orgId)).toEqual(stays.map(({ id }) => id).sort());
        expect(await remove(eventDays)).toBe(0);
        await test.superuser.query('delete from alerts where org_id = $1', [orgId]);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it('reads more alerts than one transaction takes', async () => {
    const { orgId } = await createTestOrganization(test.database);
    const [kept = ''] = await storeAlerts({ database: test }, orgId, [{}]);
    const [old = ''] = await storeAlerts({ database: test }, orgId, [{ createdAt: '2025-01-01T00:00:00Z' }]);
    await test.superuser.query(
      `insert into alerts (org_id, id, kind, policy_type, policy_id, event_id, event_timestamp, subject_type, subject_id, severity, message, details, created_at)
       select org_id, gen_random_uuid(), kind, policy_type, policy_id, gen_random_uuid(), event_timestamp, subject_type, subject_id, severity, message, details,
         created_at + make_interval(secs => i / 100) from alerts, generate_series(1, 12000) i where id = $1`,
      [findUuid('alr', old)],
    );
    expect(await remove(90)).toBe(12_001);
    expect(await left(orgId)).toEqual([findUuid('alr', kept)]);
  });
});
