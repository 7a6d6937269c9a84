import { describe, expect, it } from 'vitest';
import { type InvoiceKindName, judgeInvoices } from '../../../lab/invoices/judge.js';
import { missedTargets } from '../../../lab/invoices/report.js';

/** Documents of the seed. Fewer are scanned, since recognition takes seconds for a page. */
const COUNTS: Partial<Record<InvoiceKindName, number>> = { digital: 80, scan200: 16, scan300: 8 };

describe.each(['first', 'second'] as const)('invoices of the %s generator', (generator) => {
  it.each(Object.entries(COUNTS) as [InvoiceKindName, number][])(
    'reach the targets as %s, without a wrong total accepted',
    async (kind, count) => {
      const set = await judgeInvoices({ generator, kind, seeds: [3], count });
      expect(set.invoices.length).toBe(count);
      expect(missedTargets([set])).toEqual([]);
    },
    1_800_000,
  );
});
