import { describe, expect, it } from 'vitest';
import { applyLearning, learnedTier } from '../../../../domain/reconciliation/engine/account/learned.js';
import type { Finding } from '../../../../domain/reconciliation/engine/series/finding.js';
import { reconcileDays } from '../../../../domain/reconciliation/reconcileDays.js';
import { learnedSet, learnWeights } from '../../../../domain/reconciliation/weights/learn.js';
import { levelsOf, rawProbabilityOf } from '../../../../domain/reconciliation/weights/levels.js';
import type { Outcome } from '../../../../domain/reconciliation/weights/outcome.js';
import { DEFAULT_WEIGHTS, type WeightSet } from '../../../../domain/reconciliation/weights/weightSet.js';
import { aFinding } from '../../../support/findings.js';
import { isBetween, scale, seriesOf, theFinding } from '../engine/series/support.js';
import { BOOK } from '../support.js';
import { anOutcome, credit, NOW, times } from '../weights/support.js';

/** One mistake each, on five of twenty days. */
const MISTAKES = {
  cache_read_rate_mismatch: seriesOf({
    bill: (lines, at) => (isBetween(at, 5, 9) ? scale(lines, 10n, 1n, ['cache_read']) : lines),
  }),
  service_tier_rate_misapplied: seriesOf({
    bill: (lines, at) => (isBetween(at, 5, 9) ? scale(lines, 2n, 1n) : lines),
  }),
  region_uplift_misapplied: seriesOf({
    bill: (lines, at) => (isBetween(at, 5, 9) ? scale(lines, 11n, 10n) : lines),
  }),
};

const found = (kind: keyof typeof MISTAKES, weights: WeightSet = DEFAULT_WEIGHTS): Finding =>
  theFinding(reconcileDays('openai', MISTAKES[kind], { agreed: BOOK, list: BOOK }, weights, []).findings);
const taught = (outcomes: readonly Outcome[], version = 1) =>
  learnedSet(DEFAULT_WEIGHTS, learnWeights(outcomes, DEFAULT_WEIGHTS, NOW), version);
const bits = (p: number) => Math.log2(p / (1 - p));

/** An outcome of what the engine found, as it is written down when the claim ends. */
const outcomeOf = ({ kind, probability, waterfall }: Finding, given: Partial<Outcome> = {}): Outcome =>
  anOutcome({
    claimedType: kind as Outcome['claimedType'],
    violationType: kind as Outcome['claimedType'],
    levels: levelsOf(waterfall),
    rawProbability: rawProbabilityOf(probability, waterfall),
    ...given,
  });

describe('the results of runs after claims have ended', () => {
  it('are unchanged where nothing was learned', () => {
    const { findings } = reconcileDays(
      'openai',
      MISTAKES.cache_read_rate_mismatch,
      { agreed: BOOK, list: BOOK },
      DEFAULT_WEIGHTS,
      [],
    );
    expect(applyLearning(findings, DEFAULT_WEIGHTS)).toBe(findings);
    expect(found('cache_read_rate_mismatch')).toMatchObject({ grade: 'HIGH', weightSet: 'default-1' });
    const none = taught([]);
    for (const kind of Object.keys(MISTAKES) as (keyof typeof MISTAKES)[])
      expect(found(kind, none)).toStrictEqual({ ...found(kind), weightSet: 'learned-1' });
  });

  it('after ten refusals of one kind is never HIGH of that kind, and of the others within half a bit', () => {
    const kinds = Object.keys(MISTAKES) as (keyof typeof MISTAKES)[];
    const before = new Map(kinds.map((kind) => [kind, found(kind)]));
    for (const refused of kinds) {
      const first = before.get(refused);
      if (!first) throw new Error(`nothing found of ${refused}`);
      const weights = taught(times(10, outcomeOf(first)), 7);
      for (const kind of kinds) {
        const [was, is] = [before.get(kind), found(kind, weights)];
        expect(was?.grade).toBe('HIGH');
        expect(is.weightSet).toBe('learned-7');
        const moved = bits(was?.probability ?? 0) - bits(is.probability);
        if (kind === refused) {
          expect(is.grade).toBe('LOW');
          expect(moved).toBeGreaterThan(5);
        } else {
          expect(is.grade).toBe('HIGH');
          expect(Math.abs(moved)).toBeLessThan(0.5);
        }
      }
    }
  });

  it('of a provider that named our prices as the reason weighs its next findings against them', () => {
    // Ever since a day, and not come back: our list may be the older one.
    const days = seriesOf({ days: 12, bill: (lines, at) => (at >= 4 ? scale(lines, 2n, 1n) : lines) });
    const judged = (provider: string) => {
      const refusals = times(7, anOutcome({ provider, violationType: 'stale_price_reference' }));
      const prices = { agreed: BOOK, list: BOOK };
      return theFinding(reconcileDays('openai', days, prices, taught(refusals), []).findings);
    };
    const [here, elsewhere] = [judged('openai'), judged('anthropic')];
    expect(elsewhere).toMatchObject({ kind: 'service_tier_rate_misapplied', grade: 'MEDIUM' });
    expect(here).toMatchObject({ kind: 'service_tier_rate_misapplied', grade: 'LOW' });
    expect(here.next).toMatchObject({ kind: 'stale_price_reference' });
    expect(here.next?.odds).toBeCloseTo((elsewhere.next?.odds ?? 0) / 8, 6);
  });

  it('show in the waterfall what was learned, from which the probability without learning follows', () => {
    const before = found('cache_read_rate_mismatch');
    const after = found('cache_read_rate_mismatch', taught(times(3, outcomeOf(before))));
    expect(after.waterfall.at(-1)).toMatchObject({
      signal: 'learned_from_claims',
      level: 'cache_read_rate_mismatch',
    });
    expect(rawProbabilityOf(after.probability, after.waterfall)).toBeCloseTo(before.probability, 4);
    expect(levelsOf(after.waterfall)).toEqual(levelsOf(before.waterfall));
    expect(levelsOf(before.waterfall)).toMatchObject({ quantities: 'within_0_2_percent', model: 'exact' });
    // The claimed amount is unchanged to the pico-dollar.
    expect(after).toMatchObject({ impactPico: before.impactPico, recoverablePico: before.recoverablePico });
  });

  it('are the same when the weights are learned again', () => {
    const before = found('cache_read_rate_mismatch');
    const first = taught(times(6, outcomeOf(before)));
    const after = found('cache_read_rate_mismatch', first);
    const again = learnWeights(
      times(6, {
        ...outcomeOf(before),
        rawProbability: rawProbabilityOf(after.probability, after.waterfall),
      }),
      DEFAULT_WEIGHTS,
      NOW,
    );
    expect(again.detectors).toEqual(first.learned?.detectors);
    expect(again.calibrator.curve).toMatchObject({ method: 'platt' });
  });
});

