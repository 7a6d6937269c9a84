import { sumBooks } from '../../../usecases/installation/backup/bookTotals.js';
import { hasOurSchema } from './archiveHeader.js';
import type { RestoredInstallation } from './restoreBackup.js';
import { inSeconds, inWords } from './words.js';

/** What a person is told of a restore: where it is, what the books say, what to do next. */
export function restoreReport(restored: RestoredInstallation, dataDir: string, usualDataDir: string): string {
  const { header, manifest, books, aside, keyProblem } = restored;
  const then = manifest.books;
  const lines = [
    `Restored ${dataDir} in ${inSeconds(restored.tookMs)}: the backup of ${header.created_at} by Trueup ${header.trueup_version}, every file as its manifest says.`,
    `  books at ${then.at}: ${inWords(then.organizations)}`,
    `  restored:                          ${inWords(books.now)}`,
    ...moreSince(restored),
  ];
  if (books.differences.length > 0)
    lines.push(
      '  The books differ. The data is in place; keep the backup, and report this:',
      ...books.differences,
    );
  else lines.push('  The events of that moment add up to the same, and so do the totals of now.');
  if (!hasOurSchema(header)) lines.push('  It is of an earlier version: npm start brings it up to date.');
  if (aside !== undefined) lines.push(`  What was there before lies in ${aside}.`);
  if (keyProblem !== undefined) lines.push(`  Secret key: ${keyProblem}`);
  const start = dataDir === usualDataDir ? 'npm start' : `DATA_DIR=${dataDir} npm start`;
  lines.push(`  Next: ${start}. Runs that were under way go on by themselves.`);
  return lines.join('\n');
}

/** What was committed between the reading of the books and the backup's end. */
function moreSince({ manifest, books }: RestoredInstallation): string[] {
  const [then, now] = [sumBooks(manifest.books.organizations), sumBooks(books.now)];
  const lines: string[] = [];
  const more = now.calls - then.calls;
  if (more !== 0 || now.costUsd !== then.costUsd)
    lines.push(`  ${more} calls more came between that moment and the backup's end at ${manifest.stop_lsn}.`);
  if (now.billedUsd === null || then.billedUsd === null || now.billedUsd === then.billedUsd) return lines;
  if (!manifest.billed_settled)
    lines.push('  Bills were being stored while the backup ran: what they add up to is of its end.');
  return lines;
}
