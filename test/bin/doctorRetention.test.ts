import { describe, expect, it } from 'vitest';
import { describeRetention } from '../../bin/service/doctorChecks.js';
import type { RetentionState } from '../../db/installation/retentionRuns.js';
import { microsOfDay } from '../../domain/period.js';

const NOW = microsOfDay('2026-11-20');
const aState = (overrides: Partial<RetentionState> = {}): RetentionState => ({
  step: 'payloads',
  lastSuccessMicros: microsOfDay('2026-11-19'),
  failures: 0,
  removedRows: 3,
  droppedPartitions: ['event_payloads_2026_08'],
  errorMessage: null,
  ...overrides,
});

describe('./trueup doctor, of the retention', () => {
  it.each([
    ['that it has not run', [], true, /not run yet/],
    [
      'when it was done and what went',
      [aState(), aState({ step: 'events' })],
      true,
      /2026-11-19T00:00Z; 6 rows and 2 months/,
    ],
    ['nothing of one failure', [aState({ failures: 1, errorMessage: 'full' })], true, /done at/],
    [
      'of two, which step and why',
      [aState({ failures: 2, errorMessage: 'full' })],
      false,
      /payloads failed 2 times \(full\)/,
    ],
    [
      'that it has been quiet for days',
      [aState({ lastSuccessMicros: microsOfDay('2026-11-10') })],
      false,
      /worker and Temporal/,
    ],
    ['that its first run is not through', [aState({ lastSuccessMicros: null })], true, /first run/],
  ] as const)('prints %s', (_, states, ok, text) => {
    const finding = describeRetention(states, NOW);
    expect(finding.ok).toBe(ok);
    expect(finding.text).toMatch(text);
  });
});
