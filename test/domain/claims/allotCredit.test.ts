import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allotCredit } from '../../../domain/claims/financialSummary.js';
import { PICO_PER_USD } from '../../../domain/money.js';
import { testSeed } from '../../fakes/seededRandom.js';

const CENT = PICO_PER_USD / 100n;
const PARAMETERS = { seed: testSeed(), numRuns: 1_000 };

const months = fc.uniqueArray(
  fc.record({
    month: fc.constantFrom('2026-01', '2026-02', '2026-03', '2026-04'),
    impactPico: fc.bigInt({ min: -PICO_PER_USD, max: 900n * PICO_PER_USD }),
  }),
  { minLength: 1, selector: ({ month }) => month },
);

describe('a claim’s credit', () => {
  it('falls on its months in proportion to what was claimed of each', () => {
    const parts = allotCredit(9_000, [
      { month: '2026-04', impactPico: 25n * PICO_PER_USD },
      { month: '2026-03', impactPico: 75n * PICO_PER_USD },
    ]);
    expect([...parts]).toEqual([
      ['2026-03', 6_750n * CENT],
      ['2026-04', 2_250n * CENT],
    ]);
  });

  it('sums to itself whatever the months and their order', () => {
    fc.assert(
      fc.property(months, fc.integer({ min: 1, max: 10_000_000 }), (claimed, cents) => {
        fc.pre(claimed.some(({ impactPico }) => impactPico > 0n));
        const parts = allotCredit(cents, claimed);
        expect([...parts.values()].reduce((sum, part) => sum + part, 0n)).toBe(BigInt(cents) * CENT);
        for (const part of parts.values()) expect(part).toBeGreaterThanOrEqual(0n);
        for (const { month, impactPico } of claimed)
          if (impactPico <= 0n) expect(parts.has(month)).toBe(false);
        expect(allotCredit(cents, [...claimed].reverse())).toEqual(parts);
      }),
      PARAMETERS,
    );
  });
});
