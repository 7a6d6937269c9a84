import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Pace } from '../../dispatch/pace.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('work in the background leaves three quarters of the time to others, however long a part takes', async () => {
  const rests: number[] = [];
  const pace = new Pace(async (ms) => {
    rests.push(ms);
    vi.advanceTimersByTime(ms);
  });
  vi.advanceTimersByTime(700);
  pace.start();
  for (const tookMs of [40, 1_000, 5]) {
    vi.advanceTimersByTime(tookMs);
    await pace.rest();
  }
  expect(rests).toEqual([120, 3_000, 15]);
});