describe('the grade of a finding under other weights', () => {
  const graded = (finding: Partial<Finding>, outcomes: readonly Outcome[]) =>
    applyLearning([aFinding(finding)], taught(outcomes))[0]?.grade;
  const credits = (kind: Outcome['claimedType']) =>
    times(60, credit({ claimedType: kind, rawProbability: 0.9 }));

  it('rises with credits where the probability alone had kept it down', () => {
    const kind = 'cache_read_rate_mismatch';
    const of = { kind, probability: 0.93, grade: 'MEDIUM' } as const;
    expect(graded(of, credits(kind))).toBe('HIGH');
    // A failed gate, a bill of low visibility, and a day beside a price change keep their grade.
    expect(graded({ ...of, missing: ['price_sources_agree'] }, credits(kind))).toBe('MEDIUM');
    expect(graded({ ...of, visibility: 'V1' }, credits(kind))).toBe('MEDIUM');
    const dated = { ...of, kind: 'price_effective_date_mismatch', grade: 'LOW', probability: 0.6 } as const;
    expect(graded(dated, credits('price_effective_date_mismatch'))).toBe('LOW');
    // A kind that is never HIGH stays below it.
    const inflated = { ...of, kind: 'token_count_inflation' } as const;
    expect(graded(inflated, credits('token_count_inflation'))).not.toBe('HIGH');
  });

  it('UNVERIFIED is never raised, and a kind that is no claim is unchanged', () => {
    const kind = 'cache_read_rate_mismatch';
    expect(graded({ kind, probability: 0.97, grade: 'UNVERIFIED' }, credits(kind))).toBe('UNVERIFIED');
    const refusals = times(10, anOutcome());
    for (const of of [{ blame: 'own' }, { direction: 'undercharge' }, { kind: 'unexplained' }] as const) {
      const finding = aFinding({ kind, ...of });
      expect(applyLearning([finding], taught(refusals))).toEqual([finding]);
    }
  });
});

describe('the tier of a draft under other weights', () => {
  const basis = {
    kind: 'cache_read_rate_mismatch',
    provider: 'openai',
    disputeTier: 'HIGH',
    grade: 'HIGH',
    probability: 0.97,
    missing: [],
    visibility: 'V3',
    waterfall: [],
  } as const;
  const tierAfter = (refusals: number, of: object = {}) =>
    learnedTier({ ...basis, ...of }, learnWeights(times(refusals, anOutcome()), DEFAULT_WEIGHTS, NOW));

  it('follows what was learned; below LOW it stays LOW and states that', () => {
    expect(tierAfter(0)).toEqual({ tier: 'HIGH', belowLow: false });
    expect(tierAfter(4)).toEqual({ tier: 'MEDIUM', belowLow: false });
    expect(tierAfter(10)).toEqual({ tier: 'LOW', belowLow: false });
    expect(tierAfter(30)).toEqual({ tier: 'LOW', belowLow: true });
  });

  it('comes back when the refusals are outweighed, also of a dispute that was opened under them', () => {
    const step = { signal: 'learned_from_claims', level: basis.kind, bits: -3 };
    const q = 0.97;
    const odds = (q / (1 - q)) * 2 ** -3;
    const opened = { grade: 'LOW', disputeTier: 'LOW', probability: odds / (1 + odds), waterfall: [step] };
    expect(tierAfter(0, opened)).toEqual({ tier: 'HIGH', belowLow: false });
  });

  it('comes back of what is found over an account alone too, but of a key that is only not registered', () => {
    const opened = (kind: string, missing: readonly string[]) => {
      const step = { signal: 'learned_from_claims', level: kind, bits: -3 };
      const given = { kind, missing, grade: 'LOW', disputeTier: 'LOW', waterfall: [step] };
      return tierAfter(0, { ...given, probability: 32.333 / (8 + 32.333) });
    };
    expect(opened('model_misattribution', [])).toEqual({ tier: 'HIGH', belowLow: false });
    expect(opened('unauthorized_key_usage', [])).toEqual({ tier: 'HIGH', belowLow: false });
    expect(opened('unauthorized_key_usage', ['evidence_needed'])).toEqual({ tier: 'LOW', belowLow: false });
  });

  it('of what was opened without a probability, and of what nothing explains, is what it was', () => {
    expect(tierAfter(10, { probability: null })).toEqual({ tier: 'HIGH', belowLow: false });
    expect(tierAfter(10, { kind: 'unexplained', disputeTier: 'LOW' })).toEqual({
      tier: 'LOW',
      belowLow: false,
    });
  });
});
