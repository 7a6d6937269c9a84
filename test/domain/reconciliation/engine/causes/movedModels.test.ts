import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { microsOfDay, shiftDay } from '../../../../../domain/period.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import type {
  BilledCell,
  DayInput,
  ObservedCell,
} from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { ACCOUNT, aCoveredAccount, aDay, BOOK, DAY } from '../../support.js';
import { asClasses } from '../series/support.js';
import { said } from './bills.js';
import { type Counts, calls, lines } from './support.js';

const MINI = 'gpt-5-mini';
const SOL = 'gpt-6-sol';
const DAYS = 20;
const CALLS = 500;

const useOf = (at: number, share = 1): Counts => ({
  input: Math.round(share * (30e6 + ((at * 7_919) % 13) * 1.1e6)),
  cache_read: Math.round(share * (20e6 + ((at * 31) % 7) * 1.3e6)),
  output: Math.round(share * (5e6 + ((at * 17) % 11) * 3e5)),
});
const plus = (a: Counts, b: Counts, sign = 1): Counts =>
  Object.fromEntries(
    Object.keys(a).map((name) => [name, (a[name as 'input'] ?? 0) + sign * (b[name as 'input'] ?? 0)]),
  );

/** Events name the cheap model; a part of these calls is on the bill as the dear one. */
function daysOf(
  isMoved: (at: number) => boolean,
  named = 0,
  usedAt = (at: number) => useOf(at, 0.3 + 0.01 * (at % 5)),
): DayInput[] {
  return daysWith((at, day) => {
    const moved = isMoved(at) ? usedAt(at) : useOf(at, 0);
    const ofModel = (model: string, seen: Counts, billed: Counts) => ({
      seen: calls(seen, { calls: CALLS, serviceTier: 'default' }, { model, day }),
      billed: lines(billed, {}, {}, { model, day }),
    });
    return [
      ofModel(SOL, useOf(at), plus(useOf(at), moved)),
      ofModel(MINI, useOf(at + 3), plus(useOf(at + 3), moved, -1)),
    ];
  }, named);
}

/** The same, but that it is the cheap model's batches that are billed as the dear one's, on a bill that does not separate batches. */
function daysOfBatches(isMoved: (at: number) => boolean): DayInput[] {
  return daysWith((at, day) => {
    const batch = useOf(at, 0.3);
    const ordinary = (model: string, counts: Counts) => ({
      seen: calls(counts, { calls: CALLS, serviceTier: 'default' }, { model, day }),
      billed: lines(counts, {}, {}, { model, day }),
    });
    const as = isMoved(at) ? SOL : MINI;
    const seen = calls(batch, { calls: CALLS, serviceTier: 'default', isBatch: true }, { model: MINI, day });
    const billed = lines(batch, { isBatch: true }, {}, { model: as, day });
    return [ordinary(SOL, useOf(at)), ordinary(MINI, useOf(at + 3)), { seen, billed }];
  }).map((day) => ({ ...day, billed: joined(day.billed) }));
}

/** Lines of one model and class as one, which does not separate batch. */
const joined = (billed: readonly BilledCell[]): BilledCell[] =>
  joinedCounts(billed).map((cell) => ({ ...cell, quantity: null }));

/** The same with the tokens of all its uses. */
function joinedCounts(billed: readonly BilledCell[]): BilledCell[] {
  const sums = new Map<string, BilledCell>();
  for (const cell of billed) {
    const key = `${cell.model} ${cell.tokenClass}`;
    const known = sums.get(key);
    const amountPico = cell.amountPico + (known?.amountPico ?? 0n);
    const quantity = (cell.quantity ?? 0n) + (known?.quantity ?? 0n);
    sums.set(key, { ...cell, serviceTier: 'standard', isBatch: null, quantity, amountPico });
  }
  return [...sums.values()];
}

const BATCH = [{ isBatch: true }, { serviceTier: 'default', isBatch: true }] as const;
const FLEX = [{ serviceTier: 'flex' }, { serviceTier: 'flex' }] as const;
const PLAIN = [{}, { serviceTier: 'default' }] as const;

