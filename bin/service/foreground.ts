import type { Logger } from 'pino';
import type { Config } from '../../platform/config.js';
import { createLogger } from '../../platform/logger.js';
import { onEndSignals, outliveReaders } from '../../platform/processMain.js';
import { Shutdown } from '../../platform/shutdown.js';
import { createScreen, type Screen } from '../terminal/terminal.js';
import { startService } from './service.js';

/** The service in the foreground. */
export interface ForegroundService {
  /** Address of the API for a browser on this machine. */
  base: string;
  screen: Screen;
  logger: Logger;
}

export interface ForegroundOptions {
  /** The terminal shows other output than the log: without a log level the processes log only warnings. */
  isQuiet?: boolean;
  /** Runs once the service is up; its failure fails the start. */
  work?: (service: ForegroundService) => Promise<void>;
}

/**
 * Signals within this time, milliseconds, count as one: a Ctrl-C arrives from the terminal and again from npm, and an
 * init system signals npm and us.
 */
const ONE_REQUEST_MS = 1_000;

/** Runs everything in one process group until a signal ends it, then shuts down in order. */
export async function runInForeground(
  config: Config,
  { isQuiet = false, work }: ForegroundOptions = {},
): Promise<void> {
  const isTerminal = process.stdout.isTTY === true;
  const quietLevel = isTerminal ? 'warn' : 'info';
  const logger = createLogger({ name: 'start', level: config.logLevel ?? quietLevel });
  const shutdown = new Shutdown(logger);
  const hurry = new AbortController();
  outliveReaders();
  const screen = createScreen(isTerminal, logger);
  const end = async (signal: string) => {
    if (isTerminal) screen.note('stopping (again: at once)');
    await shutdown.run(signal);
    process.exit(0);
  };
  let endedAtMs = 0;
  onEndSignals((signal) => {
    if (!shutdown.isRunning) {
      endedAtMs = performance.now();
      void end(signal);
    } else if (performance.now() - endedAtMs > ONE_REQUEST_MS) hurry.abort();
  });
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
