import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { runProgram } from './terminal/program.js';
import type { Terminal } from './terminal/terminal.js';

/** The command line. Exit codes: 0 done, 1 findings or failure, 2 wrong use. */
await runMain(async () => {
  const terminal: Terminal = {
    readConfig: loadConfig,
    input: process.stdin,
    output: process.stdout,
    isInteractive: process.stdin.isTTY === true,
    now: () => new Date(),
    exitCode: 0,
  };
  await runProgram(process.argv.slice(2), terminal);
  process.exitCode = terminal.exitCode;
});