/**
 * Calls of three uses of the cheap model that are billed as the dear one's for some days. The bill has one line for each
 * class, whatever the use. `unseen`: the share of the dear model's own tokens that is billed beside the calls seen.
 */
function daysOfUses(shares: { plain: number; batch: number; flex: number }, unseen = 0): DayInput[] {
  return daysWith((at, day) => {
    const own = useOf(at);
    const seen = { seen: calls(own, { calls: CALLS, serviceTier: 'default' }, { model: SOL, day }) };
    return [
      { ...seen, billed: lines(plus(own, useOf(at, unseen)), {}, {}, { model: SOL, day }) },
      ...movedUses(at, shares).map(([[line, use], counts]) => ({
        seen: calls(counts, { calls: CALLS, ...use }, { model: MINI, day }),
        billed: lines(counts, line, {}, { model: EPISODE(at) ? SOL : MINI, day }),
      })),
    ];
  }, 4 * CALLS).map((day) => ({ ...day, billed: joinedCounts(day.billed) }));
}

const movedUses = (at: number, { plain, batch, flex }: { plain: number; batch: number; flex: number }) =>
  [
    [PLAIN, useOf(at + 1, plain)],
    [BATCH, useOf(at + 2, batch)],
    [FLEX, useOf(at + 3, flex)],
  ] as const;

/** The dear model's price of the moved calls less the cheap one's, pico-dollars. */
function dearer(shares: { plain: number; batch: number; flex: number }): bigint {
  const costOf = (model: string) =>
    [8, 9, 10, 11, 12]
      .flatMap((at) => movedUses(at, shares))
      .flatMap(([[line], counts]) => lines(counts, line, {}, { model }))
      .reduce((sum, one) => sum + one.amountPico, 0n);
  return costOf(SOL) - costOf(MINI);
}

/** Days of the account, each with what was seen and billed of every use. */
function daysWith(
  usesOf: (at: number, day: string) => { seen: ObservedCell; billed: BilledCell[] }[],
  named = 0,
): DayInput[] {
  return Array.from({ length: DAYS }, (_, at) => {
    const day = shiftDay(DAY, at);
    const source = { serviceName: 'chat', calls: CALLS, callsWithoutCache: 0, namedByAnswer: named };
    const uses = usesOf(at, day);
    return aDay({
      day,
      nowMicros: microsOfDay(day) + 90n * 86_400_000_000n,
      covered: [aCoveredAccount({ fetchedAtMicros: microsOfDay(day) + 80n * 86_400_000_000n })],
      observedSince: new Map([[ACCOUNT, microsOfDay(DAY) - 86_400_000_000n]]),
      observed: uses.map((one) => one.seen),
      billed: uses.flatMap((one) => one.billed),
      sources: new Map([
        [
          ACCOUNT,
          new Map([
            [SOL, [source]],
            [MINI, [source]],
          ]),
        ],
      ]),
    });
  });
}

const findingsOf = (days: DayInput[]): Finding[] =>
  reconcileDays('openai', days, { agreed: BOOK, list: BOOK }, DEFAULT_WEIGHTS, []).findings;

const EPISODE = (at: number) => at >= 8 && at <= 12;
const LASTING = [() => true, (at: number) => at >= 10, (at: number) => at <= 9];

