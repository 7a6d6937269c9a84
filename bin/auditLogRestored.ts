import { loadConfig } from '../platform/config.js';
import { MonthlyLines } from '../platform/monthlyLines.js';
import { runMain } from '../platform/processMain.js';
import { StartError } from '../platform/startError.js';
import { acceptRestore } from './startup/auditLog/acceptRestore.js';
import { readAnchors } from './startup/auditLog/auditLogVerify.js';
import { misused, readCommandLine } from './startup/commandLine.js';
import { findSecretKeys } from './startup/secretKeys.js';
import { withToolDatabase } from './startup/toolDatabase.js';

const USAGE = `Usage: npm run audit-log:restored -- --because TEXT     the database was restored, or a replica took over, and rows are lost`;

/** Says that rows of the audit log were lost in good faith, by other means than npm run restore. */
await runMain(async () => {
  const because = readReason();
  const config = loadConfig();
  const keys = findSecretKeys(config);
  if (!keys) throw new StartError('There is no secret key to sign with: run npm start once.');
  const anchors = await readAnchors(config.auditAnchorDir, false, keys);
  const files = new MonthlyLines(config.auditAnchorDir);
  const sentences = await withToolDatabase(config, (database) =>
    acceptRestore(database, keys, { anchors, files, because }),
  );
  const said = sentences.length > 0 ? sentences : ['Every log agrees with its anchors: nothing is lost.'];
  process.stdout.write(`${said.join('\n')}\n`);
});

function readReason(): string {
  const { values, positionals } = readCommandLine(USAGE, {
    options: { because: { type: 'string' } },
    allowPositionals: true,
  });
  const because = values.because?.trim() ?? '';
  if (because === '' || positionals.length > 0) throw misused('Say why rows are lost.', USAGE);
  return because;
}
