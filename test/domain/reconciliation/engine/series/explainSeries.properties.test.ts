import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { propertyRuns } from '../../../../support/propertyRuns.js';
import { BOOK } from '../../support.js';
import { type Lines, seriesOf } from './support.js';

const RUNS = propertyRuns(10);
const PRICES = { agreed: BOOK, list: BOOK };
const reconcile = (days: readonly DayInput[]) => reconcileDays('openai', days, PRICES, DEFAULT_WEIGHTS, []);

/** A stretch of days on which a class is counted or charged otherwise, in percent. */
const changes = fc.array(
  fc.record({
    first: fc.integer({ min: 0, max: 11 }),
    length: fc.integer({ min: 1, max: 8 }),
    tokenClass: fc.constantFrom<keyof Lines>('input', 'cache_read', 'output'),
    quantity: fc.constantFrom(100n, 100n, 50n, 130n, 200n),
    amount: fc.constantFrom(100n, 10n, 50n, 150n, 200n, 1000n, 137n),
    seen: fc.constantFrom(1, 1, 0.6, 1.2),
  }),
  { maxLength: 3 },
);

const series = changes.map((all) => {
  const at = (day: number) => all.filter(({ first, length }) => day >= first && day < first + length);
  return seriesOf({
    days: 12,
    bill: (right, day) => {
      const lines = { ...right };
      for (const { tokenClass, quantity, amount } of at(day)) {
        const line = lines[tokenClass];
        lines[tokenClass] = {
          quantity: (line.quantity * quantity) / 100n,
          amountPico: (line.amountPico * quantity * amount) / 10_000n,
        };
      }
      return lines;
    },
    seen: (whole, day) => {
      const use = { ...whole };
      for (const { tokenClass, seen } of at(day)) use[tokenClass] = Math.round(use[tokenClass] * seen);
      return use;
    },
  });
});

describe('for any bills of a series', () => {
  it('a finding’s days sum to it, and each is rate + volume + own pricing, to the pico-dollar', () => {
    fc.assert(
      fc.property(series, (days) => {
        for (const finding of reconcile(days).findings) {
          for (const day of finding.days) {
            expect(day.ratePico + day.volumePico + day.ownPricingPico).toBe(day.impactPico);
            expect(day.billedPico - day.expectedPico).toBe(day.impactPico);
          }
          expect(finding.days.reduce((sum, day) => sum + day.impactPico, 0n)).toBe(finding.impactPico);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('nothing is found twice: the findings of a day never come to more than was billed differently', () => {
    fc.assert(
      fc.property(series, (days) => {
        const { findings, explanations } = reconcile(days);
        for (const { days: explained } of explanations) {
          for (const { day, billedPico, explainedPico, unexplainedPico } of explained) {
            const found = findings
              .flatMap((one) => one.days)
              .filter((one) => one.day === day)
              .reduce(
                (sum, one) => ({ impact: sum.impact + one.impactPico, billed: sum.billed + one.billedPico }),
                {
                  impact: 0n,
                  billed: 0n,
                },
              );
            expect(found.impact).toBe(explainedPico + unexplainedPico);
            expect(found.billed <= billedPico).toBe(true);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('the order of days and cells changes nothing, and a second run is equal to the last bit', () => {
    fc.assert(
      fc.property(series, (days) => {
        const turned = [...days].reverse().map((day) => ({
          ...day,
          billed: [...day.billed].reverse(),
          observed: [...day.observed].reverse(),
        }));
        const first = reconcile(days);
        expect(reconcile(turned)).toEqual(first);
        expect(reconcile(days)).toEqual(first);
      }),
      { numRuns: RUNS },
    );
  });
});
