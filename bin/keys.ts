import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readKeyArguments } from './startup/keyArguments.js';
import { runKeyCommand } from './startup/keyCommands.js';

/** Makes, lists, rotates, revokes and checks keys. A key is printed once: only its digest is stored. */
await runMain(async () => {
  const asked = readKeyArguments(process.argv.slice(2));
  process.stdout.write(`${await runKeyCommand(loadConfig, asked)}\n`);
});
