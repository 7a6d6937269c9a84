import { ApplicationFailure } from '@temporalio/common';
import { expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../adapters/invoices/extractor.js';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { OPERATION, startDocumentAiFake } from '../fakes/documentAiFake.js';
import type { TestOrganization } from '../support/api.js';
import { testExtractor } from '../support/blobs.js';
import { documentAiPages } from '../support/documentAiPages.js';
import { until } from '../support/engine.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { INVOICES, processedInvoice, uploadInvoice } from '../support/invoices.js';
import { startRecording } from './recording.js';
import { saveHistory } from './saveHistory.js';

/**
 * The histories of invoices that test/workflows/replay.test.ts replays: `npm run workflows:record`. Run it when the
 * workflow changes behind a patch, and commit the files; a recorded history is never replaced.
 */
it('records one history of each way that an invoice can go', { timeout: 300_000 }, async () => {
  const { extract } = testExtractor();
  const recording = await startRecording({ readsInvoices: true });
  const { api, engine, client } = recording;
  const upload = async (org: TestOrganization, number: string, bytes?: Buffer) => {
    const { body } = await uploadInvoice(api, bytes ?? (await invoicePdf({ number })), {
      key: org.adminKey,
      fields: { account: number },
    });
    engine.dispatcher.kick();
    return body.invoice_id as string;
  };
  const newestRun = async (org: TestOrganization, id: string) => {
    const { run } = (await api.get(`${INVOICES}/${id}`, org.adminKey)).body;
    return runWorkflowId('invoice_run', { orgId: org.orgId, id: findUuid('run', run.id) ?? '' });
  };
  const save = async (org: TestOrganization, id: string, status: string, name: string) => {
    expect((await processedInvoice(api, id, org.adminKey)).status).toBe(status);
    await saveHistory(client, await newestRun(org, id), name);
  };

  const plain = await engine.startWorker();
  await save(api, await upload(api, 'TEST-0001'), 'needs_review', 'invoice-needs-review');
  const receipt = await upload(api, 'TEST-0002', await invoicePdf({ title: 'Receipt', number: 'TEST-0002' }));
  await save(api, receipt, 'reconciled', 'invoice-reconciled');
  await api.post(`${INVOICES}/${receipt}/retry`, {});
  await save(api, receipt, 'reconciled', 'invoice-read-again');
  const broken = await upload(api, 'TEST-0003', Buffer.from('%PDF-1.7\nno'));
  await save(api, broken, 'failed', 'invoice-unreadable');
  const confirmed = await upload(
    api,
    'TEST-0004',
    await invoicePdf({ number: 'TEST-0004', total: '$31.00' }),
  );
  expect((await processedInvoice(api, confirmed)).review_reasons).toEqual(['arithmetic']);
  await api.post(`${INVOICES}/${confirmed}/confirm`, {});
  await save(api, confirmed, 'reconciled', 'invoice-confirmed');
  await plain.stop();

  // The first comparison is of an older revision.
  let matches = 0;
  const slow = await engine.startWorker((activities) => ({
    matchInvoice: async (run) => {
      const matched = await activities.matchInvoice(run);
      matches += 1;
      return matches === 1 ? { revision: matched.revision - 1 } : matched;
    },
  }));
  await save(api, await upload(api, 'TEST-0005'), 'needs_review', 'invoice-compared-again');
  await slow.stop();

  let asked = 0;
  const full = await engine.startWorker((activities) => ({
    extractInvoice: async (run) => {
      asked += 1;
      return asked < 3 ? { isExtracted: false } : activities.extractInvoice(run);
    },
  }));
  await save(api, await upload(api, 'TEST-0006'), 'needs_review', 'invoice-waited-for-a-place');
  await full.stop();

  let isAtWork = false;
  const held = await engine.startWorker((activities) => ({
    matchInvoice: async (run) => {
      isAtWork = true;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return activities.matchInvoice(run);
    },
  }));
  const cancelled = await upload(api, 'TEST-0007');
  await until('the run at work', async () => isAtWork, Boolean);
  await client.workflow.getHandle(await newestRun(api, cancelled)).cancel();
  await save(api, cancelled, 'failed', 'invoice-cancelled');
  await held.stop();

  const failing = await engine.startWorker(() => ({
    readInvoice: async () => {
      throw ApplicationFailure.nonRetryable('this is broken', 'internal_error');
    },
  }));
  await save(api, await upload(api, 'TEST-0008'), 'failed', 'invoice-reading-failed');
  await failing.stop();

  const fake = await startDocumentAiFake();
  const lines = Array.from({ length: 400 }, (_, at) => ({
    description: `Claude Sonnet 4.5 input tokens, project ${at + 1}`,
    quantity: '10',
    unitPrice: '$0.0075',
    amount: '$0.075',
  }));
  const long = await invoicePdf({ number: 'TEST-0009', lines });
  const words = await extract(long);
  fake.answer = (_pages, { documentOutputConfig }) => {
    const folder = documentOutputConfig?.gcsOutputConfig.gcsUri.replace('gs://invoices/', '') ?? '';
    fake.bucket.set(`${folder}1/0/input-0.json`, Buffer.from(JSON.stringify(documentAiPages(words))));
    return { name: OPERATION, done: false };
  };
  const remote = await startRecording({
    readsInvoices: true,
    extractInvoice: createInvoiceExtractor({
      engines: ['document_ai'],
      documentAi: fake.settingsOver('grpc', { bucket: 'invoices/drop' }),
    }).extract,
  });
  const worker = await remote.engine.startWorker();
  const { body } = await uploadInvoice(remote.api, long);
  remote.engine.dispatcher.kick();
  const invoice = await processedInvoice(remote.api, body.invoice_id);
  expect([invoice.engine, invoice.lines.length, fake.requests.length]).toEqual(['document_ai', 400, 1]);
  const runId = findUuid('run', invoice.run.id) ?? '';
  await saveHistory(
    remote.client,
    runWorkflowId('invoice_run', { orgId: remote.api.orgId, id: runId }),
    'invoice-document-ai-long-operation',
  );
  await worker.stop();
  fake.close();
  await remote.close();
  await recording.close();
});
