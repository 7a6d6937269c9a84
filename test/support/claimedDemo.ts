import pino from 'pino';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { addAgreements, addEvents } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { OrgDb } from '../../db/orgDb.js';
import { findUuid } from '../../domain/ids.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import { readImport } from '../../usecases/billing/readImport.js';
import type { EvidenceDeps } from '../../usecases/claims/freezeEvidence.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { startTestApi, type TestApi, type TestOrganization } from './api.js';
import { uploadBill } from './bills.js';
import { testInvoicePages } from './blobs.js';
import { createTestDatabase } from './database.js';
import { gapRunsOf } from './incrementalRuns.js';
import { makeOnce } from './makeOnce.js';
import { yesterday } from './plantedFaults.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const screen = createScreen(false, pino({ level: 'silent' }));

/** An organization with the demo's calls and bills, compared, and every finding that can be disputed in a dispute. */
export interface ClaimedDemo {
  api: TestApi;
  organization: TestOrganization;
  deps: EvidenceDeps;
  /** Of every dispute: its public id and kind. */
  disputes: Json[];
  close(): Promise<void>;
}

/** Keys and ids of the demo in a database that contains it. */
interface StoredDemo {
  database: string;
  orgId: string;
  adminKey: string;
  ingestKey: string;
  nowMicros: string;
}

/** The API on a separate database with the demo, which is loaded once a run. */
export async function startClaimedDemo(): Promise<ClaimedDemo> {
  const stored = JSON.parse(
    await makeOnce('claimed-demo.json', async () => JSON.stringify(await storeDemo())),
  ) as StoredDemo;
  const test = await createTestDatabase({ template: stored.database });
  const api = await startTestApi({ database: test });
  const { orgId, adminKey, ingestKey } = stored;
  const organization = { orgId, adminKey, ingestKey, orgDb: new OrgDb(test.database, orgId) };
  const { disputes } = (await api.get('/api/v1/financial/disputes?limit=1000', adminKey)).body;
  const prices = await PriceBookHolder.open(test.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  return {
    api,
    organization,
    deps: {
      nowMicros: () => BigInt(stored.nowMicros),
      prices,
      pages: createPageReaders({}),
      ...testInvoicePages(),
    },
    disputes,
    async close() {
      await api.close();
      await test.close();
    },
  };
}

/** Brings the demo in without an engine: the steps of an import and of a run, one after the other. */
async function storeDemo(): Promise<StoredDemo> {
  const api = await startTestApi();
  const organization = await api.addOrganization('Fjäll & Søn #1 *Börse* $100 <b>');
  const client = { base: api.baseUrl, key: organization.adminKey };
  const demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  await addAgreements(client, demo);
  await addEvents(client, demo, screen);
  for (const { provider, account, name: filename, text } of demo.files) {
    const { body } = await uploadBill(api, text, { provider, account }, { key: client.key, filename });
    const deps = { database: api.database.database, readBillingFile };
    const id = findUuid('imp', body.import_id) ?? '';
    await readImport(deps, organization.orgDb, id, new AbortController().signal);
  }
  const nowMicros = BigInt(Date.now()) * 1_000n;
  const runs = await gapRunsOf(api, () => nowMicros);
  await runs.run(organization, '90d' as '30d');
  await confirmAll(api, client.key);
  await api.close();
  const { orgId, adminKey, ingestKey } = organization;
  const database = new URL(api.database.url).pathname.slice(1);
  return { database, orgId, adminKey, ingestKey, nowMicros: String(nowMicros) };
}

async function confirmAll(api: TestApi, key: string): Promise<void> {
  const queue = (await api.get('/api/v1/financial/review-queue?limit=1000', key)).body;
  for (const { id, kind } of queue.items) {
    if (kind === 'policy') continue;
    await api.post(`/api/v1/financial/review-queue/${id}/confirm`, {}, key);
  }
}
