/** An own price that names its document proves a rate as a contract does. */
import { describe, expect, it } from 'vitest';
import { bookWithOwnPrices } from '../../../../../domain/pricing/ownPrices.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { BOOK } from '../../support.js';
import { calls, lines } from '../causes/support.js';
import { daysOf, isBetween, theFinding, useOf } from './support.js';

const USD = 10n ** 12n;
/** One public source lists this model. */
const MYTHOS = { provider: 'anthropic', model: 'claude-mythos-5' } as const;

const ownPrice = (document: string | null) =>
  bookWithOwnPrices(
    BOOK,
    [
      {
        id: '00000000-0000-0000-0000-000000000001',
        kind: 'override',
        ...MYTHOS,
        discountPercent: null,
        rates: {
          input: 10n * USD,
          output: 50n * USD,
          cache_read: USD,
          cache_write_5m: (25n * USD) / 2n,
          cache_write_1h: 20n * USD,
        },
        batchMultiplier: null,
        effectiveFrom: '2026-01-01',
        effectiveTo: null,
        source: document === null ? null : { document, clause: null, url: null },
        revision: 1,
        createdAtMicros: 0n,
        createdBy: '',
        endsOn: null,
        endedAtMicros: null,
      },
    ],
    { updatedAtMicros: 0n, contentHash: '00000001' },
  );

/** Cached reads at the input rate on five days between right ones. */
function readsAtInputRate(book: typeof BOOK) {
  const days = daysOf(20, (at, day) => ({
    billed: lines(useOf(at), {}, {}, { ...MYTHOS, book, day }).map((line) =>
      isBetween(at, 8, 12) && line.tokenClass === 'cache_read'
        ? { ...line, amountPico: line.amountPico * 10n }
        : line,
    ),
    observed: [calls(useOf(at), { calls: 500 }, { ...MYTHOS, day })],
  }));
  const { findings } = reconcileDays(
    'anthropic',
    days,
    { agreed: book, list: book.list },
    DEFAULT_WEIGHTS,
    [],
  );
  return theFinding(findings);
}

describe('an own price', () => {
  it('with its document supports HIGH and a claim, as a contract does', () => {
    const finding = readsAtInputRate(ownPrice('Price announcement of 2026-08-14'));
    expect(finding).toMatchObject({ kind: 'cache_read_rate_mismatch', grade: 'HIGH', claimable: true });
    expect(finding.missing).toEqual([]);
  });

  it('without a document is the organization’s word, which a second source has to confirm', () => {
    const finding = readsAtInputRate(ownPrice(null));
    expect(finding.missing).toContain('price_sources_agree');
    expect([finding.grade, finding.claimable]).toEqual(['MEDIUM', false]);
  });
});
