import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { misused, readCommandLine } from './startup/commandLine.js';
import { rotateSecrets } from './startup/rotateSecrets.js';
import { withToolDatabase } from './startup/toolDatabase.js';

const USAGE = `Usage: npm run secrets:rotate                            seals all stored secrets under a new key
       npm run secrets:rotate -- --forget-unreadable     and gives up those that no key opens`;

/** Changes the key that seals the providers' credentials. Prints no key. */
await runMain(async () => {
  const forgetUnreadable = readArguments();
  const config = loadConfig();
  const outcome = await withToolDatabase(config, (database) =>
    rotateSecrets(config, database, forgetUnreadable),
  );
  process.stdout.write(`${outcome.sentences.join('\n')}\n`);
  if (!outcome.isWhole) process.exitCode = 1;
});

function readArguments(): boolean {
  const { values, positionals } = readCommandLine(USAGE, {
    options: { 'forget-unreadable': { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  if (positionals.length !== 1 || positionals[0] !== 'rotate') throw misused('what is to be done?', USAGE);
  return values['forget-unreadable'];
}
