import { join } from 'node:path';
import type { Logger } from 'pino';
import { type ActivityDeps, createActivities } from '../../activities/index.js';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { TemporalOrchestrator } from '../../adapters/orchestrator.js';
import type { Database } from '../../db/client.js';
import { OutboxDispatcher } from '../../dispatch/outboxDispatcher.js';
import { Sweeper } from '../../dispatch/sweeper.js';
import { SyncSchedules } from '../../dispatch/syncSchedules.js';
import { microsFromDate } from '../../domain/period.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import type { Shutdown } from '../../platform/shutdown.js';
import type { Prices } from '../../usecases/pricing/priceBookHolder.js';
import { OUTBOX_MESSAGE } from './children.js';
import { pollSecondsOf } from './connectors.js';
import { startEngineWorkers } from './workerEngine.js';

export interface EngineWorkOptions
  extends Pick<ActivityDeps, 'connectors' | 'deliverWebhook' | 'secretKeys' | 'directUrl' | 'retention'> {
  address: string;
  namespace: string;
  database: Database;
  prices: Prices;
  logger: Logger;
  shutdown: Shutdown;
}

/**
 * Starts what works with the workflow engine: the workers of its task queues, the dispatcher that delivers the
 * outbox, the sweeper that finds what was lost. Ends the process when a worker cannot go on.
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
      pages: createPageReaders(connectors),
      nowMicros: () => microsFromDate(new Date()),
    }),
    logger,
  });
  shutdown.add('workflow workers', () => workers.close());
  workers.ended.catch((error: unknown) => {
    logger.fatal(
      { err: error },
      'a workflow worker cannot go on; the process ends so that it is started anew',
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
