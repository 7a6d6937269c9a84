import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { importBill, pollToEnd, runGaps } from '../support/bills.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { EXPLORER, GapRunPlace, UNITS } from '../support/gapRunPlace.js';
import { killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

let place: GapRunPlace;
let api: TestApi;
let engine: TestEngine;
let bundlePath: string;
const folder = makeTestFolder('gap-run');

beforeAll(async () => {
  place = await GapRunPlace.open();
  ({ api, engine } = place);
  bundlePath = await writeWorkflowBundle(folder);
});
afterAll(async () => {
  await place?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The stored result of a run, without the ids that differ between runs. */
async function foundBy(organization: TestOrganization, runId: string): Promise<string[]> {
  const { rows } = await api.database.superuser.query(
    `select to_jsonb(b) - 'run_id' - 'org_id' - 'match_id' as found from gap_buckets b
     where org_id = $1 and replace(run_id::text, '-', '') = $2 order by bucket, provider, width, model`,
    [organization.orgId, runId.slice(4)],
  );
  return rows.map(({ found }) => JSON.stringify(found));
}

const aVictim = () =>
  spawnWorker({
    databaseUrl: api.database.url,
    address: inject('temporalAddress'),
    namespace: TEST_NAMESPACE,
    taskQueue: engine.taskQueue,
    bundlePath,
  });

describe('a gap run, exactly once', () => {
  it('a killed worker’s run is finished by another, as if nothing had happened', {
    timeout: 300_000,
  }, async () => {
    const organization = await place.aBilledOrganization();
    const other = await place.aBilledOrganization();
    const undisturbed = await engine.startWorker();
    const reference = await runGaps(api, '?period=90d', undefined, other.adminKey);
    await undisturbed.stop();
    const before = await place.doneUnits(organization);
    const run = await place.start(organization, '?period=90d');
    for (let round = 0; round < 2; round += 1) {
      const reached = before + 1 + round * 4;
      const goOn = await pauseWorkers(api.database.superuser, {
        write: 'update',
        table: 'gap_run_units',
        condition: `(select count(*) from gap_run_units where status = 'done') >= ${reached}`,
      });
      const victim = await aVictim();
      await until(
        'units of the killed worker',
        () => place.doneUnits(organization),
        (count) => count >= reached,
      );
      await killHard(victim);
      await goOn();
    }
    expect(await place.doneUnits(organization)).toBeLessThan(before + UNITS);
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
    await importBill(ownApi, place.bills.files.openaiCosts, { provider: 'openai' });
    await importBill(ownApi, place.bills.files.anthropicCosts, { provider: 'anthropic' });
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
