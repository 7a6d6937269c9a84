import { Command } from 'commander';
import { diagnose } from '../service/doctorChecks.js';
import { jsonOption, print, printJson, type Terminal } from '../terminal/terminal.js';

/** A line for each thing, with the remedy. Exit code 1 when something is wrong. */
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
