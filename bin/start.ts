import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readCommandLine } from './startup/commandLine.js';
import { runInForeground } from './startup/foreground.js';

/** Everything in one process group: the embedded servers where no address is set, the API and the worker. */
await runMain(() => {
  readCommandLine(
    'Usage: npm start   (settings come from the environment or .env: docs/configuration.md)',
    {},
  );
  return runInForeground(loadConfig());
});
