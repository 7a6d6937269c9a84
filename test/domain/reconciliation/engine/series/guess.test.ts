import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isGuess } from '../../../../../domain/reconciliation/engine/series/doubts.js';
import { GATES, type Gate } from '../../../../../domain/reconciliation/engine/series/finding.js';
import type { RunOfDays } from '../../../../../domain/reconciliation/engine/series/judge.js';

import { findingsOf, isBetween, linesFor, part } from './support.js';

/** A run as far as the rule reads it: the share of calls seen under which the explanation fits each day. */
const runOf = (coverages: readonly number[]): RunOfDays =>
  ({
    days: coverages.map((coverage) => ({ judged: { shown: { fit: { coverage } } } })),
  }) as unknown as RunOfDays;

const LEAVES: Gate = 'residual_within_tolerance';
const gates = fc.subarray([...GATES]);
const coverage = fc.double({ min: 0.1, max: 1.2, noNaN: true });
const coverages = fc.array(coverage, { minLength: 1, maxLength: 12 });

describe('an explanation is a guess', () => {
  it('only where it leaves too much over, whatever else is missing and however few calls were seen', () => {
    fc.assert(
      fc.property(coverages, gates, coverage, (seen, missing, usual) => {
        const others = missing.filter((gate) => gate !== LEAVES);
        expect(isGuess(runOf(seen), others, usual)).toBe(false);
      }),
    );
  });

  it('where it does and the next one is hardly further', () => {
    fc.assert(
      fc.property(coverages, coverage, (seen, usual) => {
        expect(isGuess(runOf(seen), [LEAVES, 'odds_against_next'], usual)).toBe(true);
      }),
    );
  });

  it('where it does and needs a fifth of the usual calls, or more, to be missing on most of its days', () => {
    fc.assert(
      fc.property(fc.nat({ max: 8 }), fc.nat({ max: 8 }), coverage, (short, others, usual) => {
        fc.pre(short + others > 0);
        const seen = [...Array(short).fill(usual * 0.79), ...Array(others).fill(usual * 0.81)];
        expect(isGuess(runOf(seen), [LEAVES], usual)).toBe(short > others);
      }),
    );
  });

  it('and is then LOW at most', () => {
    let guesses = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.double({ min: 0.7, max: 1.3, noNaN: true }),
        fc.double({ min: 0.5, max: 0.75, noNaN: true }),
        (days, doubled, seen) => {
          const isOn = (at: number) => isBetween(at, 4, 3 + days);
          const findings = findingsOf({
            bill: (lines, at, use) =>
              isOn(at)
                ? linesFor({ ...use, input: use.input + Math.round(use.cache_read * doubled) })
                : lines,
            seen: (use, at) => (isOn(at) ? part(use, seen) : use),
          });
          for (const { missing, grade, probability } of findings) {
            // More than a fifth of the calls is missing on all of its days.
            if (!missing.includes(LEAVES)) continue;
            guesses += 1;
            expect(probability).toBeLessThan(0.8);
            expect(grade).not.toBe('MEDIUM');
          }
        },
      ),
      { numRuns: 60, seed: 11 },
    );
    expect(guesses).toBeGreaterThan(0);
  });
});
