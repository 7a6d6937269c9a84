import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { DomainError } from '../../../domain/errors.js';
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
  const currencies = new Set<string>();
  for (;;) {
    const next = await reader.next();
    if (next.done) {
      for (const { day, account } of next.value.covered)
        notes.cover({ day, account, feed: 'cost', report: '' });
      return notes.summary(next.value.format, new Set(), next.value.leftOut);
    }
    for (const row of next.value) {
      notes.row(row);
      if (options.fxRate) assertOneCurrency(row, currencies);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    yield next.value.map((row) => ({ row, copy: 0 }));
  }
}

/** One rate converts one currency: the amounts of another would be wrong without a word. */
function assertOneCurrency({ currency }: BilledRow, seen: Set<string>): void {
  if (currency === null || currency === 'USD') return;
  seen.add(currency);
  if (seen.size === 1) return;
  throw new DomainError(
    'invalid_billing_file',
    `the bill is in ${[...seen].join(' and ')}, which one fx_rate cannot convert; import it without fx_rate, or each currency in a file of its own`,
  );
}
