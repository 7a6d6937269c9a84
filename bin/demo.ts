import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { runMain } from '../platform/processMain.js';
import { readCommandLine } from './startup/commandLine.js';
import { findRunningApi, showDemo } from './startup/demo/demoRun.js';
import { runInForeground } from './startup/foreground.js';
import { createScreen } from './startup/screen.js';

/**
 * Loads the demo and prints what is found in it: into the service that runs on this data directory, else into one that
 * it starts and that stays until Ctrl-C.
 */
await runMain(async () => {
  readCommandLine('Usage: npm run demo', {});
  const config = loadConfig();
  const base = await findRunningApi(config);
  if (base === undefined) {
    await runInForeground(
      { ...config, demo: false },
      {
        isQuiet: true,
        async work({ base: started, screen }) {
          await showDemo(config, started, screen);
          screen.note('the service runs on; Ctrl-C ends it');
        },
      },
    );
    return;
  }
  const logger = createLogger({ name: 'demo', level: config.logLevel ?? 'info' });
  await showDemo(config, base, createScreen(process.stdout.isTTY === true, logger));
});
