import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { runMain } from '../platform/processMain.js';
import { Shutdown } from '../platform/shutdown.js';
import { createScreen } from './startup/screen.js';
import { startService } from './startup/service.js';

/** Everything in one process group: the embedded servers where no address is set, the API and the worker. */
await runMain(async () => {
  const config = loadConfig();
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
    await startService({
      config,
      logger,
      screen,
      shutdown,
      hurry: hurry.signal,
      childLogLevel: quietLevel,
    });
  } catch (error) {
    if (shutdown.isRunning) return;
    await shutdown.run('the start failed');
    throw error;
  }
});
