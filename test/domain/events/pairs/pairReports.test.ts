import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../domain/events/event.js';
import {
  type PairableReport,
  pairReports,
  type ReportPair,
} from '../../../../domain/events/pairs/pairReports.js';
import { finish } from '../../../../domain/steps.js';
import { aCall, aUsage } from '../../../support/aCall.js';
import { propertyRuns } from '../../../support/propertyRuns.js';

const START = 1_790_000_000_000_000n;
const MILLI = 1_000n;

/** A report with an interval in milliseconds; the scope `sdk` has the response id, as the Anthropic SDK does. */
function aReport(
  id: string,
  scopeName: string,
  [from, to]: readonly [number, number],
  overrides: Partial<CallRecord> = {},
): PairableReport {
  const call = aCall({
    scopeName,
    responseId: scopeName === 'sdk' ? `msg_${id}` : null,
    startMicros: START + BigInt(from) * MILLI,
    endMicros: START + BigInt(to) * MILLI,
    ...overrides,
  });
  return { id, call, pairedWith: null, takenScopes: [] };
}

const pairsOf = (reports: readonly PairableReport[]): ReportPair[] => finish(pairReports(reports));

describe('two reports of one call without a common id', () => {
  it('are paired if one interval lies in the other, and the report with the response id counts', () => {
    const reports = [aReport('outer', 'openinference', [0, 100]), aReport('inner', 'sdk', [1, 99])];
    expect(pairsOf(reports)).toEqual([{ loserId: 'outer', winnerId: 'inner' }]);
  });

  it.each([
    ['begins 50 ms before the outer interval', [-50, 200], 1],
    ['ends 50 ms after the outer interval', [100, 350], 1],
    ['begins 51 ms before it and ends inside', [-51, 200], 0],
    ['begins inside and ends 51 ms after it', [100, 351], 0],
    ['follows the outer interval', [400, 500], 0],
  ] as const)('with an interval that %s', (_, interval, pairs) => {
    const reports = [aReport('outer', 'openinference', [0, 300]), aReport('inner', 'sdk', interval)];
    expect(pairsOf(reports)).toHaveLength(pairs);
  });

  it.each<[string, Partial<CallRecord>]>([
    ['another provider', { provider: 'anthropic' }],
    ['another model', { model: 'gpt-4o-mini' }],
    ['one more output token', { usage: aUsage({ input: 100, output: 51 }) }],
    ['one more input token', { usage: aUsage({ input: 101, output: 50 }) }],
    ['other cached input', { usage: aUsage({ input: 60, cacheRead: 40, output: 50 }) }],
    ['a cache write', { usage: aUsage({ input: 60, cacheCreation: 40, output: 50 }) }],
    ['a response id of its own', { responseId: 'msg_other' }],
    ['the same scope', { scopeName: 'sdk' }],
    ['no usage', { usage: null, status: 'error' }],
  ])('are two calls if one has %s', (_, overrides) => {
    const reports = [
      aReport('inner', 'sdk', [1, 99]),
      aReport('outer', 'openinference', [0, 100], overrides),
    ];
    expect(pairsOf(reports)).toEqual([]);
  });

  it('may differ in classes that one client cannot report', () => {
    const { origin } = aCall();
    const reports = [
      aReport('inner', 'sdk', [1, 99], { usage: aUsage({ input: 60, cacheRead: 40, output: 50 }) }),
      aReport('outer', 'traceloop', [0, 100], { origin: { ...origin, usageMissing: ['cache_read'] } }),
    ];
    expect(pairsOf(reports)).toHaveLength(1);
  });

  it('may name an alias and a dated release of one model', () => {
    const reports = [
      aReport('inner', 'sdk', [1, 99], { model: 'gpt-4o-2024-08-06' }),
      aReport('outer', 'openinference', [0, 100]),
    ];
    expect(pairsOf(reports)).toHaveLength(1);
  });
});

describe('equal calls at once', () => {
  it('are paired in order of start', () => {
    const reports = [
      aReport('x2', 'openinference', [40, 60]),
      aReport('y1', 'sdk', [1, 99]),
      aReport('x1', 'openinference', [0, 100]),
      aReport('y2', 'sdk', [41, 59]),
    ];
    expect(pairsOf(reports)).toEqual([
      { loserId: 'x1', winnerId: 'y1' },
      { loserId: 'x2', winnerId: 'y2' },
    ]);
  });

  it('count as often as the scope that reported more of them', () => {
    const reports = [
      aReport('x1', 'openinference', [0, 100]),
      aReport('y1', 'sdk', [1, 99]),
      aReport('y2', 'sdk', [2, 98]),
    ];
    expect(pairsOf(reports)).toHaveLength(1);
  });

  it('do not take the place of a report that an id proves to be of the call', () => {
    const proven = { ...aReport('y1', 'sdk', [1, 99]), takenScopes: ['openinference'] };
    expect(pairsOf([proven, aReport('x1', 'openinference', [0, 100])])).toEqual([]);
  });

  it('are one event each if three instrumentations report them', () => {
    const reports = [0, 1].flatMap((place) => [
      aReport(`x${place}`, 'openinference', [place, 100 + place]),
      aReport(`y${place}`, 'sdk', [place + 2, 98 + place]),
      aReport(`z${place}`, 'gateway', [place + 3, 97 + place]),
    ]);
    const pairs = pairsOf(reports);
    expect(new Set(pairs.map(({ loserId }) => loserId))).toEqual(new Set(['x0', 'x1', 'z0', 'z1']));
    expect(pairs.map(({ winnerId }) => winnerId).sort()).toEqual(['y0', 'y0', 'y1', 'y1']);
  });

  it('beyond the number that is compared are paired in slices', () => {
    const reports = Array.from({ length: 2_000 }, (_, place) => [
      aReport(`x${place}`, 'openinference', [place, 100_000 + place]),
      aReport(`y${place}`, 'sdk', [place, 100_000 + place]),
    ]).flat();
    expect(pairsOf(reports)).toHaveLength(2_000);
  });
});

