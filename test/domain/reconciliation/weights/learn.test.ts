import { describe, expect, it } from 'vitest';
import { VIOLATION_KINDS } from '../../../../domain/reconciliation/taxonomy.js';
import { betaQuantile } from '../../../../domain/reconciliation/weights/beta.js';
import {
  correctedProbability,
  detectorOf,
  priorOf,
} from '../../../../domain/reconciliation/weights/detectors.js';
import {
  claimProbability,
  learnedSet,
  learnWeights,
  weightsFor,
} from '../../../../domain/reconciliation/weights/learn.js';
import { weighed } from '../../../../domain/reconciliation/weights/outcome.js';
import { bandOf } from '../../../../domain/reconciliation/weights/thresholds.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { anOutcome, credit, DAY, NOW, times } from './support.js';

const KIND = 'cache_read_rate_mismatch';
const learn = (outcomes: Parameters<typeof learnWeights>[0]) => learnWeights(outcomes, DEFAULT_WEIGHTS, NOW);
const detector = (outcomes: Parameters<typeof learnWeights>[0]) => detectorOf(KIND, weighed(outcomes, NOW));

describe('the precision of a kind of finding', () => {
  it('begins at what is believed of its kind: rates that the bill shows, other mistakes, and mere suspicions', () => {
    const priors = Object.fromEntries(VIOLATION_KINDS.map((kind) => [kind, priorOf(kind)]));
    for (const kind of [
      'batch_discount_not_applied',
      'cached_tokens_double_metered',
      'cache_read_rate_mismatch',
      'cache_write_rate_mismatch',
      'long_context_rate_misapplied',
      'service_tier_rate_misapplied',
    ])
      expect(priors[kind], kind).toEqual({ a: 9, b: 1 });
    expect(priors.duplicate_charge).toEqual({ a: 2, b: 4 });
    expect(priors.token_count_inflation).toEqual({ a: 2, b: 4 });
    expect(Object.values(priors).filter(({ a, b }) => a === 6 && b === 2)).toHaveLength(17);
  });

  it('after six refusals and one credit is 10/17, and odds of 0.97 become 0.84: HIGH falls to MEDIUM by the odds', () => {
    const found = detector([...times(6, anOutcome()), credit()]);
    expect(found.precision).toBe(10 / 17);
    expect(found.oddsFactor).toBeCloseTo(10 / 7 / 9, 15);
    const p = correctedProbability(0.97, found);
    expect(p.toFixed(2)).toBe('0.84');
    expect([bandOf(0.97), bandOf(p)]).toEqual(['HIGH', 'MEDIUM']);
    // From the fifth outcome on the upper bound holds beside the odds, and it lies lower here.
    expect(found.cap?.toFixed(2)).toBe('0.77');
  });

  it('after ten refusals is 9/20: 0.97 becomes 0.75, which is LOW, and nothing of the kind is surer than 0.63', () => {
    const found = detector(times(10, anOutcome()));
    expect(found.precision).toBe(9 / 20);
    const p = correctedProbability(0.97, found);
    expect(p.toFixed(2)).toBe('0.75');
    expect(bandOf(p)).toBe('LOW');
    expect(correctedProbability(0.999, found).toFixed(3)).toBe('0.989');
    expect(found.cap?.toFixed(2)).toBe('0.63');
    expect(claimProbability(0.999, KIND, 'openai', learn(times(10, anOutcome())))).toBeLessThanOrEqual(0.632);
  });

  it('has a bound from the fifth outcome on, by the Beta distribution', () => {
    expect(detector(times(4, anOutcome())).cap).toBeNull();
    expect(detector(times(5, anOutcome())).cap).toBe(betaQuantile(0.95, 9, 6));
    // Closed forms: of Beta(a, 1) it is the a-th root, of Beta(1, b) one less the b-th root of the rest.
    expect(betaQuantile(0.95, 9, 1)).toBeCloseTo(0.95 ** (1 / 9), 12);
    expect(betaQuantile(0.95, 1, 7)).toBeCloseTo(1 - 0.05 ** (1 / 7), 12);
    expect(betaQuantile(0.5, 40, 40)).toBeCloseTo(0.5, 12);
  });

  it('counts an outcome half after 180 days, and a partial credit by its share', () => {
    const old = detector([anOutcome({ atMicros: NOW - 180n * DAY })]);
    expect(old).toMatchObject({ outcomes: 1, credited: 0, failed: 0.5, precision: 9 / 10.5 });
    const partial = detector([anOutcome({ status: 'partial', fraction: 0.25, violationType: null })]);
    expect(partial).toMatchObject({ credited: 0.25, failed: 0.75, precision: 9.25 / 11 });
  });
});

