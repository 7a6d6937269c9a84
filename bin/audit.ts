import { OrgDb } from '../db/orgDb.js';
import { microsFromDate } from '../domain/period.js';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readAuditArguments } from './startup/bills/auditArguments.js';
import { runAudit } from './startup/bills/runAudit.js';
import { chooseOrganization } from './startup/organization.js';
import { withToolDatabase } from './startup/toolDatabase.js';

/** Prints which rates a provider charged, against list and contract, from its bills alone. */
await runMain(async () => {
  const asked = readAuditArguments(process.argv.slice(2));
  const { text, differs } = await withToolDatabase(loadConfig(), async (database) =>
    runAudit(
      new OrgDb(database, await chooseOrganization(database, asked.org)),
      asked,
      microsFromDate(new Date()),
    ),
  );
  process.stdout.write(text);
  if (differs && asked.failOnDifference) process.exitCode = 1;
});
