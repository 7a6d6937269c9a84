import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  leaseRateTokens,
  pruneRateBuckets,
  releaseRequestSlot,
  renewRequestSlot,
  takeRequestSlot,
} from '../../../db/access/requestLimits.js';
import { OrgDb } from '../../../db/orgDb.js';
import { perSecond, type Rate } from '../../../domain/access/rate.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

const anOrganization = () => new OrgDb(test.database, randomUUID());
const HOURLY: Rate = { quota: 60, windowSeconds: 3_600, burst: 60 };

const lease = (orgDb: OrgDb, ask: Partial<Parameters<typeof leaseRateTokens>[1]> = {}) =>
  leaseRateTokens(orgDb, {
    subject: 'key_a',
    policy: 'default',
    rate: HOURLY,
    cost: 1,
    wanted: 3,
    returned: 0,
    ...ask,
  });

/** Lets time pass for all buckets. */
const age = (seconds: number) =>
  test.superuser.query('update rate_buckets set refilled_at = refilled_at - make_interval(secs => $1)', [
    seconds,
  ]);

describe('a shared bucket', () => {
  it('grants what is wanted while there is enough, then what is left, then nothing', async () => {
    const orgDb = anOrganization();
    expect(await lease(orgDb, { wanted: 58 })).toMatchObject({ granted: 58 });
    expect((await lease(orgDb, { wanted: 5 })).granted).toBe(2);
    expect((await lease(orgDb)).granted).toBe(0);
    await age(60);
    expect((await lease(orgDb)).granted).toBe(1);
    await age(86_400);
    expect((await lease(orgDb, { wanted: 100 })).granted).toBe(60);
  });

  it('grants nothing that does not cover the cost, and takes back what is returned', async () => {
    const orgDb = anOrganization();
    await lease(orgDb, { wanted: 55 });
    const refused = await lease(orgDb, { cost: 20, wanted: 20 });
    expect(refused.granted).toBe(0);
    expect(refused.tokens).toBeCloseTo(5, 0);
    expect((await lease(orgDb, { cost: 20, wanted: 20, returned: 15 })).granted).toBe(20);
  });

  it('never holds more than the burst, however much is returned', async () => {
    const orgDb = anOrganization();
    await lease(orgDb);
    const { granted, tokens } = await lease(orgDb, { returned: 1_000 });
    expect(granted + tokens).toBe(60);
  });

  it('that is full grants a cost larger than itself, and owes it', async () => {
    const orgDb = anOrganization();
    expect((await lease(orgDb, { cost: 100, wanted: 100 })).granted).toBe(100);
    expect((await lease(orgDb)).granted).toBe(0);
    await age(40 * 60);
    expect((await lease(orgDb)).granted).toBe(0);
    await age(2 * 60);
    expect((await lease(orgDb, { wanted: 1 })).granted).toBe(1);
    await age(50 * 60);
    expect((await lease(orgDb, { cost: 100, wanted: 100 })).granted).toBe(0);
  });

  it('is one for each organization, key and policy', async () => {
    const a = anOrganization();
    await lease(a, { wanted: 60 });
    expect((await lease(a)).granted).toBe(0);
    expect((await lease(anOrganization())).granted).toBe(3);
    expect((await lease(a, { subject: 'key_b' })).granted).toBe(3);
    expect((await lease(a, { policy: 'writes' })).granted).toBe(3);
  });

  it('grants many askers at once no more than it has, and all of that', async () => {
    const orgDb = anOrganization();
    const grants = await Promise.all(Array.from({ length: 40 }, () => lease(orgDb, { wanted: 2 })));
    expect(grants.reduce((sum, { granted }) => sum + granted, 0)).toBe(60);
  });

  it('grants in all at most the burst and what the time brought, whatever is asked and whenever', async () => {
    const rates = fc.record({
      quota: fc.integer({ min: 1, max: 1_000 }),
      windowSeconds: fc.constantFrom(60, 3_600),
      burst: fc.integer({ min: 1, max: 500 }),
    });
    const asks = fc.array(
      fc.record({
        afterSeconds: fc.nat({ max: 120 }),
        cost: fc.integer({ min: 1, max: 30 }),
        more: fc.nat({ max: 60 }),
      }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(rates, asks, async (rate, all) => {
        const orgDb = anOrganization();
        const begun = performance.now();
        let passed = 0;
        let granted = 0;
        for (const { afterSeconds, cost, more } of all) {
          await age(afterSeconds);
          passed += afterSeconds;
          const fitting = Math.min(cost, rate.burst);
          granted += (await lease(orgDb, { rate, cost: fitting, wanted: fitting + more })).granted;
        }
        const seconds = passed + (performance.now() - begun) / 1_000;
        expect(granted).toBeLessThanOrEqual(rate.burst + seconds * perSecond(rate) + 1e-6);
        await test.superuser.query('delete from rate_buckets');
      }),
      { numRuns: 25 },
    );
  });

  it('without requests for a while is removed; one that is in use stays', async () => {
    await test.superuser.query('delete from rate_buckets');
    const [idle, busy] = [anOrganization(), anOrganization()];
    await lease(idle);
    await age(7_200);
    await lease(busy);
    expect(await pruneRateBuckets(test.database, 3_600)).toBe(1);
    const { rows } = await test.superuser.query('select org_id from rate_buckets');
    expect(rows).toEqual([{ org_id: busy.orgId }]);
  });
});

describe('places for exports', () => {
  const slot = (holder = randomUUID()) => ({ kind: 'export', holder, max: 2, seconds: 60 }) as const;
  const expire = () =>
    test.superuser.query(`update request_slots set expires_at = now() - interval '1 second'`);

  it('are as many as an organization may have, each for itself', async () => {
    const [a, b] = [anOrganization(), anOrganization()];
    expect([await takeRequestSlot(a, slot()), await takeRequestSlot(a, slot())]).toEqual([true, true]);
    expect(await takeRequestSlot(a, slot())).toBe(false);
    expect(await takeRequestSlot(b, slot())).toBe(true);
  });

  it('are never taken by more, however many want them at once', async () => {
    const orgDb = anOrganization();
    const taken = await Promise.all(Array.from({ length: 20 }, () => takeRequestSlot(orgDb, slot())));
    expect(taken.filter(Boolean)).toHaveLength(2);
  });

  it('are free again when they are released, and when their holder died', async () => {
    const orgDb = anOrganization();
    const holder = randomUUID();
    await takeRequestSlot(orgDb, slot(holder));
    await takeRequestSlot(orgDb, slot());
    await releaseRequestSlot(orgDb, holder);
    expect(await takeRequestSlot(orgDb, slot())).toBe(true);
    expect(await takeRequestSlot(orgDb, slot())).toBe(false);
    await expire();
    expect(await takeRequestSlot(orgDb, slot())).toBe(true);
  });

  it('are held for longer by renewing; one that expired and was taken by another is lost', async () => {
    const orgDb = anOrganization();
    const holder = randomUUID();
    await takeRequestSlot(orgDb, slot(holder));
    expect(await renewRequestSlot(orgDb, holder, 60)).toBe(true);
    await expire();
    await takeRequestSlot(orgDb, { ...slot(), max: 1 });
    expect(await renewRequestSlot(orgDb, holder, 60)).toBe(false);
  });
});
