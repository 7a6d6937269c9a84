import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { endOnSignal } from './startup/backup/endOnSignal.js';
import { takeBackup } from './startup/backup/takeBackup.js';
import { inBytes, inSeconds, inWords } from './startup/backup/words.js';
import { readCommandLine } from './startup/commandLine.js';

const USAGE = 'Usage: npm run backup [-- --to FILE_OR_FOLDER]';

/** Backs an installation with an embedded Postgres up into one file, running or not. */
await runMain(async () => {
  const { values } = readCommandLine(USAGE, { options: { to: { type: 'string' } } });
  endOnSignal();
  const { archive, manifest, files } = await takeBackup(loadConfig(), values.to);
  const keys = files.includes('secret-key')
    ? 'It holds the keys too (secret-key, admin-key): whoever has it has everything. Keep it elsewhere, under lock.'
    : 'It holds no secret-key: keep TRUEUP_SECRET_KEY apart from it. Whoever has the file has all data: keep it elsewhere, under lock.';
  const lines = [
    archive.path,
    `  ${inBytes(archive.sizeBytes)} (${inBytes(manifest.content_bytes)} unpacked) in ${inSeconds(manifest.took_ms)}, sha256 ${archive.sha256}`,
    `  books at ${manifest.books.at}: ${inWords(manifest.books.organizations)}`,
    `  ${keys}`,
    `  Back again: npm run restore -- ${archive.path} --into FOLDER`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
});
