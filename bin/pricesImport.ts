import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { importPrices } from './startup/prices/priceImport.js';
import { readPriceImportArguments } from './startup/prices/priceImportArguments.js';
import { withToolDatabase } from './startup/toolDatabase.js';

/** Imports list prices from a public collection, after showing what they would change. */
await runMain(async () => {
  const args = readPriceImportArguments(process.argv.slice(2));
  await withToolDatabase(loadConfig(), (database) =>
    importPrices(database, args, {
      input: process.stdin,
      output: process.stdout,
      isInteractive: process.stdin.isTTY === true,
    }),
  );
});
