import { rmSync } from 'node:fs';
import { Command } from 'commander';
import { createLogger } from '../../platform/logger.js';
import { findRunningApi, recordFile, resetDemo, showDemo } from '../demo/demoRun.js';
import { loadForRun } from '../demo/loadForRun.js';
import { runInForeground } from '../service/foreground.js';
import { withToolDatabase } from '../service/toolDatabase.js';
import { createScreen, print, type Terminal } from '../terminal/terminal.js';

export function command(terminal: Terminal): Command {
  return new Command('demo')
    .action(() => bringDemo(terminal))
    .addCommand(loadCommand(terminal), { hidden: true })
    .addCommand(
      new Command('reset')
        .description('remove the demo company with all of its rows and its key')
        .action(() => removeDemo(terminal)),
    );
}

/** Loads the demo for a request to the API, which names the run and its own address. */
function loadCommand(terminal: Terminal): Command {
  return new Command('load')
    .description('load the demo for a request to the API')
    .requiredOption('--for <organization>', 'the organization that asked for it')
    .requiredOption('--run <id>', 'the run that it reports to')
    .requiredOption('--base <address>', 'the API')
    .action((options: { for: string; run: string; base: string }) =>
      loadForRun(terminal.readConfig(), { orgId: options.for, id: options.run }, options.base),
    );
}

/**
 * Loads the demo and prints its findings: into the service that runs on this data directory, else into one that it
 * starts and that runs until Ctrl-C.
 */
async function bringDemo(terminal: Terminal): Promise<void> {
  const config = terminal.readConfig();
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
}

/** Removes the demo and touches no other organization. */
async function removeDemo(terminal: Terminal): Promise<void> {
  const config = terminal.readConfig();
  const removed = await withToolDatabase(config, (database) => resetDemo(database, config.dataDir));
  rmSync(recordFile(config), { force: true });
  print(
    terminal,
    removed === undefined
      ? 'There is no demo here.'
      : `Demo Labs is gone, with ${removed.toLocaleString('en-US')} rows and its key. npm run demo makes it again.`,
  );
}
