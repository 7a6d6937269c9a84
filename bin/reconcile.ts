import { OrgDb } from '../db/orgDb.js';
import { microsFromDate } from '../domain/period.js';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readReconcileArguments } from './startup/bills/reconcileArguments.js';
import { runReconcile } from './startup/bills/runReconcile.js';
import { chooseOrganization } from './startup/organization.js';
import { withToolDatabase } from './startup/toolDatabase.js';

/** Prints what is wrong between a provider's bills and the calls of the same days, and stores nothing. */
await runMain(async () => {
  const asked = readReconcileArguments(process.argv.slice(2));
  const { text, asksForAction } = await withToolDatabase(loadConfig(), async (database) =>
    runReconcile(
      new OrgDb(database, await chooseOrganization(database, asked.org)),
      asked,
      microsFromDate(new Date()),
    ),
  );
  process.stdout.write(text);
  if (asksForAction && asked.failOnFinding) process.exitCode = 1;
});
