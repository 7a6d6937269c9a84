import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { microsFromDate } from '../../domain/period.js';
import { MonthlyLines } from '../../platform/monthlyLines.js';
import { Misuse, StartError } from '../../platform/startError.js';
import { acceptRestore, readAnchors, reportAuditLogs, verifyAuditLogs } from '../auditLog/verifyAuditLogs.js';
import { chooseOrganization, withToolDatabase } from '../service/toolDatabase.js';
import { print, type Terminal } from '../terminal/terminal.js';
import { findSecretKeys } from '../wiring/requirements.js';

interface VerifyOptions {
  org?: string;
  anchors?: string;
  strict?: boolean;
}

export function command(terminal: Terminal): Command {
  return new Command('audit-log')
    .addCommand(
      new Command('verify')
        .description('check that the audit log is as it was written')
        .option('--org <org>', 'one organization, by id or name (every one)')
        .option(
          '--anchors <path>',
          'a file or folder of anchors, or a log of the service (the anchors of this installation)',
        )
        .option('--strict', 'exit code 1 also when something could not be checked')
        .action((options: VerifyOptions) => verify(terminal, options)),
    )
    .addCommand(
      new Command('restored')
        .description('the database was restored, or a replica took over, and rows are lost in good faith')
        .addOption(
          new Option('--because <reason>', 'why rows are lost').argParser(readReason).makeOptionMandatory(),
        )
        .action(({ because }: { because: string }) => acceptLoss(terminal, because)),
    );
}

function readReason(text: string): string {
  if (text.trim() === '') throw new Misuse('Say why rows are lost.');
  return text.trim();
}

/** Verifies the audit log; exit code 1 when it was changed. */
async function verify(terminal: Terminal, asked: VerifyOptions): Promise<void> {
  const config = terminal.readConfig();
  const keys = findSecretKeys(config);
  const anchors = await readAnchors(
    asked.anchors === undefined ? config.auditAnchorDir : resolve(asked.anchors),
    asked.anchors !== undefined,
    keys,
  );
  const verified = await withToolDatabase(config, async (database) => {
    const orgId = asked.org === undefined ? undefined : await chooseOrganization(database, asked.org);
    return verifyAuditLogs(database, { orgId, anchors, keys });
  });
  const { lines, findings, isPartial } = reportAuditLogs(verified, microsFromDate(terminal.now()));
  print(terminal, lines.join('\n'));
  if (findings > 0 || (asked.strict && isPartial)) terminal.exitCode = 1;
}

/** Records that rows of the audit log were lost legitimately, by other means than `trueup restore`. */
async function acceptLoss(terminal: Terminal, because: string): Promise<void> {
  const config = terminal.readConfig();
  const keys = findSecretKeys(config);
  if (!keys) throw new StartError('There is no secret key to sign with: run npm start once.');
  const anchors = await readAnchors(config.auditAnchorDir, false, keys);
  const files = new MonthlyLines(config.auditAnchorDir);
  const sentences = await withToolDatabase(config, (database) =>
    acceptRestore(database, keys, { anchors, files, because }),
  );
  const said = sentences.length > 0 ? sentences : ['Every log agrees with its anchors: nothing is lost.'];
  print(terminal, said.join('\n'));
}
