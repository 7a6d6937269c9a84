import { relative } from 'node:path';
import type { Logger } from 'pino';
import { withLoginOf } from '../../db/login.js';
import { LINK_MINUTES } from '../../domain/access/sessionRules.js';
import { type Config, type Environment, processEnvironment } from '../../platform/config.js';
import { openDataDir } from '../../platform/embedded/dataDir.js';
import { isPortTaken } from '../../platform/embedded/serverProcess.js';
import { RuntimeFile } from '../../platform/runtimeFile.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import type { Shutdown } from '../../platform/shutdown.js';
import { StartError } from '../../platform/startError.js';
import {
  type ChildMessage,
  forkServer,
  type ServerName,
  SupervisedProcess,
} from '../../platform/supervision.js';
import { bringDemo, demoLine, isDemoWanted } from '../demo/demoRun.js';
import { type Screen, seconds } from '../terminal/terminal.js';
import { programFile } from '../wiring/programFile.js';
import {
  checkSecretKey,
  findMissingKeySentence,
  requireSecretKeys,
  secretKeyEnvironment,
} from '../wiring/requirements.js';
import { checkAdminKey, type FirstStart, prepareDatabase, useToolDatabase } from './prepareDatabase.js';
import { type Engine, openEngine, openPostgres } from './servers.js';
import { findFirstSignInLink } from './signInLink.js';

/** Milliseconds after which a stopping API or worker is killed; the servers have the rest of the 30 seconds. */
const CHILD_STOP_MS = 18_000;
/** Longest wait of the first screen for a worker, milliseconds, before it reports that the worker is still starting. */
const WORKER_WAIT_MS = 15_000;

export interface ServiceOptions {
  config: Config;
  logger: Logger;
  screen: Screen;
  shutdown: Shutdown;
  /** Aborted on a second signal: the children are then killed. */
  hurry: AbortSignal;
  /** Log level of the children when none is set. */
  childLogLevel: string;
}

/**
 * Starts everything in order and registers how to stop it. Returns when the API is open and, where Temporal is
 * available, the worker runs; with the address of the API, or undefined: it was stopped meanwhile.
 * @throws StartError with one sentence about a problem.
 */
export async function startService(options: ServiceOptions): Promise<string | undefined> {
  const { config, logger, screen, shutdown, hurry } = options;
  checkAdminKey(config);
  checkSecretKey(config);
  const dataDir = openDataDir(config.dataDir);
  shutdown.add('data directory', dataDir.release);
  // Checked after the data directory's lock: a second start of this service is then reported as such, and not as
  // another program.
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
  const environment = (name: ServerName): Environment =>
    processEnvironment({
      DATABASE_URL: url,
      // Only the worker creates and drops partitions.
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
  const open = config.baseUrl ?? base;
  const link = await useToolDatabase(url, (database) => findFirstSignInLink(database, open));
  showReady(options, runtime, base, { first, open, link });
  return base;
}

/** DEMO=1: loads a missing demo before the first screen. Its failure does not affect the service. */
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

/** Reports credentials that no available key decrypts, once at each start; everything else works. */
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
 * The worker maintains totals from the start and takes workflows as soon as Temporal serves; without Temporal the
 * service continues without workflows, and reports it.
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
  { first, open, link }: { first: FirstStart | undefined; open: string; link: string | undefined },
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
      ['Open', link === undefined ? open : `${link}  (one-time sign-in, ${LINK_MINUTES} min)`],
      ['API', `${base}/api/v1        Docs  ${base}/docs`],
      ['Admin key', keyText],
      ['Postgres', `${postgres.address} (${where})   Temporal  ${engine}`],
      ...(demo === undefined ? [] : [['Demo', demo] as const]),
      ['Try', `curl -H "Authorization: Bearer $(cat ${dataDir}/admin-key)" ${base}/api/v1/usage/summary`],
    ],
    {
      ms,
      open: link ?? open,
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

/** Message to the worker: the outbox has rows. */
export const OUTBOX_MESSAGE = 'outbox';

/** Message to the API: Temporal's present address follows. */
export const ENGINE_MESSAGE = 'engine ';

/** The API and the worker as supervised processes, each the same program as in a cluster. */
function createChildren(
  environment: (name: ServerName) => Environment,
  runtime: RuntimeFile,
  logger: Logger,
): { api: SupervisedProcess; worker: SupervisedProcess } {
  const create = (name: ServerName, onMessage?: (message: ChildMessage) => void) => {
    const script = programFile(name);
    const child: SupervisedProcess = new SupervisedProcess({
      name,
      start: () => forkServer(name, script, environment(name)),
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
