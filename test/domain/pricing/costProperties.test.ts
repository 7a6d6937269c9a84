import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOKEN_CLASSES } from '../../../domain/events/event.js';
import { expectedRates, priceCall } from '../../../domain/pricing/cost.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type { Provider } from '../../../domain/providers.js';
import { aUsage } from '../../support/aCall.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { equal, fraction, gapNames, plainCost, plainPrice, round, type Tokens } from './rationalModel.js';
import { AS_OF, aCall, aPeriod, bookOf, listOf, shippedBook, shippedJson } from './support.js';

const book = shippedBook();
const json = shippedJson();

/** Model names of the list with the period in force at AS_OF. */
const priced = json.models.flatMap((entry) => {
  const period = entry.rates.find(
    (one) =>
      (one.effective_from === null || one.effective_from <= '2026-11-20') &&
      (one.effective_to === null || one.effective_to > '2026-11-20'),
  );
  return period ? [{ provider: entry.provider as Provider, model: entry.model, period }] : [];
});

const tokens = fc.oneof(fc.nat(5_000), fc.nat(400_000), fc.constantFrom(0, 1, 999_999_999_999));
const usages = fc
  .record({
    input: tokens,
    cacheRead: tokens,
    cacheCreation: tokens,
    output: tokens,
    inputAudio: fc.oneof(fc.constant(0), tokens),
    outputAudio: fc.oneof(fc.constant(0), tokens),
    longShare: fc.constantFrom(null, 0, 0.5, 1),
  })
  .map(({ longShare, ...rest }) =>
    aUsage({
      ...rest,
      cacheCreation1h: longShare === null ? null : Math.floor(rest.cacheCreation * longShare),
    }),
  );
const tiers = fc.constantFrom('standard', 'flex', 'priority', 'batch', 'ultrafast', 'fast', 'decisions');

/** `fast` is OpenAI's other word for priority. */
function tierAt(provider: string, tier: string): string {
  return tier === 'fast' && (provider === 'openai' || provider === 'azure_openai') ? 'priority' : tier;
}

function plainTokens(usage: ReturnType<typeof aUsage>): Tokens {
  const long = usage.cacheCreation1h ?? 0;
  return {
    input: usage.input,
    cache_read: usage.cacheRead,
    cache_write_5m: usage.cacheCreation - long,
    cache_write_1h: long,
    output: usage.output,
    input_audio: usage.inputAudio,
    output_audio: usage.outputAudio,
  };
}

