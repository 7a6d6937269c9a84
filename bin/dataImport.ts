import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { StartError } from '../platform/startError.js';
import { endOnSignal } from './startup/backup/endOnSignal.js';
import { importFromFile } from './startup/backup/importFile.js';
import { inSeconds, inWords } from './startup/backup/words.js';

const USAGE = 'Usage: npm run data:import -- FILE';

/** Brings an export into an empty database, that of DATABASE_URL or a new embedded one. */
await runMain(async () => {
  endOnSignal();
  const began = performance.now();
  const config = loadConfig();
  const { header, books, rows } = await importFromFile(config, readArguments());
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

function readArguments(): string {
  const [file, ...more] = parse();
  if (file === undefined || more.length > 0) throw new StartError(`Give one file.\n${USAGE}`);
  return resolve(file);
}

function parse(): string[] {
  try {
    return parseArgs({ allowPositionals: true }).positionals;
  } catch (error) {
    throw new StartError(`${(error as Error).message}\n${USAGE}`);
  }
}
