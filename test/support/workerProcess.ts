/**
 * A worker as a separate process, so that a test can kill it. Settings by environment: TEST_WORKER as JSON. Prints
 * `ready` when it polls.
 */
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createActivities } from '../../activities/index.js';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { fileBlobStore } from '../../adapters/blobs/fileBlobStore.js';
import { readPriceCollection } from '../../adapters/prices/readPriceCollection.js';
import { Renderer } from '../../adapters/typst/renderer.js';
import { reportRendererOf } from '../../adapters/typst/reportPdf.js';
import { openDatabase } from '../../db/client.js';
import { microsFromDate } from '../../domain/period.js';
import { createLogger } from '../../platform/logger.js';
import type { SyncPace } from '../../usecases/billing/fetchChunk.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import type { WebhookPace } from '../../usecases/webhooks/sendDueWebhooks.js';
import { extractionTaskQueue, webhookTaskQueue } from '../../workflows/contract.js';
import { testBlobFolder, testExtractor } from './blobs.js';
import { testConnectors, testSecretKeys } from './connectors.js';
import { testOutbound } from './outbound.js';
import { SILENT_RUNTIME } from './silentRuntime.js';
import { testWebhookDelivery } from './webhooks.js';

export interface WorkerProcessSettings {
  databaseUrl: string;
  address: string;
  namespace: string;
  taskQueue: string;
  bundlePath: string;
  /** Addresses of the providers; absent: nowhere. */
  providers?: { openai?: string; anthropic?: string };
  syncPace?: SyncPace;
  /** Reads invoices too, of the files in this folder. */
  invoices?: { blobFolder: string };
  /** Sends webhooks too, to these receivers; not when absent. */
  webhooks?: { allowedHosts: string[]; pace: WebhookPace };
}

const settings = JSON.parse(process.env.TEST_WORKER ?? '') as WorkerProcessSettings;
Runtime.install(SILENT_RUNTIME);
const database = openDatabase({
  url: settings.databaseUrl,
  poolMax: 10,
  applicationName: 'killed',
  statementTimeoutMs: 180_000,
});
const prices = await PriceBookHolder.open(database, {
  nowMs: () => performance.now(),
  onFailure: () => undefined,
});
const connectors = testConnectors(settings.providers);
const activities = createActivities({
  database,
  prices,
  readBillingFile,
  priceFeeds: [],
  fetchPriceFile: async () => undefined,
  readPriceCollection,
  pages: createPageReaders(connectors),
  connectors,
  blobs: fileBlobStore(settings.invoices?.blobFolder ?? testBlobFolder()),
  extractInvoice: testExtractor().extract,
  renderInvoicePage: testExtractor().renderPage,
  renderReport: reportRendererOf(new Renderer()),
  baseUrl: () => 'http://trueup.test',
  secretKeys: testSecretKeys(),
  deliverWebhook: testWebhookDelivery(testOutbound(settings.webhooks?.allowedHosts)),
  ...(settings.webhooks ? { webhookPace: settings.webhooks.pace } : {}),
  directUrl: settings.databaseUrl,
  retention: { eventDays: undefined, payloadDays: 90, auditDays: 730 },
  ...(settings.syncPace ? { syncPace: settings.syncPace } : {}),
  repricePassMs: 0,
  // A savings run of some hundred calls is still at work when it is killed.
  replayPageCalls: 1,
  nowMicros: () => microsFromDate(new Date()),
  logger: createLogger({ name: 'worker', level: 'silent' }),
});
const connection = await NativeConnection.connect({ address: settings.address });
const worker = await Worker.create({
  connection,
  namespace: settings.namespace,
  taskQueue: settings.taskQueue,
  workflowBundle: { codePath: settings.bundlePath },
  activities,
});
const webhooks =
  settings.webhooks &&
  (await Worker.create({
    connection,
    namespace: settings.namespace,
    taskQueue: webhookTaskQueue(settings.taskQueue),
    activities,
  }));
const extraction =
  settings.invoices &&
  (await Worker.create({
    connection,
    namespace: settings.namespace,
    taskQueue: extractionTaskQueue(settings.taskQueue),
    activities,
  }));
process.stdout.write('ready\n');
await Promise.all([worker.run(), webhooks?.run(), extraction?.run()]);
