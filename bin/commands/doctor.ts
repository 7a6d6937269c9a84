import { Command } from 'commander';
import { diagnose } from '../service/doctorChecks.js';
import { jsonOption, print, printJson, type Terminal } from '../terminal/terminal.js';

/** Prints a line for each check, with the remedy. Exit code 1 when a check fails. */
export function command(terminal: Terminal): Command {
  return new Command('doctor').addOption(jsonOption()).action(async ({ json }: { json?: boolean }) => {
    const findings = await diagnose(terminal.readConfig());
    if (json) printJson(terminal, findings);
    else
      for (const { what, ok, text } of findings)
        print(terminal, `  ${ok ? '✓' : '✗'} ${what.padEnd(10)} ${text}`);
    if (!findings.every(({ ok }) => ok)) terminal.exitCode = 1;
  });
}
