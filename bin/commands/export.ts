import { Command } from 'commander';
import { exportToFile } from '../backup/dataFile.js';
import { describeBooks, endOnSignal, inBytes, inSeconds } from '../backup/words.js';
import { print, type Terminal } from '../terminal/terminal.js';
import { blobStoreOf } from '../wiring/outside.js';

/** Writes all data into one file that other major versions of Postgres read, embedded or not. */
export function command(terminal: Terminal): Command {
  return new Command('export').addCommand(
    new Command('data')
      .description('write all data into one file, for another major version of Postgres')
      .option('--to <path>', 'file or folder (backups in DATA_DIR)')
      .action(({ to }: { to?: string }) => exportAll(terminal, to)),
  );
}

async function exportAll(terminal: Terminal, to: string | undefined): Promise<void> {
  endOnSignal();
  const began = performance.now();
  const config = terminal.readConfig();
  const { archive, outcome, blobs } = await exportToFile(config, to);
  const rows = outcome.tables.reduce((sum, table) => sum + table.rows, 0);
  const lines = [
    archive.path,
    `  ${inBytes(archive.sizeBytes)}, ${rows.toLocaleString('en-US')} rows of ${outcome.tables.length} tables in ${inSeconds(performance.now() - began)}, sha256 ${archive.sha256}`,
    `  books at ${outcome.books.at}: ${describeBooks(outcome.books.organizations)}`,
    blobs === undefined
      ? `  It does not hold uploaded files: they stay in ${blobStoreOf(config).place}, for the new installation to use.`
      : `  ${blobs} uploaded file${blobs === 1 ? '' : 's'}`,
    '  It holds all data, and provider credentials sealed: the secret key that opens them is not in it. Take it along.',
    `  Into an empty database: ./trueup import data ${archive.path}`,
  ];
  print(terminal, lines.join('\n'));
}
