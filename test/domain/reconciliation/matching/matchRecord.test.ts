import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../../domain/billing/billedRow.js';
import { PICO_PER_USD } from '../../../../domain/money.js';
import type { ClassLine } from '../../../../domain/reconciliation/matching/cells.js';
import {
  billedQuantityOf,
  describeMatch,
  type MatchFigures,
  reasonsOfMatch,
} from '../../../../domain/reconciliation/matching/matchRecord.js';

const line = (over: Partial<ClassLine>): ClassLine => ({
  tokenClass: 'input',
  billedQuantity: QUANTITY_ONE,
  observedQuantity: 0n,
  billedPico: 1n,
  expectedOfBilledPico: null,
  expectedOfObservedPico: null,
  split: 'bill',
  rows: 1,
  ...over,
});

const MATCHED: MatchFigures = {
  accountId: 'a',
  matchStatus: 'matched',
  provisional: false,
  reason: null,
  eventCount: 3,
  providerCostPico: 100n * PICO_PER_USD,
  ratePico: 0n,
  volumePico: 0n,
  ownPricingPico: 0n,
};
const reasons = (over: Partial<MatchFigures>) => reasonsOfMatch({ ...MATCHED, ...over });

describe('the reasons of a record', () => {
  it('are none for what matches', () => {
    expect(reasons({})).toEqual([]);
  });

  it('are the bucket’s own first, then what its figures show', () => {
    expect(
      reasons({ matchStatus: 'unmatched', reason: 'not_observable', provisional: true, accountId: '' }),
    ).toEqual(['not_observable', 'provisional', 'account_unknown']);
    expect(reasons({ matchStatus: 'unmatched', eventCount: 0 })).toEqual(['no_calls']);
  });

  it('name the parts of a gap that are beyond the tolerance', () => {
    const beyond = PICO_PER_USD;
    const within = PICO_PER_USD / 100n;
    const partial = (rate: bigint, volume: bigint, own: bigint) =>
      reasons({ matchStatus: 'partial', ratePico: rate, volumePico: volume, ownPricingPico: own });
    expect(partial(beyond, within, -within)).toEqual(['rate_differs']);
    expect(partial(0n, -beyond, beyond)).toEqual(['quantities_differ', 'own_pricing_differs']);
    expect(
      reasons({ matchStatus: 'partial', ratePico: null, volumePico: null, ownPricingPico: null }),
    ).toEqual(['no_quantities']);
  });
});

describe('a billed quantity', () => {
  it('is of tokens where there are any, else of requests, else unknown', () => {
    const requests = line({ tokenClass: 'requests', billedQuantity: 7n });
    expect(billedQuantityOf([line({}), line({ tokenClass: 'output' }), requests])).toEqual({
      quantity: 2n * QUANTITY_ONE,
      unit: 'tokens',
    });
    expect(billedQuantityOf([requests])).toEqual({ quantity: 7n, unit: 'requests' });
    for (const lines of [
      [],
      [line({ billedQuantity: null })],
      [line({}), line({ tokenClass: 'other', billedQuantity: null })],
    ])
      expect(billedQuantityOf(lines)).toEqual({ quantity: null, unit: null });
  });
});

describe('a description', () => {
  it('is model and charged classes, the bill’s own label, or calls without a charge', () => {
    expect(describeMatch('m', [line({}), line({ tokenClass: 'output', rows: 0 })])).toBe('m: input');
    expect(describeMatch('Storage', [line({ tokenClass: 'other' })])).toBe('Storage');
    expect(describeMatch('m', [line({ rows: 0 })])).toBe('m: calls without a charge');
  });
});
