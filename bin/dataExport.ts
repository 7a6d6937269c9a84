import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { endOnSignal } from './startup/backup/endOnSignal.js';
import { exportToFile } from './startup/backup/exportFile.js';
import { inBytes, inSeconds, inWords } from './startup/backup/words.js';
import { readCommandLine } from './startup/commandLine.js';

const USAGE = 'Usage: npm run data:export [-- --to FILE_OR_FOLDER]';

/** Writes all data into one file that another major version of Postgres reads, embedded or not. */
await runMain(async () => {
  const { values } = readCommandLine(USAGE, { options: { to: { type: 'string' } } });
  endOnSignal();
  const began = performance.now();
  const { archive, outcome } = await exportToFile(loadConfig(), values.to);
  const rows = outcome.tables.reduce((sum, table) => sum + table.rows, 0);
  const lines = [
    archive.path,
    `  ${inBytes(archive.sizeBytes)}, ${rows.toLocaleString('en-US')} rows of ${outcome.tables.length} tables in ${inSeconds(performance.now() - began)}, sha256 ${archive.sha256}`,
    `  books at ${outcome.books.at}: ${inWords(outcome.books.organizations)}`,
    '  It holds all data, and provider credentials sealed: the secret key that opens them is not in it. Take it along.',
    `  Into an empty database: npm run data:import -- ${archive.path}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
});
