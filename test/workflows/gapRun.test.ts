import { rmSync } from 'node:fs';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { generateBills } from '../support/billGenerator.js';
import { importBill, pollToEnd, runGaps } from '../support/bills.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { standStill } from '../support/standStill.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const DAYS = 8;
const UNITS = 2 * DAYS;
const EXPLORER = '/api/v1/reconciliation/gap-explorer';
const lastDay = new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10);
const bills = generateBills({ seed: 7, lastDay, days: DAYS, callsPerHour: 1 });

let api: TestApi;
let engine: TestEngine;
let bundlePath: string;
const folder = makeTestFolder('gap-run');

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  bundlePath = await writeWorkflowBundle(folder);
});

afterAll(async () => {
  await engine?.close();
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** An organization with 8 days of two providers' bills, read. */
async function aBilledOrganization(): Promise<TestOrganization> {
  const organization = await api.addOrganization();
  const worker = await engine.startWorker();
  await importBill(api, bills.files.openaiCosts, { provider: 'openai' }, organization.adminKey);
  await importBill(api, bills.files.anthropicCosts, { provider: 'anthropic' }, organization.adminKey);
  await worker.stop();
  return organization;
}

const start = async (organization: TestOrganization, query = '?period=30d') => {
  const { status, body } = await api.post(`${EXPLORER}/run${query}`, {}, organization.adminKey);
  expect(status).toBe(202);
  return body;
};

/** What a run stored, without the ids that differ between runs. */
async function foundBy(organization: TestOrganization, runId: string): Promise<string[]> {
  const { rows } = await api.database.superuser.query(
    `select to_jsonb(b) - 'run_id' - 'org_id' - 'match_id' as found from gap_buckets b
     where org_id = $1 and replace(run_id::text, '-', '') = $2 order by bucket, provider, width, model`,
    [organization.orgId, runId.slice(4)],
  );
  return rows.map(({ found }) => JSON.stringify(found));
}

const doneUnits = async (organization: TestOrganization) => {
  const { rows } = await api.database.superuser.query(
    `select count(*)::int as count from gap_run_units where org_id = $1 and status = 'done'`,
    [organization.orgId],
  );
  return rows[0].count as number;
};

const aVictim = () =>
  spawnWorker({
    databaseUrl: api.database.url,
    address: inject('temporalAddress'),
    namespace: TEST_NAMESPACE,
    taskQueue: engine.taskQueue,
    bundlePath,
  });

describe('a run', () => {
  it('shows nothing until all of it is matched, then all at once', async () => {
    const organization = await aBilledOrganization();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal === UNITS - 1) await gate;
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await start(organization);
    await until(
      'all units but one',
      () => doneUnits(organization),
      (count) => count === UNITS - 1,
    );
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
    expect((await api.get(run.status_url, organization.adminKey)).body.progress).toMatchObject({
      stage: 'matching',
      done: UNITS - 1,
      total: UNITS,
      percent: 93,
    });
    release();
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect((await api.get(EXPLORER, organization.adminKey)).body).toMatchObject({ total: done.result.total });
    await worker.stop();
  });

  it('over fewer days or one provider replaces its own days that changed and hides nothing', async () => {
    const organization = await aBilledOrganization();
    const worker = await engine.startWorker();
    const wide = await runGaps(api, '?period=90d', undefined, organization.adminKey);
    const agreed = { provider: 'openai', model: '*', discount_percent: 10, effective_from: bills.days[0] };
    const { status } = await api.post(
      '/api/v1/pricing/contract-rates',
      { ...agreed, source: { document: 'Agreement' } },
      organization.adminKey,
    );
    expect(status).toBe(201);
    const narrow = await runGaps(api, '?period=30d&provider=openai', undefined, organization.adminKey);
    const { body } = await api.get(`${EXPLORER}?period=90d`, organization.adminKey);
    expect(body.total).toBe(wide.result.total);
    const runs = new Set(
      body.gaps.map(({ provider, run_id }: { provider: string; run_id: string }) => `${provider} ${run_id}`),
    );
    expect(runs).toEqual(new Set([`openai ${narrow.run_id}`, `anthropic ${wide.run_id}`]));
    await worker.stop();
  });

  it('that finds nothing changed compares nothing, and its result is that of all its days', async () => {
    const organization = await aBilledOrganization();
    const worker = await engine.startWorker();
    const first = await runGaps(api, '?period=30d', undefined, organization.adminKey);
    const again = await runGaps(api, '?period=30d', undefined, organization.adminKey);
    expect(again).toMatchObject({ status: 'succeeded', progress: { done: 0, total: 0, percent: 100 } });
    expect(first.result).toMatchObject({ provider_days: UNITS, unchanged_days: 0 });
    expect(again.result).toEqual({ ...first.result, unchanged_days: UNITS });
    await worker.stop();
  });

  it('that is cancelled at work stops, and publishes nothing', async () => {
    const organization = await aBilledOrganization();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal >= UNITS / 2) await gate;
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await start(organization);
    await until(
      'a first unit',
      () => doneUnits(organization),
      (count) => count > 0,
    );
    const asked = await api.post(`${run.status_url}/cancel`, {}, organization.adminKey);
    expect([asked.status, asked.body.progress.stage]).toEqual([202, 'cancelling']);
    expect(await pollToEnd(api, run.status_url, undefined, organization.adminKey)).toMatchObject({
      status: 'cancelled',
      result: null,
    });
    expect(await doneUnits(organization)).toBeLessThan(UNITS);
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
    release();
    await worker.stop();
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
  });

  it('of which a day cannot be matched is partial: the other days are published, the day is named', async () => {
    const organization = await aBilledOrganization();
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal === 3) throw ApplicationFailure.nonRetryable('this day is broken', 'not_found');
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await start(organization);
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect(done).toMatchObject({
      status: 'partial',
      error: { code: 'units_failed' },
      result: {
        provider_days: UNITS,
        failed_units: [{ provider: 'anthropic', day: bills.days[3], message: 'this day is broken' }],
      },
    });
    const { body } = await api.get(EXPLORER, organization.adminKey);
    expect(
      new Set(
        body.gaps.map(({ provider, bucket }: { provider: string; bucket: string }) => provider + bucket),
      ).size,
    ).toBe(UNITS - 1);
    await worker.stop();
  });
});