describe('use that appears under two models', () => {
  it('is MEDIUM at most for some days, since the events may name the model that was asked for', () => {
    const [finding, more] = findingsOf(daysOf(EPISODE));
    expect(more).toBeUndefined();
    expect(finding && said(finding)).toEqual({
      is: `model_misattribution/billed_for:${MINI}`,
      blame: 'provider',
      claimable: true,
      grade: 'MEDIUM',
    });
    expect(finding?.missing).toContain('evidence_needed');
    expect(finding?.next?.kind).toBe('client_metering_error');
    expect(finding?.cause).toContain('the model that was asked for');
    expect(finding?.advice[0]).toContain('response_model');
  });

  it('is the client’s where it has no end on both sides, on all days and at either edge alike', () => {
    for (const isMoved of LASTING) {
      const [finding, more] = findingsOf(daysOf(isMoved));
      expect(more).toBeUndefined();
      expect(finding && said(finding)).toMatchObject({
        is: `client_metering_error/model_as_requested:${MINI}`,
        blame: 'own',
        claimable: false,
      });
      expect(finding?.recoverablePico).toBe(0n);
    }
  });

  it('is the provider’s at HIGH where every answer named its model', () => {
    for (const isMoved of [EPISODE, ...LASTING]) {
      const [finding, more] = findingsOf(daysOf(isMoved, CALLS));
      expect(more).toBeUndefined();
      expect(finding && said(finding)).toMatchObject({
        is: `model_misattribution/billed_for:${MINI}`,
        claimable: true,
      });
    }
    expect(findingsOf(daysOf(EPISODE, CALLS))[0]?.grade).toBe('HIGH');
    expect(findingsOf(daysOf(EPISODE, CALLS - 1))[0]?.grade).toBe('MEDIUM');
  });

  it('is never HIGH where the bill charges less than its lines are priced, as for calls of a cheaper use', () => {
    const days = daysOf(EPISODE, CALLS).map((day, at) => ({
      ...day,
      billed: day.billed.map((line) =>
        EPISODE(at) && line.model === SOL ? { ...line, amountPico: (line.amountPico * 7n) / 10n } : line,
      ),
    }));
    const move = findingsOf(days).find(({ kind }) => kind === 'model_misattribution');
    expect(move?.grade).toBe('MEDIUM');
    expect(move?.missing).toContain('residual_within_tolerance');
  });

  it('is no lack of calls of the model that was billed: both models’ calls together are all that is billed', () => {
    const ofOtherMix = (at: number): Counts => ({
      input: 2_000_000 + at * 10_000,
      cache_read: 9_000_000 + at * 11_000,
      output: 900_000 + at * 1_000,
    });
    const [finding, more] = findingsOf(daysOf(EPISODE, CALLS, ofOtherMix));
    expect(more).toBeUndefined();
    expect(finding).toMatchObject({ kind: 'model_misattribution', grade: 'HIGH', missing: [] });
  });

  it('lists its classes, summing to the impact, with odds that its waterfall sums to', () => {
    for (const finding of findingsOf(daysOf(EPISODE))) {
      expect(finding.lines.map((line) => line.tokenClass)).toEqual(['cache_read', 'input', 'output']);
      const sum = finding.lines.reduce((total, line) => total + line.billedPico - line.expectedPico, 0n);
      expect(sum).toBe(finding.impactPico);
      for (const line of finding.lines) expect(line.billedQuantity).toBeGreaterThan(line.observedQuantity);
      const bits = finding.waterfall.reduce((total, step) => total + step.bits, 0);
      expect(bits).toBeCloseTo(Math.log2(finding.probability / (1 - finding.probability)));
    }
  });
});

describe('use of several tiers that appears under two models', () => {
  const CENT = 10_000_000_000n;
  const within = (a: bigint, b: bigint) => expect(a > b ? a - b : b - a).toBeLessThan(CENT / 10n);

  it('costs what its own tiers cost, to the cent and at HIGH, though the bill’s line holds all of them', () => {
    fc.assert(
      fc.property(
        fc.record({
          plain: fc.double({ min: 0, max: 0.5, noNaN: true }),
          batch: fc.double({ min: 0.05, max: 0.5, noNaN: true }),
          flex: fc.double({ min: 0.05, max: 0.5, noNaN: true }),
        }),
        (shares) => {
          const moves = findingsOf(daysOfUses(shares)).filter((one) => one.kind === 'model_misattribution');
          expect(moves.map(({ grade, missing }) => [grade, missing])).toEqual([['HIGH', []]]);
          within(moves[0]?.impactPico ?? 0n, dearer(shares));
        },
      ),
      { numRuns: 12 },
    );
  });

  it('holds whatever calls of the billed model were not seen, since only calls that were seen are claimed', () => {
    const shares = { plain: 0.1, batch: 0.3, flex: 0.2 };
    const move = findingsOf(daysOfUses(shares, 0.03)).find((one) => one.kind === 'model_misattribution');
    expect(move).toMatchObject({ grade: 'HIGH', missing: [] });
    within(move?.impactPico ?? 0n, dearer(shares));
  });

  it('leaves no wrong tier on lines that are right once the moved calls are among them', () => {
    const found = findingsOf(daysOfUses({ plain: 0, batch: 0.4, flex: 0.3 }));
    expect(found.map(({ kind }) => kind)).toEqual(['model_misattribution']);
  });

  it('is HIGH on the days on which the bill confirms the price, and a finding of its own on the others', () => {
    const shares = { plain: 0, batch: 0.4, flex: 0.3 };
    const days = daysOfUses(shares).map((day, at) => ({
      ...day,
      billed: day.billed.map((line) =>
        at === 10 && line.model === SOL ? { ...line, amountPico: (line.amountPico * 9n) / 10n } : line,
      ),
    }));
    const moves = findingsOf(days).filter((one) => one.kind === 'model_misattribution');
    expect(moves.map(({ grade, days: { length } }) => [grade, length])).toEqual([
      ['HIGH', 4],
      ['MEDIUM', 1],
    ]);
    expect(moves[1]?.missing).toContain('residual_within_tolerance');
    within(
      moves.reduce((sum, one) => sum + one.impactPico, 0n),
      dearer(shares),
    );
  });
});

