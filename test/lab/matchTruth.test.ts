import { describe, expect, it } from 'vitest';
import type { Finding } from '../../domain/reconciliation/engine/index.js';

import { pricesOf } from '../../lab/bench/reconciliation/books.js';
import type { Judged } from '../../lab/bench/reconciliation/judge.js';
import { metricsOf } from '../../lab/bench/reconciliation/metrics.js';
import { addWorld, emptyTally } from '../../lab/bench/reconciliation/tally.js';
import type { GeneratedWorld, Truth } from '../../lab/generators/world.js';

const USD = 1_000_000_000_000n;
const DAY = '2026-08-03';
const prices = pricesOf({ priceListChanges: [], contracts: [] });

const truth = (dollars: number, more: Partial<Truth> = {}): Truth => ({
  id: 't',
  cause: 'batch_discount_not_applied',
  otherNames: [],
  form: '',
  isViolation: true,
  provider: 'anthropic',
  accountId: 'acme',
  model: 'claude-opus-5',
  impactByDay: new Map([[DAY, BigInt(dollars) * USD]]),
  identifiableAt: new Set(['V3']),
  note: '',
  ...more,
});

function finding(dollars: number, more: Partial<Finding> = {}): Finding {
  const impactPico = BigInt(dollars) * USD;
  return {
    kind: 'batch_discount_not_applied',
    blame: 'provider',
    provider: 'anthropic',
    accountId: 'acme',
    model: 'claude-opus-5',
    grade: 'HIGH',
    probability: 0.99,
    days: [{ day: DAY, impactPico }],
    ...more,
  } as Finding;
}

function metrics(truths: Truth[], findings: Finding[]) {
  const world = {
    firstDay: DAY,
    lastDay: DAY,
    readAtSeconds: Date.parse('2026-09-01T00:00:00Z') / 1_000,
    truths,
    spendPico: 1_000n * USD,
  } as unknown as GeneratedWorld;
  const judged: Judged = { prices, inputs: [], findings, explanations: [], buckets: [], runMs: 0 };
  const tally = emptyTally();
  addWorld(tally, world, judged, 'V3');
  return metricsOf(tally);
}

describe('the claimed amount of a finding', () => {
  it('is right up to the dollars of the day, and false beyond', () => {
    const found = metrics([truth(10)], [finding(16)]);
    expect(found.precisionHigh).toBeCloseTo(10 / 16, 12);
    expect(found.recallHigh).toBe(1);
  });

  it('counts once: two findings of a day share what is true of it, the surer first', () => {
    const both = metrics([truth(10)], [finding(10, { grade: 'LOW' }), finding(10)]);
    expect(both.precisionHigh).toBe(1);
    expect(both.precision).toBeCloseTo(0.5, 12);
  });

  it('makes nothing right on another day, account or model, or in the other direction', () => {
    for (const other of [
      finding(10, { days: [{ ...finding(10).days[0], day: '2026-08-04' }] as Finding['days'] }),
      finding(10, { accountId: 'other' }),
      finding(10, { model: 'claude-sonnet-5' }),
    ])
      expect(metrics([truth(10)], [other])).toMatchObject({
        precisionHigh: 0,
        recallHigh: 0,
        misattributed: 0.01,
      });
    expect(metrics([truth(10)], [finding(-10)])).toMatchObject({ recallHigh: 0, underPrecision: 0 });
  });

  it('meets the truth under any id of the model that has the same price', () => {
    const [dated, alias] = ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5'];
    expect(metrics([truth(10, { model: dated })], [finding(10, { model: alias })]).recallHigh).toBe(1);
  });

  it('has the right type by the name, or by another name of the same facts', () => {
    const other = finding(10, { kind: 'service_tier_rate_misapplied' });
    expect(metrics([truth(10)], [other])).toMatchObject({ typeByDollars: 0, typeByCount: 0, recallHigh: 1 });
    const either = truth(10, { otherNames: ['service_tier_rate_misapplied'] });
    expect(metrics([either], [other])).toMatchObject({ typeByDollars: 1, typeByCount: 1 });
  });

  it('is false where it names a kind for a mistake outside the library', () => {
    expect(metrics([truth(10, { cause: 'not_in_library' })], [finding(10)])).toMatchObject({
      precisionHigh: 0,
      unknownClaimed: 1,
    });
  });

  it('leaves what cannot be identified out of recall, and counts no miss for it', () => {
    const hidden = truth(90, { id: 'h', model: 'claude-sonnet-5', identifiableAt: new Set() });
    expect(metrics([truth(10), hidden], [finding(10)]).recallHigh).toBe(1);
  });

  it('does not count where it is unverified, and where it does not blame the provider', () => {
    const unverified = metrics([truth(10)], [finding(10, { grade: 'UNVERIFIED' })]);
    expect(unverified.recall).toBe(0);
    const own = metrics([truth(10)], [finding(10, { kind: 'client_metering_error', blame: 'own' })]);
    expect(own).toMatchObject({ recall: 0, high: 0, misattributed: 0 });
  });

  it('of an undercharge is found like an overcharge, and is never claimed', () => {
    const under = metrics([truth(-10)], [finding(-8)]);
    expect(under.underRecall).toBeCloseTo(0.8, 12);
    expect(under.underPrecision).toBe(1);
    expect(under.precisionHigh).toBeNaN();
  });
});
