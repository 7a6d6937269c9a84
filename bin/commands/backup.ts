import { Command } from 'commander';
import { type TakenBackup, takeBackup } from '../backup/takeBackup.js';
import { describeBooks, endOnSignal, inBytes, inSeconds } from '../backup/words.js';
import { print, type Terminal } from '../terminal/terminal.js';

/** Backs an installation with an embedded Postgres up into one file, running or not. */
export function command(terminal: Terminal): Command {
  return new Command('backup')
    .option('--to <path>', 'file or folder (backups in DATA_DIR)')
    .action(async ({ to }: { to?: string }) => {
      endOnSignal();
      const { archive, manifest, files } = await takeBackup(terminal.readConfig(), to);
      const keys = files.includes('secret-key')
        ? 'It contains the keys too (secret-key, admin-key), which open everything. Keep it elsewhere, under lock.'
        : 'It holds no secret-key: keep TRUEUP_SECRET_KEY apart from it. Whoever has the file has all data: keep it elsewhere, under lock.';
      const lines = [
        archive.path,
        `  ${inBytes(archive.sizeBytes)} (${inBytes(manifest.content_bytes)} unpacked) in ${inSeconds(manifest.took_ms)}, sha256 ${archive.sha256}`,
        `  books at ${manifest.books.at}: ${describeBooks(manifest.books.organizations)}`,
        describeBlobs(manifest.blobs),
        `  ${keys}`,
        `  Back again: ./trueup restore ${archive.path} --into FOLDER`,
      ];
      print(terminal, lines.join('\n'));
    });
}

function describeBlobs(blobs: TakenBackup['manifest']['blobs']): string {
  if (blobs && 'bucket' in blobs)
    return `  It does not hold uploaded files: they are in ${blobs.bucket}, whose versions and copies are yours to keep.`;
  const { files = 0, bytes = 0 } = blobs ?? {};
  return `  ${files} uploaded file${files === 1 ? '' : 's'}, ${inBytes(bytes)}`;
}
