import { describe, expect, it } from 'vitest';
import { judgeInvoices } from '../../../lab/invoices/judge.js';
import { missedTargets } from '../../../lab/invoices/report.js';

/** A document of each of six suppliers; a page takes about two seconds. */
const COUNT = 6;

describe('scans of the second generator', () => {
  it.each(['scan200', 'scan300'] as const)(
    'reach the targets as %s, without a wrong total accepted',
    async (kind) => {
      const set = await judgeInvoices({ generator: 'second', kind, seeds: [3], count: COUNT });
      expect(set.invoices.length).toBe(COUNT);
      expect(missedTargets([set])).toEqual([]);
    },
    300_000,
  );
});