describe('exactly once', () => {
  it('a killed worker’s run is finished by another, as if nothing had happened', {
    timeout: 300_000,
  }, async () => {
    const organization = await aBilledOrganization();
    const other = await aBilledOrganization();
    const undisturbed = await engine.startWorker();
    const reference = await runGaps(api, '?period=90d', undefined, other.adminKey);
    await undisturbed.stop();
    const before = await doneUnits(organization);
    const run = await start(organization, '?period=90d');
    for (let round = 0; round < 2; round += 1) {
      const reached = before + 1 + round * 4;
      const goOn = await standStill(api.database.superuser, {
        write: 'update',
        table: 'gap_run_units',
        condition: `(select count(*) from gap_run_units where status = 'done') >= ${reached}`,
      });
      const victim = await aVictim();
      await until(
        'units of the killed worker',
        () => doneUnits(organization),
        (count) => count >= reached,
      );
      await killHard(victim);
      await goOn();
    }
    expect(await doneUnits(organization)).toBeLessThan(before + UNITS);
    const heir = await engine.startWorker();
    const done = await pollToEnd(api, run.status_url, 180_000, organization.adminKey);
    expect(done).toMatchObject({ status: 'succeeded', progress: reference.progress });
    const found = await foundBy(organization, run.run_id);
    expect(found.length).toBeGreaterThan(UNITS);
    expect(found).toEqual(await foundBy(other, reference.run_id));
    await heir.stop();
  });

  it('a Temporal server killed in the middle finishes the run after it is back', {
    timeout: 300_000,
  }, async () => {
    const dataDir = makeTestFolder('temporal-restart');
    const first = await startOwnTemporal(dataDir);
    const ownApi = await startTestApi();
    const own = await startTestEngine(ownApi.database.database, { address: first.address });
    const slow = await own.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        await activities.matchProviderDay(unit);
      },
    }));
    await importBill(ownApi, bills.files.openaiCosts, { provider: 'openai' });
    await importBill(ownApi, bills.files.anthropicCosts, { provider: 'anthropic' });
    const { body: run } = await ownApi.post(`${EXPLORER}/run`, {});
    const units = async () => (await ownApi.get(run.status_url)).body.progress.done as number;
    await until('a first unit', units, (count) => count > 0);
    await killTemporal(first);
    const second = await startOwnTemporal(dataDir);
    expect(second.address).toBe(first.address);
    const done = await pollToEnd(ownApi, run.status_url, 180_000);
    expect(done).toMatchObject({ status: 'succeeded', result: { provider_days: UNITS, failed_units: [] } });
    const { rows } = await ownApi.database.superuser.query(
      `select count(*)::int as buckets, count(distinct (provider, bucket, model))::int as places from gap_buckets where width = 'day'`,
    );
    expect(rows[0].buckets).toBe(rows[0].places);
    await slow.stop();
    await own.close();
    await second.stop();
    await ownApi.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
