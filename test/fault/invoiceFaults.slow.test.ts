import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { testBlobFolder } from '../support/blobs.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { processedInvoice, uploadInvoice } from '../support/invoices.js';
import { killTemporal, startOwnTemporal } from '../support/ownTemporal.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const folder = makeTestFolder('invoice-faults');
let api: TestApi;
let bundlePath: string;

beforeAll(async () => {
  api = await startTestApi();
  bundlePath = await writeWorkflowBundle(folder);
});
afterAll(async () => {
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Points at which a worker is paused, by the statement that it is about to send. */
const STEPS = {
  'takes the run up': {
    write: 'update',
    table: 'invoice_runs',
    condition: `exists (select from invoices where status = 'received')`,
  },
  'stores what was extracted': {
    write: 'update',
    table: 'invoice_runs',
    condition: `exists (select from invoices where status = 'extracting') and exists (select from invoice_runs where extracting_until is not null)`,
  },
  'stores the lines': { write: 'insert', table: 'invoice_lines', condition: 'true' },
  'stores the comparison': {
    write: 'update',
    table: 'invoices',
    condition: 'exists (select from invoice_lines)',
  },
  'ends the run': {
    write: 'update',
    table: 'invoice_runs',
    condition: `exists (select from invoices where status in ('needs_review', 'reconciled'))`,
  },
} as const;

const settingsOf = (engine: TestEngine, address: string) => ({
  databaseUrl: api.database.url,
  address,
  namespace: TEST_NAMESPACE,
  taskQueue: engine.taskQueue,
  bundlePath,
  invoices: { blobFolder: testBlobFolder() },
});

const standing = () =>
  until(
    'a worker that stands still',
    async () =>
      (
        await api.database.superuser.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'killed' and wait_event = 'PgSleep'`,
        )
      ).rowCount ?? 0,
    (count) => count > 0,
  );

async function expectOnce({ orgDb, orgId }: TestOrganization, invoice: { status: string; lines: unknown[] }) {
  expect(invoice).toMatchObject({ status: 'needs_review', review_reasons: ['no_bill'] });
  expect(invoice.lines).toHaveLength(2);
  const runs = await orgDb.rows('select status from invoice_runs where org_id = $1', [orgId]);
  expect(runs).toEqual([{ status: 'succeeded' }]);
  expect(await orgDb.rows('select line_no from invoice_lines where org_id = $1 order by 1', [orgId])).toEqual(
    [{ line_no: 1 }, { line_no: 2 }],
  );
}

describe('an invoice whose worker is killed', () => {
  it.each(Object.entries(STEPS))(
    'while it %s: another one goes on, and every line is stored once',
    {
      timeout: 300_000,
    },
    async (_name, step) => {
      const engine = await startTestEngine(api.database.database, { readsInvoices: true });
      const org = await api.addOrganization();
      const goOn = await pauseWorkers(api.database.superuser, step);
      const victim = await spawnWorker(settingsOf(engine, inject('temporalAddress')));
      const { body } = await uploadInvoice(api, await invoicePdf(), { key: org.adminKey });
      engine.dispatcher.kick();
      await standing();
      await killHard(victim);
      await goOn();
      await engine.startWorker();
      await expectOnce(org, await processedInvoice(api, body.invoice_id, org.adminKey));
      await engine.close();
    },
  );
});

describe('an invoice whose Temporal is killed', () => {
  it('goes on when it is back, and was taken while it was away', { timeout: 300_000 }, async () => {
    const dataDir = makeTestFolder('invoice-temporal');
    const first = await startOwnTemporal(dataDir);
    const { address } = first;
    const engine = await startTestEngine(api.database.database, { readsInvoices: true, address });
    const [org, late] = [await api.addOrganization(), await api.addOrganization()];
    const goOn = await pauseWorkers(api.database.superuser, STEPS['stores the lines']);
    const worker = await spawnWorker(settingsOf(engine, address));
    const { body } = await uploadInvoice(api, await invoicePdf(), { key: org.adminKey });
    engine.dispatcher.kick();
    await standing();
    await killTemporal(first);
    await killHard(worker);
    await goOn();
    const away = await uploadInvoice(api, await invoicePdf(), { key: late.adminKey });
    expect(away.status).toBe(202);
    const second = await startOwnTemporal(dataDir);
    expect(second.address).toBe(address);
    await engine.startWorker();
    await expectOnce(org, await processedInvoice(api, body.invoice_id, org.adminKey));
    await expectOnce(late, await processedInvoice(api, away.body.invoice_id, late.adminKey));
    await engine.close();
    await second.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it.each(['stores what was extracted', 'stores the comparison', 'ends the run'] as const)(
    'while its worker %s: the same worker goes on, and every line is stored once',
    { timeout: 300_000 },
    async (step) => {
      const dataDir = makeTestFolder('invoice-temporal');
      const first = await startOwnTemporal(dataDir);
      const engine = await startTestEngine(api.database.database, {
        readsInvoices: true,
        address: first.address,
      });
      const org = await api.addOrganization();
      const goOn = await pauseWorkers(api.database.superuser, STEPS[step]);
      const worker = await spawnWorker(settingsOf(engine, first.address));
      const { body } = await uploadInvoice(api, await invoicePdf(), { key: org.adminKey });
      engine.dispatcher.kick();
      await standing();
      await killTemporal(first);
      // The statement under way fails with its session, as when Postgres fails too.
      await goOn();
      const second = await startOwnTemporal(dataDir);
      await expectOnce(org, await processedInvoice(api, body.invoice_id, org.adminKey));
      await killHard(worker);
      await engine.close();
      await second.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  );
});