describe('the kind that a denial names instead', () => {
  const benign = anOutcome({ violationType: 'unobserved_usage' });

  it('raises that explanation’s prior with the provider, and with no other, up to eightfold', () => {
    const learned = learn([...times(3, benign), anOutcome({ provider: 'anthropic', claimId: 'c-9' })]);
    expect(learned.rivals).toEqual({ openai: { unobserved_usage: { denials: 3, factor: 4 } } });
    const set = learnedSet(DEFAULT_WEIGHTS, learned, 1);
    expect(weightsFor(set, 'openai').priors.unobserved_usage).toBe(0.04);
    expect(weightsFor(set, 'openai').priors.timing_shift).toBe(0.002);
    expect(weightsFor(set, 'anthropic')).toBe(set);
    expect(learn(times(50, benign)).rivals.openai?.unobserved_usage?.factor).toBe(8);
  });

  it('is a failure of what was claimed in any case, and raises nothing where it is a mistake of the client', () => {
    const plain = learn(times(3, anOutcome()));
    expect(plain.rivals).toEqual({});
    expect(learn(times(3, benign)).detectors).toEqual(plain.detectors);
    for (const violationType of ['duplicate_charge', 'insufficient_evidence', 'other'] as const)
      expect(learn([anOutcome({ violationType })]).rivals).toEqual({});
  });
});

describe('the bits of the levels', () => {
  const doubtful = {
    levels: {
      time: 'adjacent_day',
      model: 'family_same_price',
      quantities: 'within_3_percent',
      calls: 'beyond',
    },
    rawProbability: 0.5,
  };

  it('of a refusal fall where they spoke for the match, by as much as the match can be to blame', () => {
    const sure = learn(times(10, anOutcome())).levels;
    const { link, counts } = learn(times(10, anOutcome(doubtful))).levels;
    expect(counts.quantities?.within_3_percent?.denied).toBeGreaterThan(1);
    expect(link.quantities?.within_3_percent).toBeLessThan(0.9);
    expect(sure.counts.quantities?.within_0_2_percent?.denied).toBeLessThan(0.01);
    // Levels that spoke against the match are not blamed for the refusal.
    expect(counts.time).toBeUndefined();
    expect(counts.calls).toBeUndefined();
  });

  it('of a credit rise, of all its levels', () => {
    const { link, counts } = learn(times(10, credit(doubtful))).levels;
    expect(counts.time?.adjacent_day).toEqual({ credited: 10, denied: 0 });
    expect(link.time?.adjacent_day).toBeGreaterThan(-1);
    expect(link.calls?.beyond).toBeGreaterThan(-2);
  });

  it('of uninformative signals stay what they are', () => {
    const { link, counts } = learn(times(20, credit())).levels;
    for (const signal of ['prior', 'scope', 'total', 'invoice']) {
      expect(link[signal]).toEqual(DEFAULT_WEIGHTS.link[signal]);
      expect(counts[signal]).toBeUndefined();
    }
  });
});

describe('without outcomes', () => {
  it('everything is what it was, to the last bit', () => {
    const learned = learn([]);
    expect(learned.levels.link).toEqual(DEFAULT_WEIGHTS.link);
    expect(learned).toMatchObject({
      outcomes: 0,
      detectors: {},
      rivals: {},
      thresholds: { high: 0.95, medium: 0.8 },
    });
    for (const q of [0.001, 0.5, 0.8299999999, 0.97, 0.9999999])
      expect(claimProbability(q, KIND, 'openai', learned)).toBe(q);
  });
});
