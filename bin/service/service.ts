import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { withLoginOf } from '../../db/login.js';
import { type Config, type Environment, processEnvironment } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { isPortTaken } from '../../platform/embedded/serverProcess.js';
import { type PartName, RuntimeFile } from '../../platform/runtimeFile.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import type { Shutdown } from '../../platform/shutdown.js';
import { StartError } from '../../platform/startError.js';
import { type ChildMessage, SupervisedProcess } from '../../platform/supervision.js';
import { bringDemo, demoLine, isDemoWanted } from '../demo/demoRun.js';
import { type Screen, seconds } from '../terminal/terminal.js';
import {
  checkSecretKey,
  findMissingKeySentence,
  requireSecretKeys,
  secretKeyEnvironment,
} from '../wiring/requirements.js';
import { checkAdminKey, type FirstStart, prepareDatabase, useToolDatabase } from './prepareDatabase.js';
import { type Engine, openEngine, openPostgres } from './servers.js';

/** The API and the worker are killed when they take longer to end; the servers have the rest of the 30 seconds. */
const CHILD_STOP_MS = 18_000;
/** How long the first screen waits for a worker before it says that the worker is still starting. */
const WORKER_WAIT_MS = 15_000;

export interface ServiceOptions {
  config: Config;
  logger: Logger;
  screen: Screen;
  shutdown: Shutdown;
  /** Aborts on a second signal: the children are then killed. */
  hurry: AbortSignal;
  /** What children log when no level is set. */
  childLogLevel: string;
}

/**
 * Brings everything up in order and registers how to end it. Returns when the API is open and, where the workflow
 * engine is at hand, the worker runs; with the address of the API, or undefined when it was stopped meanwhile.
 * @throws StartError with one sentence when something is in the way.
 */
export async function startService(options: ServiceOptions): Promise<string | undefined> {
  const { config, logger, screen, shutdown, hurry } = options;
  checkAdminKey(config);
  checkSecretKey(config);
  const dataDir = openDataDir(config.dataDir);
  shutdown.add('data directory', dataDir.release);
  // After the data directory: a second start of this service is reported as such, and not as another program.
  await refuseTakenPort(config);
  const runtime = new RuntimeFile(config.dataDir, TRUEUP_VERSION);
  shutdown.add('runtime file', () => runtime.remove());

  const engineOpening = openEngine(config, runtime, logger, screen.note);
  let postgresServer: { stop(): Promise<void> } | undefined;
  const stopEngine = async () => (await engineOpening.catch(() => undefined))?.stop();
  shutdown.add('servers', () => Promise.all([postgresServer?.stop(), stopEngine()]));
  const { url, directUrl } = await screen.step(
    'Postgres',
    openPostgres(config, runtime, logger, (server) => {
      postgresServer = server;
    }),
  );
  const engine = await engineOpening;
  const first = await screen.step('database schema', prepareDatabase(config, url, directUrl));
  if (shutdown.isRunning) return undefined;

  const keyEnvironment = secretKeyEnvironment(config);
  await warnOfSealed(options, url, keyEnvironment.TRUEUP_SECRET_KEY_FILE);
  let port = config.port;
  const environment = (name: 'api' | 'worker'): Environment =>
    processEnvironment({
      DATABASE_URL: url,
      // Only the worker makes and drops partitions.
      DATABASE_DIRECT_URL: name === 'api' ? withLoginOf(directUrl, url) : directUrl,
      TEMPORAL_ADDRESS: engine.address,
      ...keyEnvironment,
      PORT: String(port),
      LOG_LEVEL: config.logLevel ?? options.childLogLevel,
    });
  const { api, worker } = createChildren(environment, runtime, logger);
  shutdown.add('api and worker', () =>
    Promise.all([api.stop(CHILD_STOP_MS, hurry), worker.stop(CHILD_STOP_MS, hurry)]),
  );
  api.start();
  worker.start();
  engine.onMove(() => {
    worker.restart();
    api.tell(`${ENGINE_MESSAGE}${engine.address}`);
  });
  const workerUp = followEngine(engine, worker, options);
  port = (await screen.step('API', api.firstReady)).port ?? port;
  const base = `http://${shownHost(config.host)}:${port}`;
  runtime.set('api', { address: base });
  if (engine.isAtHand) await within(workerUp, WORKER_WAIT_MS);
  if (engine.isAtHand) await bringWantedDemo(options, base);
  showReady(options, runtime, base, first);
  return base;
}

/** DEMO=1: a service without a demo is given one before its first screen. Without it the service is as good. */
async function bringWantedDemo(
  { config, screen, logger, shutdown }: ServiceOptions,
  base: string,
): Promise<void> {
  if (!isDemoWanted(config)) return;
  try {
    await bringDemo(config, base, screen);
  } catch (error) {
    if (shutdown.isRunning) return;
    logger.warn({ err: error }, 'the demo could not be loaded');
    screen.note(`no demo: ${error instanceof Error ? error.message : String(error)} Try npm run demo.`);
  }
}

