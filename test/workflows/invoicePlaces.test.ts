import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INVOICE_RUNS, takeExtractionPlace } from '../../db/invoices/invoiceRuns.js';
import { insertRun, markRunStarted } from '../../db/runs/runTable.js';
import { newUuid } from '../../domain/ids.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { testExtractor } from '../support/blobs.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { processedInvoice, storeReadInvoice, uploadInvoice } from '../support/invoices.js';

/** Longer than the first waits for a place: who may not have one has asked for it again. */
const ASKED_AGAIN_MS = 2_000;

let api: TestApi;
let engine: TestEngine;
/** Extractions under way, and what lets them end. */
let running = 0;
let most = 0;
let release: () => void;
const released = new Promise<void>((resolve) => {
  release = resolve;
});

beforeAll(async () => {
  api = await startTestApi();
  const { extract } = testExtractor();
  engine = await startTestEngine(api.database.database, {
    readsInvoices: true,
    extractInvoice: async (pdf, options) => {
      running += 1;
      most = Math.max(most, running);
      await released;
      return extract(pdf, options).finally(() => {
        running -= 1;
      });
    },
  });
  await engine.startWorker();
});
afterAll(async () => {
  release?.();
  await engine?.close();
  await api?.close();
});

const reading = (count: number) =>
  until(
    `${count} extractions`,
    async () => running,
    (now) => now === count,
  );

describe('the invoices of an organization', () => {
  it('are read two at a time, and those of another one meanwhile', async () => {
    const [many, one] = [await api.addOrganization(), await api.addOrganization()];
    const upload = async (key: string, number: string) => {
      const { body } = await uploadInvoice(api, await invoicePdf({ number }), { key });
      engine.dispatcher.kick();
      return { key, id: body.invoice_id as string };
    };
    const uploads = await Promise.all(
      Array.from({ length: 5 }, (_, at) => upload(many.adminKey, `MANY-000${at}`)),
    );
    await reading(2);
    await new Promise((resolve) => setTimeout(resolve, ASKED_AGAIN_MS));
    expect(running).toBe(2);
    uploads.push(await upload(one.adminKey, 'ONE-0001'));
    await reading(3);
    const places = await many.orgDb.rows(
      'select id from invoice_runs where org_id = $1 and extracting_until > now()',
      [many.orgId],
    );
    expect(places).toHaveLength(2);
    release();
    for (const { key, id } of uploads)
      expect(await processedInvoice(api, id, key)).toMatchObject({
        status: 'needs_review',
        review_reasons: ['no_bill'],
      });
    expect(most).toBe(3);
    expect(
      await many.orgDb.rows('select id from invoice_runs where extracting_until is not null', []),
    ).toEqual([]);
  });

  it('have the place of a worker that died once its time is over', async () => {
    const { orgDb, orgId } = await api.addOrganization();
    const runs: { id: string }[] = [];
    for (const number of ['A-1', 'A-2', 'A-3']) {
      const run = {
        id: newUuid(BigInt(Date.now()) * 1_000n),
        invoiceId: await storeReadInvoice(orgDb, number),
        cause: 'upload' as const,
        engines: null,
        requestedBy: 'test',
        statusBefore: 'received' as const,
      };
      await insertRun(orgDb, INVOICE_RUNS, run);
      await markRunStarted(orgDb, 'invoice_run', run.id, 'extracting');
      runs.push(run);
    }
    const take = (at: number) =>
      orgDb.transaction((inside) => takeExtractionPlace(inside, runs[at]?.id ?? ''));
    expect([await take(0), await take(1), await take(2), await take(0)]).toEqual([true, true, false, true]);
    await api.database.superuser.query(
      'update invoice_runs set extracting_until = now() where org_id = $1 and id = $2',
      [orgId, runs[0]?.id],
    );
    expect(await take(2)).toBe(true);
    expect(await take(0)).toBe(false);
  });
});
