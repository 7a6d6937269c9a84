import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readCommandLine } from './startup/commandLine.js';
import { checkCalls } from './startup/doctor/doctorCalls.js';
import {
  checkClock,
  checkDisk,
  checkKey,
  checkNode,
  checkPort,
  checkPostgres,
  checkTemporal,
  checkWorker,
} from './startup/doctor/doctorChecks.js';
import { checkLogin } from './startup/doctor/doctorLogin.js';
import { checkRetention } from './startup/doctor/doctorRetention.js';
import { checkSecretKey, findDatabaseUrl } from './startup/doctor/doctorSecretKey.js';
import { inspectService } from './startup/inspect.js';

/** Looks at what usually stands in the way, a line each with the remedy. Exit code 1 when something does. */
await runMain(async () => {
  readCommandLine('Usage: npm run doctor', {});
  const config = loadConfig();
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
  for (const { what, ok, text } of findings)
    process.stdout.write(`  ${ok ? '✓' : '✗'} ${what.padEnd(10)} ${text}\n`);
  process.exitCode = findings.every(({ ok }) => ok) ? 0 : 1;
});
