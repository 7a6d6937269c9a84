import { describe, expect, it } from 'vitest';
import { percentDone } from '../../../domain/runs/runKinds.js';

describe('the progress of a run', () => {
  it('is 100 only of a run that finished all of its work', () => {
    expect([
      percentDone(0, 0, 'queued'),
      percentDone(1, 3, 'running'),
      percentDone(3, 3, 'running'),
      percentDone(0, 0, 'succeeded'),
      percentDone(1, 3, 'partial'),
    ]).toEqual([0, 33, 99, 100, 100]);
  });

  it('of a run that was cancelled or failed shows how far it came, never 100', () => {
    for (const status of ['cancelled', 'failed'] as const)
      expect([percentDone(0, 0, status), percentDone(1, 3, status), percentDone(3, 3, status)]).toEqual([
        0, 33, 99,
      ]);
  });
});
