import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readHourCounts, readHoursOfCalls } from '../../../db/usage/hourCounts.js';
import { QUANTITY_ONE } from '../../../domain/billing/billedRow.js';
import { MICROS_PER_HOUR } from '../../../domain/period.js';

/** 2025-01-01T00:00:00Z. */
const MIDNIGHT_SECONDS = 1_735_689_600;
const hourMicros = (hour: number) => BigInt(MIDNIGHT_SECONDS / 3600 + hour) * MICROS_PER_HOUR;

describe('counts of a day in one text', () => {
  it('are summed by time and sorted, whatever the order of the rows', () => {
    expect(
      readHourCounts(`${MIDNIGHT_SECONDS + 7_200}=1.5,${MIDNIGHT_SECONDS}=15,${MIDNIGHT_SECONDS + 7_200}=2`),
    ).toEqual([
      { hourMicros: hourMicros(0), quantity: 15n * QUANTITY_ONE },
      { hourMicros: hourMicros(2), quantity: (7n * QUANTITY_ONE) / 2n },
    ]);
  });

  it('leave out times whose quantities cancel each other', () => {
    expect(readHourCounts(`${MIDNIGHT_SECONDS}=15,${MIDNIGHT_SECONDS}=-15`)).toEqual([]);
  });

  it('are empty when no row has a time', () => {
    expect(readHourCounts(null)).toEqual([]);
    expect(readHoursOfCalls(null)).toEqual([]);
  });

  it('reject a quantity that is not a finite number', () => {
    expect(() => readHourCounts(`${MIDNIGHT_SECONDS}=NaN`)).toThrow('not a finite numeric: NaN');
  });
});

describe('calls of a day in one text', () => {
  it('leave out hours without calls and keep hours whose calls have no tokens', () => {
    expect(
      readHoursOfCalls(
        `${MIDNIGHT_SECONDS}=5/0=1,${MIDNIGHT_SECONDS}=-5/0=-1,${MIDNIGHT_SECONDS + 3_600}=0/0=2`,
        9,
      ),
    ).toEqual([{ hourMicros: hourMicros(10), quantity: 0n, tokens: [0, 0] }]);
  });

  it('have the same sums by hour and class as their rows, in order of time', () => {
    const row = fc.record({
      hour: fc.integer({ min: 0, max: 23 }),
      tokens: fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 3, maxLength: 3 }),
      calls: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: -12, max: 12 }),
        (rows, ahead) => {
          const text = rows
            .map(
              ({ hour, tokens, calls }) => `${MIDNIGHT_SECONDS + hour * 3600}=${tokens.join('/')}=${calls}`,
            )
            .join();
          const hours = [...new Set(rows.map(({ hour }) => hour))].sort((a, b) => a - b);
          expect(readHoursOfCalls(text, ahead)).toEqual(
            hours.map((hour) => {
              const own = rows.filter((one) => one.hour === hour);
              const tokens = [0, 1, 2].map((at) => own.reduce((sum, one) => sum + (one.tokens[at] ?? 0), 0));
              const all = tokens.reduce((sum, one) => sum + one, 0);
              return { hourMicros: hourMicros(hour + ahead), quantity: BigInt(all) * QUANTITY_ONE, tokens };
            }),
          );
        },
      ),
    );
  });
});
