import { describe, expect, it } from 'vitest';
import { priceTable } from '../../../domain/pricing/pricedModel.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import { AS_OF, aPeriod, bookOf, listOf, microsOf, shippedBook, shippedJson } from './support.js';

describe('the public price table', () => {
  const book = shippedBook();
  const rows = new Map(priceTable(book, AS_OF).map((row) => [row.family, row]));

  it('has one row for every family of the list', () => {
    expect([...rows.keys()].sort()).toEqual(
      [...new Set(shippedJson().models.map((entry) => entry.canonical_family))].sort(),
    );
  });

  it('never shows an unknown cache rate as zero: the input rate replaces it and is named', () => {
    for (const row of rows.values()) {
      const known = row.priced.version.rates;
      expect(row.assumed.includes('cache_read')).toBe(known.cache_read === null);
      expect(row.assumed.includes('cache_creation')).toBe(known.cache_write_5m === null);
      expect(row.cacheRead).toBe(known.cache_read ?? row.input);
      expect(row.cacheCreation).toBe(known.cache_write_5m ?? row.input);
    }
  });

  it('lets the maker speak for a family, not a reseller', () => {
    expect(rows.get('gpt-4o')?.priced.entry).toMatchObject({ provider: 'openai', model: 'gpt-4o' });
    expect(rows.get('claude-sonnet-4-5')?.priced.entry.provider).toBe('anthropic');
    expect(rows.get('gpt-5.3-chat')?.priced.entry.provider).toBe('openai');
    expect(rows.get('nova-lite')?.priced.entry.model).toBe('amazon.nova-lite-v1:0');
  });

  it('prefers the entry of the family’s own name, then the newest date, then an alias', () => {
    const speaker = (...entries: Parameters<typeof listOf>[0]) => {
      const list = entries.map((entry) => ({ canonical_family: 'm', ...entry }));
      return priceTable(bookOf(readPriceFile(listOf(list))), AS_OF)[0]?.priced.entry.model;
    };
    const at = (model: string, aliases: string[] = []) => ({ provider: 'mistral', model, aliases });
    expect(speaker(at('m-2512'), at('m'), at('m-latest'))).toBe('m');
    expect(speaker(at('m-2411', ['m']), at('m-2512'), at('m-latest'))).toBe('m-2512');
    expect(speaker(at('m-2024-08-06'), at('m-20250101'))).toBe('m-20250101');
    expect(speaker(at('m-beta'), at('m-latest', ['m']))).toBe('m-latest');
    expect(speaker(at('m-beta'), at('m-latest'))).toBe('m-beta');
    expect(speaker({ provider: 'azure_openai', model: 'm', first_party: false }, at('m-latest'))).toBe(
      'm-latest',
    );
  });

  it('shows the price in force at the time asked for', () => {
    const dated = bookOf(
      readPriceFile(
        listOf([
          {
            provider: 'openai',
            model: 'm',
            rates: [
              aPeriod({ input: 1, output: 2 }, { effective_to: '2026-12-01' }),
              aPeriod({ input: 3, output: 4 }, { effective_from: '2026-12-01' }),
            ],
          },
        ]),
      ),
    );
    const input = (iso: string) => priceTable(dated, microsOf(iso))[0]?.input;
    expect(input('2026-11-30T23:59:59.999999Z')).toBe(1_000_000_000_000n);
    expect(input('2026-12-01')).toBe(3_000_000_000_000n);
  });
});
