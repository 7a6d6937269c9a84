import type { Logger } from 'pino';
import type { Config } from '../../platform/config.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import {
  chooseTemporalPort,
  type EmbeddedTemporal,
  startTemporal,
} from '../../platform/embedded/temporal.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';
import {
  type AcquireStep,
  acquireTemporalProgram,
  findTemporalProgram,
  type TemporalProgram,
} from '../../platform/embedded/temporalProgram.js';
import type { RuntimeFile } from '../../platform/runtimeFile.js';
import { KeptServer } from '../../platform/supervision.js';

export interface DatabaseUrls {
  /** For the login of the API and the worker. */
  url: string;
  /** Directly to Postgres, for the owner of the tables; equal to `url` where the settings name one address. */
  directUrl: string;
}

/**
 * The database that the settings name, or an embedded Postgres; `keep` receives the function that stops it before it
 * starts.
 */
export async function openPostgres(
  config: Config,
  runtime: RuntimeFile,
  logger: Logger,
  keep: (server: { stop(): Promise<void> }) => void,
): Promise<DatabaseUrls> {
  const { databaseUrl: url, databaseDirectUrl: directUrl } = config;
  if (url !== undefined && directUrl !== undefined) {
    runtime.set('postgres', { status: 'up', embedded: false, address: new URL(url).host });
    return { url, directUrl };
  }
  const server = new KeptServer({
    name: 'postgres',
    start: () => startPostgres({ dataDir: config.dataDir, cacheDir: config.cacheDir }),
    logger,
    onStatus: (status, running, detail) =>
      runtime.set('postgres', {
        status,
        detail,
        embedded: true,
        pid: running?.pid,
        ...(running
          ? { address: `127.0.0.1:${running.port}`, version: running.version, directory: running.directory }
          : {}),
      }),
  });
  keep(server);
  const running = await server.start();
  return { url: running.loginUrl, directUrl: running.url };
}

/** State of Temporal when the start begins. */
export interface Engine {
  /** Its present or future address; read it again before each use. */
  readonly address: string;
  /** Called when it runs at another address than announced, because another program took the port. */
  onMove(tell: () => void): void;
  /** Resolves when it serves; rejects with the remedy when it cannot run. */
  ready: Promise<void>;
  /** false: it has to be downloaded or built first. */
  isAtHand: boolean;
  /** Start of its opening, as performance.now(). */
  openedAt: number;
  stop(): Promise<void>;
}

/**
 * The Temporal server that the settings name, or an embedded one, in the order of docs/decisions/0037: an available
 * program immediately, else one that is downloaded or built while the API is already open.
 */
export async function openEngine(
  config: Config,
  runtime: RuntimeFile,
  logger: Logger,
  note: (text: string) => void,
): Promise<Engine> {
  const openedAt = performance.now();
  if (config.temporalAddress !== undefined) return externalEngine(config.temporalAddress, runtime, openedAt);
  const found = await findTemporalProgram(config);
  const place = new EnginePlace(`127.0.0.1:${await chooseTemporalPort(config.dataDir)}`);
  runtime.set('temporal', {
    status: found ? 'starting' : 'building',
    embedded: true,
    address: place.address,
  });
  const giveUp = new AbortController();
  let server: KeptServer<EmbeddedTemporal> | undefined;
  const bringUp = async () => {
    const program =
      found ?? (await acquireTemporalProgram(config, (step) => announce(step, runtime, note), giveUp.signal));
    if (giveUp.signal.aborted) return;
    server = keptTemporal(config, program, runtime, logger, place);
    await server.start();
  };
  const ready = bringUp().catch((error: unknown) => {
    runtime.set('temporal', {
      status: 'down',
      detail: error instanceof Error ? error.message : String(error),
    });
    throw error;
  });
  ready.catch(() => undefined);
  const stop = async () => {
    giveUp.abort();
    await ready.catch(() => undefined);
    await server?.stop();
  };
  return Object.assign(place, { ready, isAtHand: found !== undefined, openedAt, stop });
}

/** An external server may start after us: the worker waits for it. */
async function externalEngine(address: string, runtime: RuntimeFile, openedAt: number): Promise<Engine> {
  const status = (await isTemporalServing(address)) ? 'up' : 'degraded';
  runtime.set('temporal', { status, embedded: false, address });
  const ready = Promise.resolve();
  return { address, onMove: () => undefined, ready, isAtHand: true, openedAt, stop: async () => undefined };
}

function keptTemporal(
  config: Config,
  program: TemporalProgram,
  runtime: RuntimeFile,
  logger: Logger,
  place: EnginePlace,
): KeptServer<EmbeddedTemporal> {
  return new KeptServer({
    name: 'temporal',
    start: () => startTemporal({ program, dataDir: config.dataDir, namespace: config.temporalNamespace }),
    logger,
    onStatus: (status, running, detail) => {
      runtime.set('temporal', {
        status,
        detail,
        pid: running?.pid,
        ...(running ? { address: running.address, version: running.version } : {}),
      });
      if (running) place.moveTo(running.address);
    },
  });
}

/** Address of the embedded server: mostly the announced one. */
class EnginePlace {
  #address: string;
  #tell: () => void = () => undefined;

  constructor(foretold: string) {
    this.#address = foretold;
  }

  get address(): string {
    return this.#address;
  }

  onMove(tell: () => void): void {
    this.#tell = tell;
  }

  moveTo(address: string): void {
    if (address === this.#address) return;
    this.#address = address;
    this.#tell();
  }
}

const ANNOUNCEMENTS: Record<AcquireStep, string> = {
  downloading: 'workflow engine: being fetched, first start only',
  building: 'workflow engine: being built, about 3 minutes, first start only',
  'waiting for another start that builds': 'workflow engine: another start on this machine is building it',
};

function announce(step: AcquireStep, runtime: RuntimeFile, note: (text: string) => void): void {
  runtime.set('temporal', { status: 'building', detail: ANNOUNCEMENTS[step] });
  note(ANNOUNCEMENTS[step]);
}
