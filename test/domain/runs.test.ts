import { describe, expect, it } from 'vitest';
import { percentDone } from '../../domain/runs.js';

describe('the progress of a run', () => {
  it('is 100 only when the run is over, and 0 while it has nothing to do yet', () => {
    expect([
      percentDone(0, 0, false),
      percentDone(1, 3, false),
      percentDone(3, 3, false),
      percentDone(0, 0, true),
      percentDone(1, 3, true),
    ]).toEqual([0, 33, 99, 100, 100]);
  });
});
