import { Command } from 'commander';
import { reportOf, verifyFile } from '../evidence/verifyPack.js';
import { jsonOption, printJson, type Terminal } from '../terminal/terminal.js';

/** Verifies a pack of evidence offline: no database, no network, no settings. Exit code 1 when it is not valid. */
export function command(terminal: Terminal): Command {
  return new Command('evidence').addCommand(
    new Command('verify')
      .description('work the amounts of a claim out again from its evidence pack')
      .argument('<pack>', 'a file evidence.tar.gz of a claim')
      .addOption(jsonOption())
      .action((pack: string, { json }: { json?: boolean }) => {
        const verified = verifyFile(pack);
        const { claim = null, checks, differences } = verified;
        if (json)
          printJson(terminal, {
            claim,
            checks,
            differences: differences.map(({ file, line = null, message }) => ({ file, line, message })),
          });
        else terminal.output.write(reportOf(verified));
        if (differences.length > 0) terminal.exitCode = 1;
      }),
  );
}
