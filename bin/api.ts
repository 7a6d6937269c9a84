import cluster from 'node:cluster';
import { type Config, loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { notifySupervisor, runMain } from '../platform/processMain.js';
import { closeHttpServer, Shutdown } from '../platform/shutdown.js';
import { runApiProcesses } from './service/apiProcesses.js';
import { requireCurrentSchema } from './service/prepareDatabase.js';
import {
  createApiServer,
  listen,
  openApiDatabase,
  openApiEngine,
  openChangeFeed,
  temporalStatus,
} from './wiring/apiServer.js';
import { demoControlOf } from './wiring/demoControl.js';
import { outsideOfApi } from './wiring/outside.js';
import { requireDatabase, requireSecretKeys, warnOfMissingKeys } from './wiring/requirements.js';
import { storageStatusOf } from './wiring/storageStatus.js';

await runMain(async () => {
  const config = loadConfig();
  const isGroup = cluster.isPrimary && config.apiProcesses > 1;
  await (isGroup ? runApiProcesses(config) : runApi(config));
});

async function runApi(config: Config): Promise<void> {
  const logger = createLogger({ name: 'api', level: config.logLevel ?? 'info' });
  const shutdown = new Shutdown(logger);
  shutdown.listen();
  const { url, directUrl } = requireDatabase(config);
  const secretKeys = requireSecretKeys(config);
  await requireCurrentSchema(directUrl);
  const { database, ingestConnections } = openApiDatabase(url, config.apiProcesses);
  shutdown.add('database', () => database.close());
  await warnOfMissingKeys(database, secretKeys, logger);
  const changes = openChangeFeed(directUrl, logger);
  shutdown.add('changes', () => changes.close());
  const engine = openApiEngine(config);
  shutdown.add('engine', () => engine.close());
  // PORT=0 takes a free port, which is known once the server listens.
  let port = config.port;
  const api = await createApiServer({
    database,
    ingestConnections,
    changes,
    ...outsideOfApi(config),
    demo: demoControlOf(config.host, () => port, logger),
    secretKeys,
    logger,
    checkResponses: false,
    baseUrl: () => config.baseUrl ?? `http://localhost:${port}`,
    loopback: config.isLoopback,
    metricsToken: config.metricsToken,
    ingestMaxBodyBytes: config.ingestMaxBodyBytes,
    limits: config.rateLimits ? config.limits : undefined,
    trustedProxies: config.trustedProxies,
    eventRetentionDays: config.eventRetentionDays,
    allowedHosts: config.allowedHosts,
    corsOrigins: config.corsOrigins,
    hstsMaxAgeSeconds: config.hstsMaxAgeSeconds,
    kickDispatcher: () => notifySupervisor({ type: 'outbox' }),
    temporalStatus: temporalStatus(engine.address),
    storageStatus: storageStatusOf(database, config.dataDir),
    moveClaim: engine.moveClaim,
  });
  shutdown.add('http', async () => {
    await closeHttpServer(api.server);
    await api.close();
  });
  await changes.start();
  port = await listen(api.server, config);
  logger.info({ host: config.host, port }, 'listening');
  notifySupervisor({ type: 'ready', port });
}