/** Credentials that no key at hand opens: reported once at each start; everything else works. */
async function warnOfSealed(
  { config, screen }: ServiceOptions,
  url: string,
  keyFile: string | undefined,
): Promise<void> {
  const keys = requireSecretKeys(keyFile === undefined ? config : { ...config, secretKeyFile: keyFile });
  const sentence = await useToolDatabase(url, (database) => findMissingKeySentence(database, keys));
  if (sentence !== undefined) screen.warn(sentence);
}

async function refuseTakenPort(config: Config): Promise<void> {
  let taken: boolean;
  try {
    taken = await isPortTaken(config.port, config.host);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') {
      throw new StartError(
        `PORT ${config.port} may not be used by this user: choose one from 1024 on, for example PORT=3000.`,
      );
    }
    throw new StartError(
      `HOST ${config.host} is not an address of this machine (${code}): set HOST=127.0.0.1, or 0.0.0.0 for every address.`,
    );
  }
  if (taken) {
    throw new StartError(
      `PORT ${config.port} is taken by another program: stop that one, or set PORT to a free one, for example PORT=${config.port + 1}.`,
    );
  }
}

/**
 * The worker looks after totals from the start and takes workflows as soon as the engine serves; without an engine
 * the service continues without workflows, and says so.
 */
async function followEngine(
  engine: Engine,
  worker: SupervisedProcess,
  options: ServiceOptions,
): Promise<void> {
  const { screen, logger, shutdown } = options;
  try {
    await screen.step('Temporal', engine.ready, engine.openedAt);
    await screen.step('worker', worker.firstReady);
  } catch (error) {
    if (shutdown.isRunning) return;
    logger.error({ err: error }, 'no workflow engine');
    screen.note(`workflow engine: none. ${error instanceof Error ? error.message : String(error)}`);
    screen.note('The rest of the service runs; gap runs wait in the outbox until there is one.');
  }
}

async function within(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    work,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limitMs);
    }),
  ]);
  clearTimeout(timer);
}

/** An address that a browser on this machine can open. */
function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::' || host.startsWith('127.') || host === '::1') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function showReady(
  options: ServiceOptions,
  runtime: RuntimeFile,
  base: string,
  first: FirstStart | undefined,
): void {
  const { config, screen } = options;
  const folder = relative(process.cwd(), config.dataDir);
  const dataDir = folder.startsWith('..') || folder === '' ? config.dataDir : folder;
  const { postgres, temporal } = runtime.state.parts;
  const where = postgres.embedded
    ? `embedded, ${postgres.directory?.replace(config.dataDir, dataDir)}`
    : 'yours';
  const ms = Math.round(performance.now());
  const engine =
    temporal.status === 'up'
      ? temporal.address
      : `${temporal.address ?? ''} (${temporal.detail ?? temporal.status})`;
  const keyText = first
    ? `${first.adminKey}  (shown once; saved to ${dataDir}/admin-key, mode 600)`
    : `in ${dataDir}/admin-key`;
  const demo = demoLine(config);
  screen.ready(
    `Trueup ${TRUEUP_VERSION} — ready in ${seconds(ms)} s`,
    [
      ['API', `${base}/api/v1        Docs  ${base}/docs`],
      ['Admin key', keyText],
      ['Postgres', `${postgres.address} (${where})   Temporal  ${engine}`],
      ...(demo === undefined ? [] : [['Demo', demo] as const]),
      ['Try', `curl -H "Authorization: Bearer $(cat ${dataDir}/admin-key)" ${base}/api/v1/usage/summary`],
    ],
    {
      ms,
      api: `${base}/api/v1`,
      docs: `${base}/docs`,
      postgres: postgres.address,
      temporal: temporal.address,
      temporalStatus: temporal.status,
      adminKeyFile: `${config.dataDir}/admin-key`,
      ...(demo === undefined ? {} : { demo }),
      ...(first ? { adminKey: first.adminKey } : {}),
    },
  );
}

/** Word to the worker that something waits in the outbox. */
export const OUTBOX_MESSAGE = 'outbox';

/** Word to the API where the workflow engine is now: its address follows. */
export const ENGINE_MESSAGE = 'engine ';

/** The API and the worker as processes that are kept running, each the same program as in a cluster. */
function createChildren(
  environment: (name: 'api' | 'worker') => Environment,
  runtime: RuntimeFile,
  logger: Logger,
): { api: SupervisedProcess; worker: SupervisedProcess } {
  const create = (name: PartName & ('api' | 'worker'), onMessage?: (message: ChildMessage) => void) => {
    const child: SupervisedProcess = new SupervisedProcess({
      name,
      script: fileURLToPath(
        new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
      ),
      environment: () => environment(name),
      logger,
      onStatus: (status, detail) => runtime.set(name, { status, pid: child.pid, detail }),
      ...(onMessage ? { onMessage } : {}),
    });
    return child;
  };
  const worker = create('worker');
  const api = create('api', (message) => {
    if (message.type === 'outbox') worker.tell(OUTBOX_MESSAGE);
  });
  return { api, worker };
}
