import { rmSync } from 'node:fs';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readCommandLine } from './startup/commandLine.js';
import { resetDemo } from './startup/demo/demoOrganization.js';
import { recordFile } from './startup/demo/demoRun.js';
import { withToolDatabase } from './startup/toolDatabase.js';

/** Removes the demo's organization with every row that it has, and its key. No other organization is touched. */
await runMain(async () => {
  readCommandLine('Usage: npm run demo:reset', {});
  const config = loadConfig();
  const removed = await withToolDatabase(config, (database) => resetDemo(database, config.dataDir));
  rmSync(recordFile(config), { force: true });
  process.stdout.write(
    removed === undefined
      ? 'There is no demo here.\n'
      : `Demo Labs is gone, with ${removed.toLocaleString('en-US')} rows and its key. npm run demo makes it anew.\n`,
  );
});
