import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { msToTs } from '@temporalio/common/lib/time.js';
import {
  type LogMetadata,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import { type ActivityDeps, createActivities } from '../../activities/index.js';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { TemporalOrchestrator } from '../../adapters/orchestrator.js';
import { readPriceCollection } from '../../adapters/prices/readPriceCollection.js';
import { Renderer } from '../../adapters/typst/renderer.js';
import { reportRendererOf } from '../../adapters/typst/reportPdf.js';
import type { Database } from '../../db/client.js';
import { OutboxDispatcher } from '../../dispatch/outboxDispatcher.js';
import { Sweeper } from '../../dispatch/sweeper.js';
import { SyncSchedules } from '../../dispatch/syncSchedules.js';
import { microsFromDate } from '../../domain/period.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { type Shutdown, STOP_LIMITS } from '../../platform/shutdown.js';
import { StartError } from '../../platform/startError.js';
import type { Prices } from '../../usecases/pricing/priceBookHolder.js';
import { extractionTaskQueue, TASK_QUEUE_CORE, webhookTaskQueue } from '../../workflows/contract.js';
import { OUTBOX_MESSAGE } from '../service/service.js';
import { pollSecondsOf } from './outside.js';

export interface EngineWorkOptions
  extends Pick<
    ActivityDeps,
    | 'connectors'
    | 'deliverWebhook'
    | 'deliverMail'
    | 'priceFeeds'
    | 'fetchPriceFile'
    | 'secretKeys'
    | 'directUrl'
    | 'retention'
    | 'blobs'
    | 'extractInvoice'
    | 'renderInvoicePage'
    | 'baseUrl'
    | 'prepareExtraction'
  > {
  address: string;
  namespace: string;
  database: Database;
  prices: Prices;
  logger: Logger;
  shutdown: Shutdown;
}

/**
 * Starts the parts that use Temporal: the workers of its task queues, the dispatcher of the outbox, and the sweeper of
 * lost work. Ends the process when a worker fails.
 */
export async function startEngineWork(options: EngineWorkOptions): Promise<void> {
  const { address, namespace, database, connectors, logger, shutdown } = options;
  const workers = await startEngineWorkers({
    address,
    namespace,
    workflowBundle: join(PROJECT_ROOT, 'dist/workflow-bundle.js'),
    activities: createActivities({
      ...options,
      readBillingFile,
      readPriceCollection,
      pages: createPageReaders(connectors),
      renderReport: reportRendererOf(new Renderer()),
      nowMicros: () => microsFromDate(new Date()),
    }),
    logger,
  });
  shutdown.add('workflow workers', () => workers.close());
  workers.ended.catch((error: unknown) => {
    logger.fatal(
      { err: error },
      'a workflow worker cannot continue; the process ends so that it is restarted',
    );
    process.exit(1);
  });
  const orchestrator = new TemporalOrchestrator({ address, namespace, nowMs: () => performance.now() });
  shutdown.add('orchestrator', () => orchestrator.close());
  const schedules = new SyncSchedules({
    database,
    orchestrator,
    logger,
    pollSeconds: pollSecondsOf(connectors),
    readsPriceFeeds: options.priceFeeds.length > 0,
    nowMicros: () => microsFromDate(new Date()),
  });
  schedules.start();
  shutdown.add('schedules', () => schedules.stop());
  const dispatcher = new OutboxDispatcher({ database, orchestrator, schedules, logger });
  dispatcher.start();
  shutdown.add('dispatcher', () => dispatcher.stop());
  const sweeper = new Sweeper({ database, orchestrator, logger, kick: () => dispatcher.kick() });
  sweeper.start();
  shutdown.add('sweeper', () => sweeper.stop());
  process.on('message', (message) => {
    if (message === OUTBOX_MESSAGE) dispatcher.kick();
  });
}

/** Time for which histories of finished workflows are kept, where we create the namespace. */
const RETENTION_MS = 30 * 86_400_000;
const SERVING_POLL_MS = 250;
const GRPC_ALREADY_EXISTS = 6;
const GRPC_NOT_FOUND = 5;

/** Activities at once on 2 cores; most of their time they wait for Postgres. */
const ACTIVITY_SLOTS = 50;
/** Endpoints that are sent to at once; a pass mostly waits for its receivers. */
const WEBHOOK_SLOTS = 64;
/** Invoices that are read at once. */
const EXTRACTION_SLOTS = 2;
const WORKFLOW_TASK_SLOTS = 40;
const POLLERS_MAX = 10;
/** The SDK's default lets the heap run full (temporalio/sdk-typescript 2227). */
const CACHED_WORKFLOWS_MAX = 500;

/** Waits until Temporal serves: in a cluster it may start after us. false: `signal` aborted first. */
export async function waitForEngine(address: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if (await isTemporalServing(address)) return true;
    await sleep(SERVING_POLL_MS);
  }
  return false;
}

