import { openDatabase } from '../db/client.js';
import { startUsageMaintenance } from '../dispatch/usageMaintenance.js';
import { microsFromDate } from '../domain/period.js';
import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { notifySupervisor, runMain } from '../platform/processMain.js';
import { Shutdown } from '../platform/shutdown.js';
import { PriceBookHolder } from '../usecases/pricing/priceBookHolder.js';
import { requireCurrentSchema } from './service/prepareDatabase.js';
import { startAuditAnchors } from './wiring/auditAnchors.js';
import { startEngineWork, waitForEngine } from './wiring/engineWork.js';
import {
  blobStoreOf,
  connectorsOf,
  invoiceExtractorOf,
  mailerOf,
  priceFileFetchOf,
  webhookDeliveryOf,
} from './wiring/outside.js';
import { requireDatabase, requireEngine, requireSecretKeys, retentionOf } from './wiring/requirements.js';

/** Core activity slots / 5, maintenance, and the four simultaneous webhook transactions. */
const POOL_MAX = 18;
const STATEMENT_TIMEOUT_MS = 60_000;
/** The time that a process of 95 MB waits for a next invoice. */
const SPARE_READER_MS = 60_000;

/** Runs workflows, activities, the dispatcher, and the maintenance of totals; the last needs no Temporal. */
await runMain(async () => {
  const config = loadConfig();
  const logger = createLogger({ name: 'worker', level: config.logLevel ?? 'info' });
  const shutdown = new Shutdown(logger);
  shutdown.listen();
  const { url, directUrl } = requireDatabase(config);
  const address = requireEngine(config);
  const secretKeys = requireSecretKeys(config);
  await requireCurrentSchema(directUrl);
  const database = openDatabase({
    url,
    poolMax: POOL_MAX,
    applicationName: 'trueup-worker',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  shutdown.add('database', () => database.close());
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: (error) => logger.warn({ err: error }, 'prices not refreshed'),
  });
  shutdown.add('prices', () => prices.settle());
  const nowMicros = () => microsFromDate(new Date());
  shutdown.add('maintenance', startUsageMaintenance({ database, directUrl, prices, logger, nowMicros }));
  shutdown.add('audit anchors', startAuditAnchors(config, database, secretKeys, logger));

  const stopping = new AbortController();
  shutdown.add('engine wait', () => stopping.abort());
  notifySupervisor({ type: 'waiting', detail: 'waits for the workflow engine' });
  if (!(await waitForEngine(address, stopping.signal))) return;
  const invoices = invoiceExtractorOf(config, { spareMs: SPARE_READER_MS });
  await startEngineWork({
    address,
    namespace: config.temporalNamespace,
    database,
    prices,
    connectors: connectorsOf(config),
    blobs: blobStoreOf(config),
    extractInvoice: invoices.extract,
    renderInvoicePage: invoices.renderPage,
    prepareExtraction: invoices.prepare,
    deliverWebhook: webhookDeliveryOf(config),
    deliverMail: mailerOf(config),
    priceFeeds: config.priceFeeds,
    fetchPriceFile: priceFileFetchOf(config),
    secretKeys,
    directUrl,
    baseUrl: () => config.baseUrl ?? `http://localhost:${config.port}`,
    retention: retentionOf(config),
    logger,
    shutdown,
  });
  logger.info({ address, namespace: config.temporalNamespace }, 'taking workflows');
  notifySupervisor({ type: 'ready' });
});
