import { describe, expect, it } from 'vitest';
import { judgeInvoices } from '../../../lab/invoices/judge.js';
import { missedTargets } from '../../../lab/invoices/report.js';

describe('generated invoices', () => {
  it.each([
    ['first', 2],
    ['second', 1],
  ] as const)('of the %s generator are read as printed', async (generator, seed) => {
    const set = await judgeInvoices({ generator, kind: 'digital', seeds: [seed], count: 4 });
    expect(set.invoices.length).toBe(4);
    expect(missedTargets([set])).toEqual([]);
  });

  it('are read as printed from a scan', async () => {
    const set = await judgeInvoices({ generator: 'second', kind: 'scan200', seeds: [1], count: 1 });
    expect(set.invoices.length).toBe(1);
    expect(missedTargets([set])).toEqual([]);
  });
});