interface EngineWorkerOptions {
  address: string;
  namespace: string;
  workflowBundle: string;
  activities: object;
  logger: Logger;
}

/** The workers of the task queues, over a separate connection. */
interface EngineWorkers {
  /** Settles when a worker ends: rejected when it failed. */
  ended: Promise<void>;
  /** Takes no more tasks, lets those in progress finish or checkpoint, closes the connection. */
  close(): Promise<void>;
}

async function startEngineWorkers(options: EngineWorkerOptions): Promise<EngineWorkers> {
  installRuntime(options.logger);
  const connection = await NativeConnection.connect({ address: options.address });
  await ensureNamespace(connection, options.namespace);
  const core = await Worker.create({
    ...commonOptions(options, connection),
    taskQueue: TASK_QUEUE_CORE,
    workflowBundle: { codePath: options.workflowBundle },
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASK_SLOTS,
    maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
    workflowTaskPollerBehavior: { type: 'autoscaling', maximum: POLLERS_MAX },
  });
  // A separate queue, so that slow receivers take no slots of other work.
  const webhooks = await Worker.create({
    ...commonOptions(options, connection),
    taskQueue: webhookTaskQueue(TASK_QUEUE_CORE),
    maxConcurrentActivityTaskExecutions: WEBHOOK_SLOTS,
  });
  // A separate queue, because reading an invoice takes a core for a while, and the rest must stay for other work.
  const extraction = await Worker.create({
    ...commonOptions(options, connection),
    taskQueue: extractionTaskQueue(TASK_QUEUE_CORE),
    maxConcurrentActivityTaskExecutions: EXTRACTION_SLOTS,
  });
  const workers = [core, webhooks, extraction];
  const runs = workers.map((worker) => worker.run());
  const ended = Promise.all(runs).then(() => undefined);
  ended.catch(() => undefined);
  return {
    ended,
    async close() {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
      await Promise.allSettled(runs);
      await connection.close();
    },
  };
}

function commonOptions(
  options: EngineWorkerOptions,
  connection: NativeConnection,
): Omit<WorkerOptions, 'taskQueue'> {
  return {
    connection,
    namespace: options.namespace,
    identity: `${hostname()}:${process.pid}`,
    activities: options.activities,
    maxConcurrentActivityTaskExecutions: ACTIVITY_SLOTS,
    activityTaskPollerBehavior: { type: 'autoscaling', maximum: POLLERS_MAX },
    shutdownGraceTime: STOP_LIMITS.workerGraceMs,
    shutdownForceTime: STOP_LIMITS.workerForceMs,
  };
}

/** An expected warning of the SDK: the queues of webhooks and of extraction have only activities. */
const MEANT = 'No workflows registered, not polling for workflow tasks';

/** Makes the native core log through our logger and ignore signals, because we close in our order. */
function installRuntime(logger: Logger): void {
  const write =
    (level: 'trace' | 'debug' | 'info' | 'warn' | 'error') => (message: string, meta?: LogMetadata) =>
      logger[message === MEANT ? 'debug' : level](meta ?? {}, message);
  Runtime.install({
    shutdownSignals: [],
    logger: {
      log: (level, message, meta) => write(level.toLowerCase() as 'info')(message, meta),
      trace: write('trace'),
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
    },
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'WARN' }) },
    },
  });
}

/**
 * Creates the namespace where it is missing; on a server that does not permit it (Temporal Cloud) the operator creates
 * it.
 */
async function ensureNamespace(connection: NativeConnection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return;
  } catch (error) {
    if ((error as { code?: number }).code !== GRPC_NOT_FOUND) return;
  }
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(RETENTION_MS),
    });
  } catch (error) {
    if ((error as { code?: number }).code === GRPC_ALREADY_EXISTS) return;
    throw new StartError(
      `Temporal has no namespace "${namespace}" and does not let us make it: create it, or correct TEMPORAL_NAMESPACE.`,
      { cause: error },
    );
  }
}
