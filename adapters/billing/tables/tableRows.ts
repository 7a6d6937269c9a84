import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from '../fileSummary.js';
import { readTable } from './readTable.js';
import type { TableSource } from './tableSource.js';

/** A table's rows, as `readBillingFile`. */
export async function* readTableRows(
  table: TableSource,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const reader = readTable(table, options);
  for (;;) {
    const next = await reader.next();
    if (next.done) return notes.summary(next.value.format, new Set(), next.value.leftOut);
    for (const row of next.value) {
      notes.row(row);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    yield next.value.map((row) => ({ row, copy: 0 }));
  }
}
