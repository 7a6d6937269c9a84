import { newUuid } from '../db/newUuid.js';
import { OrgDb } from '../db/orgDb.js';
import { microsFromDate } from '../domain/period.js';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { readBillArguments } from './startup/bills/billArguments.js';
import { importBillFile, readSummary } from './startup/bills/billFile.js';
import { chooseOrganization } from './startup/organization.js';
import { withToolDatabase } from './startup/toolDatabase.js';

/** Imports a provider's bill from a file, by the same path as the API: stored at once, read by the worker. */
await runMain(async () => {
  const { provider, format, account, fxRate, org, file } = readBillArguments(process.argv.slice(2));
  const outcome = await withToolDatabase(loadConfig(), async (database) => {
    const orgDb = new OrgDb(database, await chooseOrganization(database, org));
    const importId = newUuid(microsFromDate(new Date()));
    return importBillFile(orgDb, importId, file, {
      provider,
      declaredFormat: format,
      declaredAccount: account,
      declaredFxRate: fxRate,
    });
  });
  process.stdout.write(`${readSummary(outcome)}\n`);
  if (outcome.status === 'failed') process.exitCode = 1;
});
