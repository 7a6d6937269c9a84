import { describe, expect, it } from 'vitest';
import { estimateDayOffset } from '../../../domain/reconciliation/evidence/dayOffset.js';

const HOURS = 24 * 10;
/** Use that is never the same two hours running, and never a day's use again. */
const useAt = (hour: number): number => 1_000 + ((hour * hour * 31 + hour * 4_421) % 983) * 3;

function shifted(offset: number, share = 1) {
  return [
    ...Array.from({ length: HOURS }, (_, hour) => ({ hour, billed: 0, observed: useAt(hour) * share })),
    ...Array.from({ length: HOURS }, (_, hour) => ({
      hour: hour + offset,
      billed: useAt(hour),
      observed: 0,
    })),
  ];
}

describe('the hours by which a provider’s clock differs', () => {
  it('are told where all but nothing lies apart at one offset and much without it', () => {
    for (const offset of [-14, -8, -1, 3, 9, 14]) expect(estimateDayOffset(shifted(offset))).toBe(offset);
  });

  it('are none where the hours agree as they are', () => {
    expect(estimateDayOffset(shifted(0))).toBe(0);
  });

  it('are none where a part of the calls was not seen and no offset makes up for it', () => {
    expect(estimateDayOffset(shifted(5, 0.4))).toBe(0);
  });

  it('are none of a few hours', () => {
    expect(estimateDayOffset(shifted(5).filter(({ hour }) => hour < 60))).toBe(0);
  });

  it('do not depend on the order of the hours', () => {
    expect(estimateDayOffset([...shifted(6)].reverse())).toBe(6);
  });

  it('are none where use is the same every hour: any offset would do', () => {
    const flat = Array.from({ length: HOURS }, (_, hour) => ({ hour, billed: 10, observed: 10 }));
    expect(estimateDayOffset(flat)).toBe(0);
  });
});
