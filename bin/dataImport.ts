import { resolve } from 'node:path';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { endOnSignal } from './startup/backup/endOnSignal.js';
import { importFromFile } from './startup/backup/importFile.js';
import { inSeconds, inWords } from './startup/backup/words.js';
import { readCommandLine, readOneFile } from './startup/commandLine.js';

const USAGE = 'Usage: npm run data:import -- FILE';

/** Brings an export into an empty database, that of DATABASE_URL or a new embedded one. */
await runMain(async () => {
  const { positionals } = readCommandLine(USAGE, { allowPositionals: true });
  const file = resolve(readOneFile(positionals, USAGE));
  endOnSignal();
  const began = performance.now();
  const config = loadConfig();
  const { header, books, rows } = await importFromFile(config, file);
  const keys =
    config.databaseUrl === undefined
      ? `copy admin-key and secret-key of the old DATA_DIR into ${config.dataDir}, then npm start`
      : 'set TRUEUP_SECRET_KEY to what the old installation had (the text of its secret-key), then start';
  const lines = [
    `Imported ${rows.toLocaleString('en-US')} rows in ${inSeconds(performance.now() - began)}, written ${header.created_at} from Postgres ${header.postgres_version}.`,
    `  books: ${inWords(books)}, as where they came from`,
    `  Next: ${keys}.`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
});
