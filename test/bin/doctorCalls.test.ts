import { describe, expect, it } from 'vitest';
import { describeRepairs } from '../../bin/service/doctorChecks.js';
import type { RepairState } from '../../db/events/callRepairs.js';
import { microsOfDay } from '../../domain/period.js';

const NOW = microsOfDay('2026-11-20');
const aRepair = (overrides: Partial<RepairState> = {}): RepairState => ({
  orgId: '019c1ba6-2be8-7000-a1b1-f61170aa59a3',
  stage: 'done',
  startedMicros: NOW - 1_000_000n,
  finishedMicros: NOW,
  calls: 0,
  events: 0,
  costPico: 0n,
  ...overrides,
});
const OPEN = { stage: 'merge', finishedMicros: null } as const;
const FOUND = { calls: 1, events: 23, costPico: 299_000_000_000n };

describe('./trueup doctor, of calls that were counted more than once', () => {
  it.each([
    ['nothing in a new installation', [], true, /^each counts once$/],
    ['nothing where none was found', [aRepair()], true, /^each counts once$/],
    [
      'when how many were repaired, and what they had counted for',
      [aRepair(FOUND), aRepair(FOUND)],
      true,
      /2026-11-20T00:00Z 2 that were counted more than once were repaired: 46 events, \$0\.598/,
    ],
    [
      'that the worker is at it, and how far it is',
      [aRepair(), aRepair({ ...OPEN, events: 7 })],
      true,
      /the worker looks for .* 7 events count no more so far$/,
    ],
    [
      'that it does not end',
      [aRepair({ ...OPEN, startedMicros: microsOfDay('2026-11-17') })],
      false,
      /since 2026-11-17T00:00Z: look at the worker's log/,
    ],
  ] as const)('prints %s', (_, repairs, ok, text) => {
    const finding = describeRepairs(repairs, NOW);
    expect(finding.ok).toBe(ok);
    expect(finding.text).toMatch(text);
  });
});
