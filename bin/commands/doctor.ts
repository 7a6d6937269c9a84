import { Command } from 'commander';
import {
  checkCalls,
  checkLogin,
  checkRetention,
  checkSecretKey,
  findDatabaseUrl,
} from '../doctor/databaseChecks.js';
import {
  checkClock,
  checkDisk,
  checkKey,
  checkNode,
  checkPort,
  checkPostgres,
  checkTemporal,
  checkWorker,
} from '../doctor/systemChecks.js';
import { inspectService } from '../service/inspect.js';
import { jsonOption } from '../terminal/options.js';
import { print, printJson, type Terminal } from '../terminal/terminal.js';

/** Looks at what usually stands in the way, a line each with the remedy. Exit code 1 when something does. */
export function doctorCommand(terminal: Terminal): Command {
  return new Command('doctor').addOption(jsonOption()).action(async ({ json }: { json?: boolean }) => {
    const config = terminal.readConfig();
    const inspection = await inspectService(config);
    const findings = [
      checkNode(),
      await checkPort(config, inspection),
      checkDisk(config, inspection),
      checkPostgres(inspection),
      await checkTemporal(config, inspection),
      checkWorker(inspection),
      checkClock(inspection),
      checkKey(config, inspection),
      await checkSecretKey(config, inspection),
      await checkLogin(config, inspection),
      await checkRetention(findDatabaseUrl(config, inspection)),
      await checkCalls(findDatabaseUrl(config, inspection)),
    ];
    if (json) printJson(terminal, findings);
    else
      for (const { what, ok, text } of findings)
        print(terminal, `  ${ok ? '✓' : '✗'} ${what.padEnd(10)} ${text}`);
    if (!findings.every(({ ok }) => ok)) terminal.exitCode = 1;
  });
}
