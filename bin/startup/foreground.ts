import type { Logger } from 'pino';
import type { Config } from '../../platform/config.js';
import { createLogger } from '../../platform/logger.js';
import { Shutdown } from '../../platform/shutdown.js';
import { createScreen, type Screen } from './screen.js';
import { startService } from './service.js';

/** The service in the foreground, as whoever started it sees it. */
export interface ForegroundService {
  /** Address of the API, as a browser on this machine can open it. */
  base: string;
  screen: Screen;
  logger: Logger;
}

export interface ForegroundOptions {
  /** Something else than the log is to be read here: the processes log warnings only, when no level is set. */
  isQuiet?: boolean;
  /** Done once the service is up; when it fails, so does the start. */
  work?: (service: ForegroundService) => Promise<void>;
}

/** Runs everything in one process group until it is told to end, then ends it in order. */
export async function runInForeground(
  config: Config,
  { isQuiet = false, work }: ForegroundOptions = {},
): Promise<void> {
  const isTerminal = process.stdout.isTTY === true;
  const quietLevel = isTerminal ? 'warn' : 'info';
  const logger = createLogger({ name: 'start', level: config.logLevel ?? quietLevel });
  const shutdown = new Shutdown(logger);
  const hurry = new AbortController();
  // A reader that went away (`npm start | head`) is no reason to leave the servers behind.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const screen = createScreen(isTerminal, logger);
  const end = async (signal: string) => {
    if (isTerminal) screen.note('stopping (again: at once)');
    await shutdown.run(signal);
    process.exit(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => (shutdown.isRunning ? hurry.abort() : void end(signal)));
  }
  try {
    const base = await startService({
      config,
      logger,
      screen,
      shutdown,
      hurry: hurry.signal,
      childLogLevel: isQuiet ? 'warn' : quietLevel,
    });
    if (base !== undefined) await work?.({ base, screen, logger });
  } catch (error) {
    if (shutdown.isRunning) return;
    await shutdown.run('the start failed');
    throw error;
  }
}
