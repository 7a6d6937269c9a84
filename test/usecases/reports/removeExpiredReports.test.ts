import { afterAll, beforeAll, expect, it } from 'vitest';
import { fileBlobStore } from '../../../adapters/blobs/fileBlobStore.js';
import { REPORTS } from '../../../db/reports/reports.js';
import { findRun } from '../../../db/runs/runTable.js';
import { newUuid } from '../../../domain/ids.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';
import { removeExpiredReports } from '../../../usecases/reports/removeExpiredReports.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { storeReport } from '../../support/reports.js';
import { makeTestFolder } from '../../support/testFolder.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

/** A store of this file alone: the sweep would remove and count files that other tests of the process left. */
const blobs = fileBlobStore(makeTestFolder('reports'));

const NOW = BigInt(Date.now()) * 1_000n;

async function putOrphan(orgId: string, atMicros: bigint): Promise<string> {
  const key = `reports/${orgId}/${newUuid(atMicros)}/0.pdf`;
  const bytes = (async function* () {
    yield Buffer.from('%PDF-');
  })();
  await blobs.put(key, bytes, { bytesMax: 100 });
  return key;
}

it('removes expired reports with their files, and files of no report, and nothing else', async () => {
  const { orgDb, orgId } = api;
  const old = await storeReport(orgDb, { blobs, generatedAtMicros: NOW - 91n * MICROS_PER_DAY });
  const young = await storeReport(orgDb, { blobs, generatedAtMicros: NOW - 89n * MICROS_PER_DAY });
  const keyOf = (id: string) => `reports/${orgId}/${id}/0.pdf`;
  const orphan = await putOrphan(orgId, NOW - 2n * MICROS_PER_DAY);
  const underWay = await putOrphan(orgId, NOW);
  let removed = 0;
  const work = {
    database: api.database.database,
    nowMicros: NOW,
    report: async ({ rows }: { rows: number }) => {
      removed += rows;
    },
  };
  await removeExpiredReports(work, blobs);
  expect(removed).toBe(2);
  const there = async (id: string) => [
    (await findRun(orgDb, REPORTS, id)) !== undefined,
    await blobs.exists(keyOf(id)),
  ];
  expect([await there(old), await there(young)]).toEqual([
    [false, false],
    [true, true],
  ]);
  expect([await blobs.exists(orphan), await blobs.exists(underWay)]).toEqual([false, true]);
  await removeExpiredReports(work, blobs);
  expect(removed).toBe(2);
});