/** True calls with equal counts: an outer and an inner report each. */
const interval = fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 400 }));
const slack = fc.tuple(fc.integer({ min: 0, max: 45 }), fc.integer({ min: 0, max: 45 }));
const trueCalls = fc.array(fc.record({ interval, slack, hasId: fc.boolean() }), {
  minLength: 1,
  maxLength: 9,
});
const cuts = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 18, maxLength: 18 });

/** Pairs reports as they arrive: those of each arrival with all before, whose pairs stay. */
function arrive(arrivals: readonly (readonly PairableReport[])[]): Map<string, string> {
  const winnerOf = new Map<string, string>();
  const known: PairableReport[] = [];
  for (const arrival of arrivals) {
    known.push(...arrival);
    const reports = known.map((report) => ({ ...report, pairedWith: winnerOf.get(report.id) ?? null }));
    for (const { loserId, winnerId } of pairsOf(reports)) {
      expect(winnerOf.has(loserId)).toBe(false);
      winnerOf.set(loserId, winnerId);
    }
  }
  return winnerOf;
}

interface Shape {
  interval: readonly [number, number];
  slack: readonly [number, number];
  hasId: boolean;
}

/** The reports of equal calls by two scopes, in the order and the requests in which they arrive. */
function arrivalsOf(
  calls: readonly Shape[],
  parts: readonly number[],
  random: fc.Stream<number>,
  inner: (hasId: boolean) => { responseId: boolean; usageSource: string },
): PairableReport[][] {
  const reports = calls.flatMap(({ interval: [from, length], slack: [before, after], hasId }, place) => {
    const { responseId, usageSource } = inner(hasId);
    return [
      aReport(`x${place}`, 'openinference', [from, from + length]),
      aReport(`y${place}`, 'sdk', [from - before, from + length + after], {
        responseId: responseId ? `msg_${place}` : null,
        origin: { ...aCall().origin, usageSource },
      }),
    ];
  });
  const order = reports
    .map((report) => ({ report, at: random.next().value as number }))
    .sort((one, other) => one.at - other.at);
  const arrivals: PairableReport[][] = [[], [], [], [], [], []];
  for (const [place, { report }] of order.entries()) arrivals[parts[place] as number]?.push(report);
  return arrivals;
}

describe('equal calls at once that two scopes report', () => {
  it.each([
    ['of which one sends response ids', () => ({ responseId: true, usageSource: 'otel' })],
    ['of which none sends response ids', () => ({ responseId: false, usageSource: 'otel' })],
    [
      'of which the more trusted one sends response ids at times',
      (hasId: boolean) => ({ responseId: hasId, usageSource: 'anthropic_sdk' }),
    ],
  ] as const)('%s: n calls are n calls, in any order and any split over requests', (_, inner) => {
    fc.assert(
      fc.property(trueCalls, cuts, fc.infiniteStream(fc.nat()), (calls, parts, random) => {
        const winnerOf = arrive(arrivalsOf(calls, parts, random, inner));
        // Each call has one report of each scope, and the report of one of them counts.
        expect(winnerOf.size).toBe(calls.length);
        expect(new Set(winnerOf.values()).size).toBe(calls.length);
        for (const winner of winnerOf.values()) expect(winnerOf.has(winner)).toBe(false);
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it('of which the less trusted one sends response ids at times: n calls are never fewer than n', () => {
    fc.assert(
      fc.property(trueCalls, cuts, fc.infiniteStream(fc.nat()), (calls, parts, random) => {
        const inner = (hasId: boolean) => ({ responseId: hasId, usageSource: 'traceloop' });
        const winnerOf = arrive(arrivalsOf(calls, parts, random, inner));
        expect(winnerOf.size).toBeLessThanOrEqual(calls.length);
        expect(new Set(winnerOf.values()).size).toBe(winnerOf.size);
        for (const winner of winnerOf.values()) expect(winnerOf.has(winner)).toBe(false);
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});
