import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextMonth, previousMonth } from '../../../domain/billing/periods.js';
import { summarizeMonth } from '../../../domain/reconciliation/summary.js';

describe('a month’s summary', () => {
  it('foots: the four grades sum to matched + unmatched, which is the bill', () => {
    const pico = fc.bigInt({ min: 0n, max: 10n ** 20n });
    fc.assert(
      fc.property(pico, pico, pico, pico, pico, (HIGH, MEDIUM, LOW, UNVERIFIED, unmatched) => {
        const billed = HIGH + MEDIUM + LOW + UNVERIFIED + unmatched;
        const { matchedPico, unmatchedPico, distribution } = summarizeMonth('2026-10', billed, {
          HIGH,
          MEDIUM,
          LOW,
          UNVERIFIED,
        });
        expect(matchedPico + unmatchedPico).toBe(billed);
        expect(Object.values(distribution).reduce((sum, value) => sum + value, 0n)).toBe(billed);
        expect(unmatchedPico).toBe(unmatched);
        expect(distribution.UNVERIFIED).toBe(UNVERIFIED + unmatched);
      }),
    );
  });

  it('has all four keys, also when nothing is matched', () => {
    expect(summarizeMonth('2026-10', 5n, {}).distribution).toEqual({
      HIGH: 0n,
      MEDIUM: 0n,
      LOW: 0n,
      UNVERIFIED: 5n,
    });
  });
});

describe('months', () => {
  it('follow one another over the turn of a year', () => {
    expect([
      previousMonth('2026-01-15'),
      previousMonth('2026-11-20'),
      nextMonth('2026-12-01'),
      nextMonth('2026-02-01'),
    ]).toEqual(['2025-12-01', '2026-10-01', '2027-01-01', '2026-03-01']);
  });
});
