import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  bundleWorkflowCode,
  NativeConnection as Connections,
  type NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { inject } from 'vitest';
import { type Activities, type ActivityDeps, createActivities } from '../../activities/index.js';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { TemporalOrchestrator } from '../../adapters/orchestrator.js';
import { fetchPriceFileBy } from '../../adapters/prices/fetchPriceFile.js';
import { readPriceCollection } from '../../adapters/prices/readPriceCollection.js';
import { Renderer } from '../../adapters/typst/renderer.js';
import { reportRendererOf } from '../../adapters/typst/reportPdf.js';
import { pollSecondsOf } from '../../bin/wiring/outside.js';
import type { Database } from '../../db/client.js';
import { OutboxDispatcher } from '../../dispatch/outboxDispatcher.js';
import { Sweeper } from '../../dispatch/sweeper.js';
import { SyncSchedules } from '../../dispatch/syncSchedules.js';
import { microsFromDate } from '../../domain/period.js';
import { createLogger } from '../../platform/logger.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { extractionTaskQueue, webhookTaskQueue } from '../../workflows/contract.js';
import { testBlobs, testExtractor } from './blobs.js';
import { testConnectors, testSecretKeys } from './connectors.js';
import { asOwner } from './database.js';
import { makeOnce } from './makeOnce.js';
import { testOutbound } from './outbound.js';
import { SILENT, SILENT_RUNTIME } from './silentRuntime.js';
import { TEST_NAMESPACE } from './temporal.js';
import { testWebhookDelivery } from './webhooks.js';

Runtime.install({ ...SILENT_RUNTIME, shutdownSignals: [] });

let bundle: Promise<{ code: string }> | undefined;

/** The product's workflows, bundled straight from the sources, once in a run. */
export function workflowBundle(): Promise<{ code: string }> {
  bundle ??= makeOnce('workflows.js', bundleWorkflows).then((code) => ({ code }));
  return bundle;
}

async function bundleWorkflows(): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(import.meta.dirname, '../../workflows/index.ts'),
    logger: SILENT,
    webpackConfigHook: (config) => ({
      ...config,
      resolve: { ...config.resolve, extensionAlias: { '.js': ['.ts', '.js'] } },
    }),
  });
  return code;
}

/** Writes the bundle to a file in this folder, for workers in separate processes. */
export async function writeWorkflowBundle(folder: string): Promise<string> {
  const { code } = await workflowBundle();
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'workflows.js');
  writeFileSync(file, code);
  return file;
}

export interface RunningWorker {
  worker: Worker;
  /** Waits for work in progress. */
  stop(): Promise<void>;
}

export interface TestEngine {
  taskQueue: string;
  orchestrator: TemporalOrchestrator;
  dispatcher: OutboxDispatcher;
  sweeper: Sweeper;
  schedules: SyncSchedules;
  connection: NativeConnection;
  /** A worker with the product's activities, or with some of them replaced. */
  startWorker(replace?: (activities: Activities) => Partial<Activities>): Promise<RunningWorker>;
  close(): Promise<void>;
}

/** A century, seconds: no schedule starts a sync while a test counts them. */
const SELDOM_SECONDS = 3_153_600_000;

/** The product's retention without settings. */
export const TEST_RETENTION = { eventDays: undefined, payloadDays: 90, auditDays: 730 };

export interface TestEngineOptions
  extends Partial<
    Pick<
      ActivityDeps,
      | 'connectors'
      | 'blobs'
      | 'extractInvoice'
      | 'secretKeys'
      | 'syncPace'
      | 'webhookPace'
      | 'repricePassMs'
      | 'replayPageCalls'
      | 'retention'
      | 'logger'
    >
  > {
  address?: string;
  nowMicros?: () => bigint;
  sweep?: { queuedSeconds: number; silentSeconds: number };
  /** Milliseconds without a new outcome before weights are computed. */
  weightsQuietMs?: number;
  /** Reads invoices too. */
  readsInvoices?: boolean;
  /** Sends webhooks; absent: none are sent. */
  deliverWebhook?: ActivityDeps['deliverWebhook'];
  deliverMail?: ActivityDeps['deliverMail'];
  /** Public price lists to read; absent: none. */
  priceFeeds?: ActivityDeps['priceFeeds'];
  fetchPriceFile?: ActivityDeps['fetchPriceFile'];
}

