import { describe, expect, it } from 'vitest';
import { microsOfDay } from '../../../domain/period.js';
import { expectedRates, priceCall } from '../../../domain/pricing/cost.js';
import { explainCall } from '../../../domain/pricing/explainCall.js';
import { bookWithOwnPrices, type OwnPrice } from '../../../domain/pricing/ownPrices.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type { Provider } from '../../../domain/providers.js';
import { DayRates } from '../../../domain/reconciliation/audit/dayRates.js';
import { aUsage } from '../../support/aCall.js';
import { aPeriod, bookOf, listOf, shippedBook } from './support.js';

const shipped = shippedBook();
const STATE = { updatedAtMicros: 1n, contentHash: '11111111' };
const DAY = microsOfDay('2026-11-01');
const USD = 1_000_000_000_000n;
let entries = 0;

function own(over: Partial<OwnPrice>): OwnPrice {
  entries += 1;
  return {
    id: `00000000-0000-7000-8000-${String(entries).padStart(12, '0')}`,
    kind: 'contract',
    provider: 'openai',
    model: '*',
    discountPercent: over.rates ? null : 10n * USD,
    rates: null,
    batchMultiplier: null,
    effectiveFrom: '2026-01-01',
    effectiveTo: null,
    source: { document: 'Order form 7', clause: null, url: null },
    revision: entries,
    createdAtMicros: 0n,
    createdBy: 'key_test',
    endsOn: null,
    endedAtMicros: null,
    ...over,
  };
}
const bookWith = (...prices: OwnPrice[]) => bookWithOwnPrices(shipped, prices, STATE);
const rate = (
  book: typeof shipped,
  circumstances: object = {},
  model = 'gpt-5.6-sol',
  provider: Provider = 'openai',
) => expectedRates(book, provider, model, DAY, circumstances);

describe('a discount', () => {
  it('holds for every class, tier and length that the list has, and for the provider’s batch rates', () => {
    const book = bookWith(own({}));
    for (const circumstances of [
      {},
      { serviceTier: 'priority' },
      { contextBand: 272_000 },
      { isBatch: true },
      { isBatch: true, contextBand: 272_000 },
    ]) {
      const [listed, agreed] = [rate(shipped, circumstances), rate(book, circumstances)];
      expect(listed?.assumed).toEqual(agreed?.assumed);
      for (const name of ['input', 'output', 'cache_read', 'cache_write_5m'] as const)
        expect(agreed?.rates[name]).toBe(((listed?.rates[name] ?? 0n) * 9n) / 10n);
    }
  });

  it('is rounded half to even at a trillionth of a dollar', () => {
    const list = bookOf(
      readPriceFile(
        listOf([{ provider: 'openai', model: 'm', rates: [aPeriod({ input: 5e-12, output: 3e-12 })] }]),
      ),
    );
    const book = bookWithOwnPrices(list, [own({ discountPercent: 50n * USD })], STATE);
    // 2.5 and 1.5 both go to 2.
    expect(rate(book, {}, 'm')?.rates).toMatchObject({ input: 2n, output: 2n });
  });

  it('lowers cost_usd of batch by half of the agreed rate', () => {
    const call = {
      biller: 'openai' as const,
      model: 'gpt-5.6-sol',
      atMicros: DAY,
      isBatch: true,
      serviceTier: null,
      usage: aUsage({ input: 1_000 }),
    };
    expect(priceCall(bookWith(own({})), call).computedPico).toBe(1_800_000_000n);
  });

  it('leaves a disputed list price disputed, and other providers alone', () => {
    const disputed = [...shipped.periods()].find((one) => one.disputed && one.entry.provider === 'mistral');
    const model = disputed?.entry.model ?? '';
    const book = bookWith(own({ provider: 'mistral' }));
    expect(book.find('mistral', model, DAY)).toMatchObject({ disputed: true, agreement: 'contract' });
    expect(book.find('openai', 'gpt-4', DAY)).toBe(shipped.find('openai', 'gpt-4', DAY));
  });
});

describe('rates', () => {
  it('take the place of the standard service’s ordinary ones; tiers and long requests stay as listed', () => {
    const book = bookWith(own({ model: 'gpt-5.6-sol', rates: { input: 3n * USD } }));
    expect(rate(book)?.rates).toMatchObject({ input: 3n * USD, output: 20n * USD });
    for (const circumstances of [{ serviceTier: 'priority' }, { contextBand: 272_000 }, { isBatch: true }])
      expect(rate(book, circumstances)?.rates).toEqual(rate(shipped, circumstances)?.rates);
  });

  it('with a batch multiplier settle batch for every class', () => {
    const book = bookWith(
      own({ model: 'gpt-5.6-sol', rates: { input: 3n * USD }, batchMultiplier: (4n * USD) / 10n }),
    );
    expect(rate(book, { isBatch: true })).toMatchObject({
      rates: { input: 1_200_000_000_000n, output: 8n * USD },
      bases: { input: 'multiplier', output: 'multiplier' },
    });
  });

  it('close the gap of a class without a rate in any source', () => {
    expect(rate(shipped, {}, 'gpt-4')?.assumed).toContain('cache_read');
    const book = bookWith(own({ kind: 'override', model: 'gpt-4', rates: { cache_read: USD } }));
    expect(rate(book, {}, 'gpt-4')?.assumed).not.toContain('cache_read');
  });

  it('settle what the sources dispute when they name both input and output', () => {
    const model =
      [...shipped.periods()].find((one) => one.disputed && one.entry.provider === 'mistral')?.entry.model ??
      '';
    const disputedWith = (rates: OwnPrice['rates']) =>
      bookWith(own({ provider: 'mistral', kind: 'override', model, rates })).find('mistral', model, DAY)
        ?.disputed;
    expect(disputedWith({ input: USD })).toBe(true);
    expect(disputedWith({ input: USD, output: USD })).toBe(false);
  });
});

