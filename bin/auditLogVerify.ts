import { resolve } from 'node:path';
import { microsFromDate } from '../domain/period.js';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { reportAuditLogs } from './startup/auditLog/auditLogReport.js';
import { readAnchors, verifyAuditLogs } from './startup/auditLog/auditLogVerify.js';
import { misused, readCommandLine } from './startup/commandLine.js';
import { chooseOrganization } from './startup/organization.js';
import { findSecretKeys } from './startup/secretKeys.js';
import { withToolDatabase } from './startup/toolDatabase.js';

const USAGE = `Usage: npm run audit-log:verify                        every organization, against the anchors of this installation
       npm run audit-log:verify -- --org ORG           one of them, by id or name
       npm run audit-log:verify -- --anchors PATH      against a file or folder of anchors, or a log of the service
       npm run audit-log:verify -- --strict            exit code 1 also when something could not be checked`;

/** Checks that the audit log is as it was written. Exit code 1 when it is not. */
await runMain(async () => {
  const asked = readArguments();
  const config = loadConfig();
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
  const { lines, findings, isPartial } = reportAuditLogs(verified, microsFromDate(new Date()));
  process.stdout.write(`${lines.join('\n')}\n`);
  if (findings > 0 || (asked.strict && isPartial)) process.exitCode = 1;
});

function readArguments(): { org: string | undefined; anchors: string | undefined; strict: boolean } {
  const { values, positionals } = readCommandLine(USAGE, {
    options: {
      org: { type: 'string' },
      anchors: { type: 'string' },
      strict: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  if (positionals.length > 0) throw misused(`${positionals[0]} is not understood.`, USAGE);
  return { org: values.org, anchors: values.anchors, strict: values.strict };
}
