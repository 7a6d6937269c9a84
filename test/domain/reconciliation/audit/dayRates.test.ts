import { describe, expect, it } from 'vitest';
import { microsOfDay } from '../../../../domain/period.js';
import { bookWithOwnPrices, type OwnPrice } from '../../../../domain/pricing/ownPrices.js';
import { DayRates } from '../../../../domain/reconciliation/audit/dayRates.js';
import { BOOK } from '../support.js';

const DAY = microsOfDay('2026-10-05');
const USD = 10n ** 12n;
const azure = new DayRates(BOOK, 'azure_openai', DAY);
const at = (region: string | null, more: { serviceTier?: string; isBatch?: boolean } = {}) => ({
  serviceTier: 'standard',
  isBatch: false,
  longContext: false,
  contextBand: 0,
  region,
  ...more,
});

describe('the rates of Azure’s places', () => {
  it.each(['data_zone', 'regional'])('a meter of %s has the price of the data zones', (place) => {
    expect(azure.rate('gpt-5.1', 'input', at(place))).toEqual({
      rate: (1_375n * USD) / 1_000n,
      assumed: false,
    });
    expect(azure.rate('gpt-5.1', 'output', at(place))).toEqual({ rate: 11n * USD, assumed: false });
    expect(azure.rate('gpt-5.1', 'cache_read', at(place))?.rate).toBe((1_375n * USD) / 10_000n);
    expect(azure.rate('gpt-5.1', 'output', at(place, { isBatch: true }))?.rate).toBe((55n * USD) / 10n);
    expect(azure.rate('gpt-5.1', 'input', at(place, { serviceTier: 'priority' }))?.rate).toBe(
      (275n * USD) / 100n,
    );
  });

  it('a meter of the global deployment has the ordinary price, and an unknown place an assumed one', () => {
    expect(azure.rate('gpt-5.1', 'input', at(null))).toEqual({ rate: (125n * USD) / 100n, assumed: false });
    expect(azure.rate('gpt-5.1', 'input', at('moon'))?.assumed).toBe(true);
    expect(azure.rate('gpt-35-turbo', 'input', at('data_zone'))?.assumed).toBe(true);
  });

  it('are one other price of the model; other providers have no such places', () => {
    expect(azure.regionsOf('gpt-5.1')).toEqual(['data_zone']);
    expect(azure.regionsOf('gpt-35-turbo')).toEqual([]);
    const openai = new DayRates(BOOK, 'openai', DAY);
    expect(openai.regionsOf('gpt-5.4').sort()).toEqual(['eu', 'us']);
    expect(openai.rate('gpt-5.4', 'input', at('data_zone'))?.assumed).toBe(true);
  });

  it('raise an own price by the same factor', () => {
    const rates = new DayRates(
      withOwn({ input: 4n * USD, output: 20n * USD }, 'Announcement'),
      'azure_openai',
      DAY,
    );
    expect(rates.rate('gpt-5-mini', 'input', at('data_zone'))?.rate).toBe((44n * USD) / 10n);
  });
});

function withOwn(rates: OwnPrice['rates'], document: string | null) {
  const price: OwnPrice = {
    id: '00000000-0000-0000-0000-000000000001',
    kind: 'override',
    provider: 'azure_openai',
    model: 'gpt-5-mini',
    discountPercent: null,
    rates,
    batchMultiplier: null,
    effectiveFrom: '2026-01-01',
    effectiveTo: null,
    source: document === null ? null : { document, clause: null, url: null },
    revision: 1,
    createdAtMicros: 0n,
    createdBy: '',
    endsOn: null,
    endedAtMicros: null,
  };
  return bookWithOwnPrices(BOOK, [price], { updatedAtMicros: 0n, contentHash: '00000001' });
}

describe('the proof of an own price', () => {
  const both = { input: USD, output: 2n * USD };
  const isDocumented = (rates: OwnPrice['rates'], document: string | null) =>
    new DayRates(withOwn(rates, document), 'azure_openai', DAY).isDocumented('gpt-5-mini');

  it('is its document, where it sets the main rates', () => {
    expect(isDocumented(both, 'Announcement')).toBe(true);
    expect(isDocumented(both, null)).toBe(false);
    expect(isDocumented({ output: USD }, 'Announcement')).toBe(false);
    expect(azure.isDocumented('gpt-5-mini')).toBe(false);
    expect(azure.isDocumented('no-such-model')).toBe(false);
  });

  it('settles the classes that it names, on which the sources of the list differ', () => {
    const contested = (rates: OwnPrice['rates'], document: string | null) =>
      new DayRates(withOwn(rates, document), 'azure_openai', DAY).contestedClasses('gpt-5-mini');
    expect(azure.contestedClasses('gpt-5-mini')).toEqual(['cache_read']);
    expect(contested(both, 'Announcement')).toEqual(['cache_read']);
    expect(contested({ ...both, cache_read: USD / 10n }, 'Announcement')).toEqual([]);
    expect(contested({ ...both, cache_read: USD / 10n }, null)).toEqual(['cache_read']);
  });
});