describe('the calls that an entry covers', () => {
  it('is a price entry with all its aliases, fine-tuned ids and spellings', () => {
    const entry = shipped.entriesOf('anthropic').find((one) => one.entry.aliases.length > 0)?.entry;
    const [alias = ''] = entry?.aliases ?? [];
    const book = bookWith(own({ provider: 'anthropic', model: alias, rates: { input: 7n } }));
    for (const id of [entry?.model ?? '', alias, alias.toUpperCase(), `anthropic/${alias}`])
      expect(book.find('anthropic', id, DAY)?.version.rates.input).toBe(7n);
  });

  it('is a family where no entry has the id, all its members alike', () => {
    const book = bookWith(own({ provider: 'aws_bedrock', model: 'claude-sonnet-4-5', rates: { input: 7n } }));
    const members = book
      .entriesOf('aws_bedrock')
      .filter(({ entry }) => entry.canonicalFamily === 'claude-sonnet-4-5');
    expect(members.length).toBeGreaterThan(2);
    for (const { periods } of members) expect(periods.at(-1)?.version.rates.input).toBe(7n);
  });

  it('leaves an id without a price of its own that only its family priced, when the family no longer has one price', () => {
    const list = bookOf(
      readPriceFile(
        listOf([
          { provider: 'openai', model: 'm-2026-01-01', canonical_family: 'm' },
          { provider: 'openai', model: 'm-2026-02-01', canonical_family: 'm' },
        ]),
      ),
    );
    expect(list.find('openai', 'm-2026-03-01', DAY)?.matchedBy).toBe('family');
    const one = bookWithOwnPrices(list, [own({ model: 'm-2026-01-01', rates: { input: 7n } })], STATE);
    expect(one.whyMissing('openai', 'm-2026-03-01', DAY)).toBe('several_prices');
    const both = bookWithOwnPrices(list, [own({ model: 'm', rates: { input: 7n } })], STATE);
    expect(both.find('openai', 'm-2026-03-01', DAY)?.version.rates.input).toBe(7n);
  });

  it('does not make the provider the maker of a model that only an own price has', () => {
    const book = bookWith(own({ kind: 'override', model: 'in-house', rates: { input: 1n, output: 1n } }));
    expect(book.find('openai', 'in-house', DAY)?.agreement).toBe('override');
    expect(book.inferProvider('in-house')).toBeUndefined();
  });
});

describe('the origin of an own price', () => {
  it('is shown for each rate: the contract, the override, or still the sources', () => {
    const book = bookWith(
      own({ kind: 'override', model: 'gpt-5.6-sol', rates: { input: 3n * USD } }),
      own({ model: 'gpt-5.6-sol', rates: { output: 18n * USD } }),
    );
    const explained = explainCall(book, {
      biller: 'openai',
      model: 'gpt-5.6-sol',
      atMicros: DAY,
      isBatch: false,
      serviceTier: null,
      usage: aUsage({ input: 1, output: 1, cacheRead: 1 }),
    });
    if ('reason' in explained) throw new Error(explained.reason);
    expect(explained.computed.lines.map(({ tokenClass, sources }) => [tokenClass, sources])).toEqual([
      ['input', ['override']],
      ['cache_read', ['genai_prices', 'litellm']],
      ['output', ['contract']],
    ]);
    expect(explained.ownPrices.map(({ statement }) => statement.kind)).toEqual(['override', 'contract']);
  });

  it('reaches the judgement of a bill: its source, its agreement, and no dispute', () => {
    const rates = new DayRates(
      bookWith(own({ model: 'gpt-5.6-sol', rates: { input: 3n * USD, output: 18n * USD } })),
      'openai',
      DAY,
    );
    expect(rates.provenance('gpt-5.6-sol')).toEqual({
      priceSource: 'contract',
      agreement: 'contract',
      disputed: false,
    });
  });

  it('includes the list without the contract, and a name of its own', () => {
    const book = bookWith(
      own({ kind: 'override', model: 'gpt-4', rates: { input: 7n } }),
      own({ discountPercent: 50n * USD }),
    );
    expect(book.list.find('openai', 'gpt-4', DAY)?.version.rates.input).toBe(7n);
    expect(book.find('openai', 'gpt-4', DAY)?.version.rates.input).toBe(4n);
    expect(bookWith()).toBe(shipped);
    expect(shipped.list).toBe(shipped);
    expect(book.versionAt(DAY)).not.toBe(shipped.versionAt(DAY));
  });
});