/** Dispatcher, workers and client on a separate task queue, against a real Temporal server. */
export async function startTestEngine(
  database: Database,
  options: TestEngineOptions = {},
): Promise<TestEngine> {
  const address = options.address ?? inject('temporalAddress');
  const taskQueue = `test-${randomBytes(6).toString('hex')}`;
  const logger =
    options.logger ?? createLogger({ name: 'worker', level: process.env.TEST_LOG_LEVEL ?? 'silent' });
  const connection = await Connections.connect({ address });
  const orchestrator = new TemporalOrchestrator({
    address,
    namespace: TEST_NAMESPACE,
    taskQueue,
    ...(options.weightsQuietMs === undefined ? {} : { weightsQuietMs: options.weightsQuietMs }),
    nowMs: () => performance.now(),
  });
  const connectors = options.connectors ?? testConnectors();
  const pollsOf = pollSecondsOf(connectors);
  const schedules = new SyncSchedules({
    database,
    orchestrator,
    logger,
    readsPriceFeeds: (options.priceFeeds ?? []).length > 0,
    pollSeconds: (provider) => (pollsOf(provider) === undefined ? undefined : SELDOM_SECONDS),
    nowMicros: options.nowMicros ?? (() => microsFromDate(new Date())),
  });
  const dispatcher = new OutboxDispatcher({ database, orchestrator, schedules, logger });
  const sweeper = new Sweeper({
    database,
    orchestrator,
    logger,
    kick: () => dispatcher.kick(),
    ...(options.sweep ? { limits: options.sweep } : {}),
  });
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const activities = createActivities({
    database,
    prices,
    readBillingFile,
    pages: createPageReaders(connectors),
    connectors,
    blobs: options.blobs ?? testBlobs(),
    extractInvoice: options.extractInvoice ?? testExtractor().extract,
    renderInvoicePage: testExtractor().renderPage,
    renderReport: reportRendererOf(new Renderer()),
    baseUrl: () => 'http://trueup.test',
    secretKeys: options.secretKeys ?? testSecretKeys(),
    directUrl: asOwner(database.options.url),
    retention: options.retention ?? TEST_RETENTION,
    ...(options.syncPace ? { syncPace: options.syncPace } : {}),
    deliverWebhook: options.deliverWebhook ?? testWebhookDelivery(testOutbound()),
    deliverMail: options.deliverMail,
    priceFeeds: options.priceFeeds ?? [],
    fetchPriceFile: options.fetchPriceFile ?? fetchPriceFileBy(testOutbound()),
    readPriceCollection,
    ...(options.webhookPace ? { webhookPace: options.webhookPace } : {}),
    ...(options.repricePassMs === undefined ? {} : { repricePassMs: options.repricePassMs }),
    ...(options.replayPageCalls === undefined ? {} : { replayPageCalls: options.replayPageCalls }),
    nowMicros: options.nowMicros ?? (() => microsFromDate(new Date())),
    logger,
  });
  const { code } = await workflowBundle();
  const running = new Set<RunningWorker>();
  dispatcher.start();
  return {
    taskQueue,
    orchestrator,
    dispatcher,
    sweeper,
    schedules,
    connection,
    async startWorker(replace) {
      const common = {
        connection,
        namespace: TEST_NAMESPACE,
        activities: { ...activities, ...replace?.(activities) },
        maxConcurrentActivityTaskExecutions: 16,
        shutdownGraceTime: 1_000,
        shutdownForceTime: 5_000,
      };
      const worker = await Worker.create({
        ...common,
        taskQueue,
        workflowBundle: { code },
        maxCachedWorkflows: 50,
        // Workflows run in this thread: to start another one takes half a second of a processor.
        debugMode: true,
      });
      const workers = [worker];
      if (options.readsInvoices)
        workers.push(await Worker.create({ ...common, taskQueue: extractionTaskQueue(taskQueue) }));
      if (options.deliverWebhook)
        workers.push(await Worker.create({ ...common, taskQueue: webhookTaskQueue(taskQueue) }));
      const runs = workers.map((each) => each.run());
      const started: RunningWorker = {
        worker,
        stop: async () => {
          for (const each of workers) if (each.getState() === 'RUNNING') each.shutdown();
          await Promise.allSettled(runs);
          running.delete(started);
        },
      };
      running.add(started);
      return started;
    },
    async close() {
      await dispatcher.stop();
      await sweeper.stop();
      await schedules.stop();
      for (const worker of [...running]) await worker.stop();
      await prices.settle();
      await orchestrator.close();
      await connection.close();
    },
  };
}

/** Polls until `done` returns true, and fails with `what` after `timeoutMs`. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  done: (value: T) => boolean,
  timeoutMs = 180_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await ask();
    if (done(value)) return value;
    if (Date.now() > deadline)
      throw new Error(
        `${what} did not happen in ${timeoutMs} ms; last: ${JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part)).slice(0, 2_000)}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
