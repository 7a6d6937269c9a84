import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SyncChunk } from '../../db/billing/syncRuns.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../domain/period.js';
import { outcomeOf } from '../../usecases/billing/planSync.js';

const FIRST = microsOfDay('2026-01-01');
const REFUSED = { errorCode: 'credentials_refused', errorMessage: 'grant it' } as const;

/** A part of some days from a day on; days count from 2026-01-01. */
function aChunk(report: string, from: number, days: number, more: Partial<SyncChunk> = {}): SyncChunk {
  const startMicros = FIRST + BigInt(from) * MICROS_PER_DAY;
  return {
    ordinal: 0,
    report,
    feed: 'usage',
    bucketWidth: '1h',
    startMicros,
    endMicros: startMicros + BigInt(days) * MICROS_PER_DAY,
    status: 'failed',
    restarts: 0,
    result: null,
    errorCode: null,
    errorMessage: null,
    ...more,
  };
}

const daysOf = (missing: readonly { report: string; period_start: string; period_end: string }[]) =>
  missing.flatMap(({ report, period_start: start, period_end: end }) => {
    const days: string[] = [];
    for (let day = microsOfDay(start); day <= microsOfDay(end); day += MICROS_PER_DAY)
      days.push(`${report} ${dayOf(day)}`);
    return days;
  });

describe('the missing parts of a sync', () => {
  it('are reported once for parallel parts that fail for one reason', () => {
    const { status, error, result } = outcomeOf([
      aChunk('costs', 0, 30, REFUSED),
      aChunk('completions', 23, 7, REFUSED),
      aChunk('completions', 16, 7, REFUSED),
      aChunk('completions', 9, 7, { errorCode: 'provider_unavailable', errorMessage: 'it is away' }),
      aChunk('completions', 0, 2, REFUSED),
    ]);
    expect([status, error]).toEqual(['failed', { code: 'credentials_refused', message: 'grant it' }]);
    expect(
      result.missing.map((part) => [part.report, part.period_start, part.period_end, part.code]),
    ).toEqual([
      ['completions', '2026-01-17', '2026-01-30', 'credentials_refused'],
      ['completions', '2026-01-10', '2026-01-16', 'provider_unavailable'],
      ['completions', '2026-01-01', '2026-01-02', 'credentials_refused'],
      ['costs', '2026-01-01', '2026-01-30', 'credentials_refused'],
    ]);
  });

  it('name each day of each missing part, and no other', () => {
    const part = fc.record({
      report: fc.constantFrom('costs', 'completions'),
      length: fc.integer({ min: 1, max: 9 }),
      gap: fc.integer({ min: 0, max: 2 }),
      isDone: fc.boolean(),
      why: fc.constantFrom('a', 'b'),
    });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (parts, isLatestFirst) => {
        let from = 0;
        const chunks = parts.map(({ report, length, gap, isDone, why }) => {
          const chunk = aChunk(report, from + gap, length, {
            status: isDone ? 'done' : 'failed',
            errorCode: isDone ? null : why,
          });
          from += gap + length;
          return chunk;
        });
        const { result } = outcomeOf(isLatestFirst ? chunks.toReversed() : chunks);
        const expected = chunks
          .filter(({ status }) => status !== 'done')
          .flatMap(({ report, startMicros, endMicros }) =>
            daysOf([{ report, period_start: dayOf(startMicros), period_end: dayOf(endMicros - 1n) }]),
          );
        expect(daysOf(result.missing).toSorted()).toEqual(expected.toSorted());
      }),
    );
  });
});
