import { resolve } from 'node:path';
import { type Config, loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { endOnSignal } from './startup/backup/endOnSignal.js';
import { restoreBackup } from './startup/backup/restoreBackup.js';
import { restoreReport } from './startup/backup/restoreReport.js';
import { readCommandLine, readOneFile } from './startup/commandLine.js';

const USAGE = 'Usage: npm run restore -- FILE [--into DATA_DIR] [--replace]';

/** Brings a backup back. Exit code 1 when its books are not those that it was taken with. */
await runMain(async () => {
  endOnSignal();
  const config = loadConfig();
  const options = readArguments(config);
  const restored = await restoreBackup(config, options);
  process.stdout.write(`${restoreReport(restored, options.dataDir, config.dataDir)}\n`);
  if (restored.books.differences.length > 0) process.exitCode = 1;
});

function readArguments(config: Config) {
  const { values, positionals } = readCommandLine(USAGE, {
    options: { into: { type: 'string' }, replace: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const file = resolve(readOneFile(positionals, USAGE));
  const dataDir = values.into === undefined ? config.dataDir : resolve(values.into);
  return { file, dataDir, replace: values.replace };
}
