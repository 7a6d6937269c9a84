import { describe, expect, it } from 'vitest';
import { microsOfDay, shiftDay } from '../../../../../domain/period.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { ACCOUNT, aCoveredAccount, aDay, BOOK } from '../../support.js';
import { calls, lines } from './support.js';

const START = '2026-10-20';
const CLASSES = ['input', 'cache_read', 'output'] as const;
type Use = Record<(typeof CLASSES)[number], number>;

/** Each day its own use; on the first of the month that of the day before is billed again. */
function findingsWith(useOf: (at: number) => Use): Finding[] {
  const days = Array.from({ length: 20 }, (_, at) => {
    const day = shiftDay(START, at);
    const [use, before] = [useOf(at), useOf(at - 1)];
    const twice = Object.fromEntries(CLASSES.map((name) => [name, use[name] + before[name]]));
    return aDay({
      day,
      nowMicros: microsOfDay(day) + 90n * 86_400_000_000n,
      covered: [aCoveredAccount({ fetchedAtMicros: microsOfDay(day) + 80n * 86_400_000_000n })],
      observedSince: new Map([[ACCOUNT, microsOfDay(START) - 86_400_000_000n]]),
      billed: lines(day.endsWith('-01') ? twice : use, {}, {}, { day }),
      observed: [calls(use, { calls: 500, serviceTier: 'default' }, { day })],
    });
  });
  return reconcileDays('openai', days, { agreed: BOOK, list: BOOK }, DEFAULT_WEIGHTS, []).findings;
}

const MEAN: Use = { input: 30_000_000, cache_read: 20_000_000, output: 5_000_000 };

describe('the last day of a month, billed again on the first of the next', () => {
  it('is HIGH where the two days’ use is of different mixtures', () => {
    const [finding, more] = findingsWith((at) => ({
      input: MEAN.input + ((at * 7_919) % 13) * 1_100_000,
      cache_read: MEAN.cache_read + ((at * 31) % 7) * 2_600_000,
      output: MEAN.output + ((at * 17) % 11) * 300_000,
    }));
    expect(more).toBeUndefined();
    expect(finding).toMatchObject({
      kind: 'period_double_count',
      variant: 'previous_day_again',
      grade: 'HIGH',
    });
  });

  it('is no more than a reason to look where half the day’s calls unseen would show the same', () => {
    for (const scatter of [0, 10_000]) {
      const [finding, more] = findingsWith((at) => ({ ...MEAN, input: MEAN.input + (at % 3) * scatter }));
      expect(more).toBeUndefined();
      expect(finding).toMatchObject({ kind: 'period_double_count', grade: 'LOW' });
      expect(finding?.advice[0]).toContain('a job of once a month');
    }
  });
});