describe('use that appears under two models, on a bill of amounts alone', () => {
  it('is found from what the amounts buy, as from the counts, and without them it is LOW', () => {
    const [counted] = findingsOf(daysOf(EPISODE));
    const [finding, more] = findingsOf(daysOf(EPISODE).map(asClasses));
    expect(more).toBeUndefined();
    expect(finding && said(finding)).toEqual({
      is: `model_misattribution/billed_for:${MINI}`,
      blame: 'provider',
      claimable: true,
      grade: 'LOW',
    });
    expect(finding?.visibility).toBe('V1');
    expect(finding?.missing).toEqual(expect.arrayContaining(['quantity_present', 'evidence_needed']));
    expect(finding?.impactPico).toBe(counted?.impactPico);
    const sum = finding?.lines.reduce((total, line) => total + line.billedPico - line.expectedPico, 0n);
    expect(sum).toBe(finding?.impactPico);
  });

  it('is the client’s where it has no end, and MEDIUM at most where every answer named its model', () => {
    for (const isMoved of LASTING)
      for (const finding of findingsOf(daysOf(isMoved).map(asClasses)))
        expect(finding.blame).not.toBe('provider');
    const [named] = findingsOf(daysOf(EPISODE, CALLS).map(asClasses));
    expect(named && said(named)).toMatchObject({
      is: `model_misattribution/billed_for:${MINI}`,
      claimable: true,
    });
    expect(['MEDIUM', 'LOW']).toContain(named?.grade);
  });

  it('is found for batches too, where the bill does not separate batch', () => {
    expect(findingsOf(daysOfBatches(() => false))).toEqual([]);
    const finding = findingsOf(daysOfBatches(EPISODE)).find((one) => one.kind === 'model_misattribution');
    expect(finding?.days.map((one) => one.day)).toEqual([8, 9, 10, 11, 12].map((at) => shiftDay(DAY, at)));
    const halfOf = (model: string) => {
      const batches = [8, 9, 10, 11, 12].flatMap((at) =>
        lines(useOf(at, 0.3), { isBatch: true }, {}, { model }),
      );
      return batches.reduce((sum, one) => sum + one.amountPico, 0n);
    };
    const apart = Number(finding?.impactPico) / Number(halfOf(SOL) - halfOf(MINI));
    expect(apart).toBeCloseTo(1, 3);
  });

  it('is no move where one model’s calls were not seen and another’s bill is short of something else', () => {
    const days = daysOf(() => false).map((day, at) => ({
      ...asClasses(day),
      billed: asClasses(day).billed.map((cell) => {
        const isDear = cell.model === SOL;
        if (!EPISODE(at)) return cell;
        if (isDear) return { ...cell, amountPico: (cell.amountPico * 13n) / 10n };
        return cell.tokenClass === 'output' ? { ...cell, amountPico: (cell.amountPico * 7n) / 10n } : cell;
      }),
    }));
    for (const finding of findingsOf(days)) expect(finding.kind).not.toBe('model_misattribution');
  });
});
