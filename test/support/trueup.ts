import { PassThrough } from 'node:stream';
import { runProgram } from '../../bin/terminal/program.js';
import type { Terminal } from '../../bin/terminal/terminal.js';
import { parseConfig } from '../../platform/config.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

export interface TrueupOptions {
  environment?: Record<string, string>;
  /** The input of the person; without it there is no terminal. */
  answer?: string | undefined;
  now?: Date;
}

/** Runs a command of ./trueup within this process; rejects with the sentence that it ends with. */
export async function runTrueup(
  words: readonly string[],
  { environment = {}, answer, now }: TrueupOptions = {},
): Promise<{ exit: number; output: string }> {
  const [input, written] = [new PassThrough(), new PassThrough()];
  let output = '';
  written.on('data', (text) => {
    output += text;
  });
  if (answer !== undefined) input.end(`${answer}\n`);
  const terminal: Terminal = {
    readConfig: () => parseConfig(environment, PROJECT_ROOT),
    input,
    output: written,
    isInteractive: answer !== undefined,
    now: () => now ?? new Date(),
    exitCode: 0,
  };
  await runProgram(words, terminal);
  return { exit: terminal.exitCode, output };
}