describe('the cost of any call', () => {
  it('equals the rules of the price data over plain fractions, for every model, tier, length and class', () => {
    fc.assert(
      fc.property(fc.nat(priced.length - 1), tiers, fc.boolean(), usages, (index, tier, isBatch, usage) => {
        const { provider, model, period } = priced[index] as (typeof priced)[number];
        const got = priceCall(book, aCall({ biller: provider, model, usage, isBatch, serviceTier: tier }));
        const batch = isBatch || tier === 'batch';
        const used = plainTokens(usage);
        const flatPriority = provider === 'openai' || provider === 'azure_openai';
        const plain = plainPrice(period, batch ? 'standard' : tierAt(provider, tier), used, flatPriority);
        expect(got.computedPico).toBe(round(plainCost(plain, used, fraction(batch ? 0.5 : 1))));
        expect(got.contextBand).toBe(plain.band);
        expect([...got.priceGaps].sort()).toEqual(gapNames(plain, used));
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  it('does so for prices that no list has yet: any tiers, boundaries and missing rates', () => {
    const rate = fc.integer({ min: 1, max: 50_000 }).map((n) => n / 1_000);
    const maybe = fc.option(rate);
    const rates = fc.record({
      input: rate,
      output: rate,
      cache_read: maybe,
      cache_write_5m: maybe,
      cache_write_1h: maybe,
      input_audio: maybe,
      output_audio: maybe,
    });
    const bands = fc.subarray([1_000, 5_000, 20_000]);
    const service = (name: string | undefined) =>
      fc
        .tuple(fc.boolean(), bands, fc.array(rates, { minLength: 4, maxLength: 4 }))
        .map(([offered, above, [flat, ...long]]) => [
          ...(name !== undefined && offered ? [{ ...flat, service_tier: name }] : []),
          ...(name === undefined || offered ? above : []).map((boundary, index) => ({
            ...long[index],
            above_input_tokens: boundary,
            ...(name === undefined ? {} : { service_tier: name }),
          })),
        ]);
    const periods = fc
      .tuple(
        rates,
        fc.option(fc.constantFrom(0.5, 0.8, 0.333)),
        fc.tuple(service(undefined), service('flex'), service('priority'), service('batch')),
      )
      .map(([flat, batch_multiplier, tierLists]) =>
        aPeriod(flat, { batch_multiplier, tiers: tierLists.flat() }),
      );
    const lengths = fc.constantFrom(0, 1, 999, 1_000, 1_001, 4_999, 5_001, 20_001);
    fc.assert(
      fc.property(
        periods,
        fc.constantFrom<Provider>('openai', 'anthropic'),
        fc.constantFrom('standard', 'flex', 'priority', 'batch', 'fast'),
        fc.boolean(),
        fc.tuple(lengths, lengths, lengths, lengths, lengths, lengths),
        (
          period,
          provider,
          tier,
          isBatch,
          [input, cacheRead, cacheCreation, output, inputAudio, outputAudio],
        ) => {
          const made = bookOf(readPriceFile(listOf([{ provider, model: 'm', rates: [period] }])));
          const usage = aUsage({
            input,
            cacheRead,
            cacheCreation,
            cacheCreation1h: Math.floor(cacheCreation / 2),
            output,
            inputAudio,
            outputAudio,
          });
          const used = plainTokens(usage);
          const got = priceCall(
            made,
            aCall({ biller: provider, model: 'm', usage, isBatch, serviceTier: tier }),
          );
          const batch = isBatch || tier === 'batch';
          const flatPriority = provider === 'openai';
          const plain = plainPrice(period, batch ? 'standard' : tierAt(provider, tier), used, flatPriority);
          expect(got.computedPico).toBe(round(plainCost(plain, used, fraction(batch ? 0.5 : 1))));
          expect(got.contextBand).toBe(plain.band);
          expect([...got.priceGaps].sort()).toEqual(gapNames(plain, used));
          const charge = plainPrice(period, batch ? 'batch' : tierAt(provider, tier), used, flatPriority);
          const expected = expectedRates(made, provider, 'm', AS_OF, {
            serviceTier: tier,
            isBatch,
            contextBand: charge.band,
          });
          for (const name of TOKEN_CLASSES) {
            const { n, d } = charge.rates[name];
            expect(expected?.rates[name], name).toBe(round({ n: n * 10n ** 12n, d }));
          }
          expect([...(expected?.assumed ?? [])].sort()).toEqual(gapNames(charge));
        },
      ),
      { numRuns: propertyRuns(400) },
    );
  });

  it('is the expected charge too, class by class, with the provider’s own batch rates', () => {
    fc.assert(
      fc.property(fc.nat(priced.length - 1), tiers, usages, (index, tier, usage) => {
        const { provider, model, period } = priced[index] as (typeof priced)[number];
        const used = plainTokens(usage);
        const flatPriority = provider === 'openai' || provider === 'azure_openai';
        const plain = plainPrice(period, tierAt(provider, tier), used, flatPriority);
        const expected = expectedRates(book, provider, model, AS_OF, {
          serviceTier: tier,
          contextBand: plain.band,
        });
        if (!expected) throw new Error(`${provider} ${model} has no price`);
        for (const name of TOKEN_CLASSES) {
          const rate = plain.rates[name];
          expect(expected.rates[name], name).toBe(round({ n: rate.n * 10n ** 12n, d: rate.d }));
        }
        expect([...expected.assumed].sort()).toEqual(gapNames(plain));
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  it('has a plain model that is not the product’s own', () => {
    expect(equal(fraction(0.144375), { n: 144_375n, d: 1_000_000n })).toBe(true);
    expect(equal(fraction(1e-7), { n: 1n, d: 10_000_000n })).toBe(true);
    expect([round({ n: 5n, d: 2n }), round({ n: 7n, d: 2n }), round({ n: 8n, d: 3n })]).toEqual([2n, 4n, 3n]);
  });
});
