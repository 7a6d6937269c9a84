import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOKEN_CLASSES } from '../../../domain/events/event.js';
import { type CallToPrice, expectedRates, priceCall, tokensByClass } from '../../../domain/pricing/cost.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type { Provider } from '../../../domain/providers.js';
import { equal, fraction, gapNames, plainCost, plainPrice, round, type Tokens } from './rationalModel.js';
import { AS_OF, aPeriod, aUsage, bookOf, listOf, microsOf, shippedBook, shippedJson } from './support.js';

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

function call(over: Partial<CallToPrice> = {}): CallToPrice {
  return {
    biller: 'openai',
    model: 'gpt-5.6-sol',
    atMicros: AS_OF,
    usage: aUsage({ input: 200, cacheRead: 1000, output: 300 }),
    isBatch: false,
    serviceTier: null,
    ...over,
  };
}

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

describe('the cost of a call', () => {
  it('equals the rules of the price data over plain fractions, for every model, tier, length and class', () => {
    fc.assert(
      fc.property(fc.nat(priced.length - 1), tiers, fc.boolean(), usages, (index, tier, isBatch, usage) => {
        const { provider, model, period } = priced[index] as (typeof priced)[number];
        const got = priceCall(book, call({ biller: provider, model, usage, isBatch, serviceTier: tier }));
        const batch = isBatch || tier === 'batch';
        const used = plainTokens(usage);
        const flatPriority = provider === 'openai' || provider === 'azure_openai';
        const plain = plainPrice(period, batch ? 'standard' : tierAt(provider, tier), used, flatPriority);
        expect(got.computedPico).toBe(round(plainCost(plain, used, fraction(batch ? 0.5 : 1))));
        expect(got.contextBand).toBe(plain.band);
        expect([...got.priceGaps].sort()).toEqual(gapNames(plain, used));
      }),
      { numRuns: 4_000 },
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
            call({ biller: provider, model: 'm', usage, isBatch, serviceTier: tier }),
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
      { numRuns: 1_500 },
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
      { numRuns: 2_000 },
    );
  });

  it('follows interface.md’s example: cached and uncached input are different classes', () => {
    // 200 × 4 + 1000 × 0.4 + 300 × 20 = 7200 per million
    expect(priceCall(book, call()).computedPico).toBe(7_200_000_000n);
  });

  it('adds up over classes whatever the split, since it is rounded once', () => {
    const list = listOf([
      { provider: 'openai', model: 'odd', rates: [aPeriod({ input: 0.0000015, output: 0.0000025 })] },
    ]);
    const odd = bookOf(readPriceFile(list));
    const one = (usage: Parameters<typeof aUsage>[0], isBatch = false) =>
      priceCall(odd, call({ model: 'odd', usage: aUsage(usage), isBatch })).computedPico;
    expect(one({ input: 1 })).toBe(2n); // 1.5 → 2
    expect(one({ output: 1 })).toBe(2n); // 2.5 → 2
    expect(one({ input: 1, output: 1 })).toBe(4n);
    expect(one({ input: 1, output: 1 }, true)).toBe(2n);
    expect(one({ input: 2, output: 0 }, true)).toBe(2n); // 1.5 → 2
  });

  it('takes the rates of a long request for all of its tokens, only when its whole input exceeds the boundary', () => {
    const at = (over: Parameters<typeof aUsage>[0]) => priceCall(book, call({ usage: aUsage(over) }));
    const just = at({ input: 100_000, cacheRead: 172_000, output: 1_000_000 });
    const more = at({
      input: 100_000,
      cacheRead: 172_000,
      inputAudio: 0,
      cacheCreation: 1,
      output: 1_000_000,
    });
    expect(just).toMatchObject({ contextBand: 0, computedPico: 20_468_800_000_000n });
    expect(more.contextBand).toBe(272_000);
    expect(more.computedPico).toBe(800_000_000_000n + 137_600_000_000n + 10_000_000n + 30_000_000_000_000n);
    const xai = (input: number) =>
      priceCall(book, call({ biller: 'xai', model: 'grok-4.20', usage: aUsage({ input }) })).contextBand;
    expect([xai(199_999), xai(200_000)]).toEqual([0, 199_999]);
  });

  it('keeps priority’s flat rate at OpenAI where only the standard service charges long requests more', () => {
    const long = call({ model: 'gpt-5.4', usage: aUsage({ input: 300_000 }), serviceTier: 'priority' });
    expect(priceCall(book, long)).toEqual({
      computedPico: 1_500_000_000_000n,
      priceGaps: [],
      contextBand: 0,
    });
  });

  it('raises another tier’s rate as the standard rate is raised, and says that it is assumed', () => {
    const long = call({
      biller: 'google',
      model: 'gemini-2.5-pro',
      usage: aUsage({ input: 300_000 }),
      serviceTier: 'flex',
    });
    // flex 0.625, standard 1.25 → 2.5
    expect(priceCall(book, long)).toEqual({
      computedPico: 375_000_000_000n,
      priceGaps: ['long_context'],
      contextBand: 200_000,
    });
  });

  it('prices a class that no source gives a rate as text input, and names it', () => {
    const usage = aUsage({ input: 1_000, cacheRead: 1_000, cacheCreation: 1_000, cacheCreation1h: 400 });
    const got = priceCall(book, call({ model: 'gpt-4', usage }));
    expect(got).toEqual({
      computedPico: 90_000_000_000n,
      priceGaps: ['cache_read', 'cache_write_5m', 'cache_write_1h'],
      contextBand: 0,
    });
    expect(priceCall(book, call({ model: 'gpt-4', usage: aUsage({ input: 1 }) })).priceGaps).toEqual([]);
  });

  it('prices speech by its own rate, and as text where none is known', () => {
    const usage = aUsage({ inputAudio: 1_000_000, outputAudio: 1_000_000 });
    expect(priceCall(book, call({ model: 'gpt-audio', usage }))).toMatchObject({
      computedPico: 96_000_000_000_000n,
      priceGaps: [],
    });
    expect(priceCall(book, call({ usage: aUsage({ outputAudio: 1_000_000 }) }))).toMatchObject({
      computedPico: 20_000_000_000_000n,
      priceGaps: ['output_audio'],
    });
  });

  it('counts a cache write of unknown lifetime as the ordinary kind, and never more tokens than were written', () => {
    expect(tokensByClass(aUsage({ cacheCreation: 10 }))).toMatchObject({
      cache_write_5m: 10,
      cache_write_1h: 0,
    });
    expect(tokensByClass(aUsage({ cacheCreation: 10, cacheCreation1h: 4 }))).toMatchObject({
      cache_write_5m: 6,
      cache_write_1h: 4,
    });
    expect(tokensByClass(aUsage({ cacheCreation: 10, cacheCreation1h: 40 }))).toMatchObject({
      cache_write_5m: 0,
      cache_write_1h: 10,
    });
    const usage = aUsage({ cacheCreation: 1_000_000, cacheCreation1h: 40_000_000 });
    const price = priceCall(book, call({ biller: 'anthropic', model: 'claude-haiku-4-5', usage }));
    expect(price.computedPico).toBe(2_000_000_000_000n);
  });

  it('halves every class of a batch call, where the provider itself charges otherwise', () => {
    const usage = aUsage({ input: 1_000_000, cacheRead: 1_000_000, output: 1_000_000 });
    const batch = call({ biller: 'xai', model: 'grok-4.20', usage, isBatch: true });
    expect(priceCall(book, batch).computedPico).toBe(4_950_000_000_000n - 1_000_000_000_000n);
    const expected = expectedRates(book, 'xai', 'grok-4.20', AS_OF, { isBatch: true, contextBand: 199_999 });
    expect(expected?.rates).toMatchObject({
      input: 2_000_000_000_000n,
      cache_read: 320_000_000_000n,
      output: 4_000_000_000_000n,
    });
  });

  it('knows that batch bills cached input in full at some models', () => {
    const rates = expectedRates(book, 'google', 'gemini-2.5-pro', AS_OF, { isBatch: true })?.rates;
    expect(rates).toMatchObject({ input: 625_000_000_000n, cache_read: 125_000_000_000n });
  });

  it('takes half for batch where no source lists batch rates, and says so', () => {
    const expected = expectedRates(book, 'openai', 'gpt-4-32k', AS_OF, { isBatch: true });
    expect(expected?.assumed).toContain('batch');
    expect(expected?.rates.input).toBe(30_000_000_000_000n);
  });

  it('finds the rates that a bill means by its word for long requests alone', () => {
    const long = expectedRates(book, 'openai', 'gpt-5.6-sol', AS_OF, { longContext: true });
    expect(long).toMatchObject({ contextBand: 272_000 });
    expect(long?.rates.output).toBe(30_000_000_000_000n);
  });

  it('prices by the rates in force when the call began', () => {
    const at = (iso: string) =>
      priceCall(book, call({ atMicros: microsOf(iso), usage: aUsage({ input: 100_000 }) })).computedPico;
    expect(at('2026-08-20T23:59:59.999999Z')).toBe(500_000_000_000n);
    expect(at('2026-08-21T00:00:00Z')).toBe(400_000_000_000n);
    expect(at('2019-01-01T00:00:00Z')).toBe(500_000_000_000n);
  });

  it('never turns an unknown model into a free one', () => {
    expect(priceCall(book, call({ model: 'no-such-model' }))).toEqual({
      computedPico: null,
      priceGaps: [],
      contextBand: 0,
    });
    expect(priceCall(book, call({ biller: 'unknown', model: 'deepseek-chat' })).computedPico).toBeNull();
  });

  it('prices an unmetered call as unknown, not as nothing', () => {
    expect(priceCall(book, call({ usage: null })).computedPico).toBeNull();
  });

  it('assumes the maker’s list price behind a gateway, and names the assumption', () => {
    const gateway = priceCall(book, call({ biller: 'unknown' }));
    expect(gateway).toMatchObject({ computedPico: 7_200_000_000n, priceGaps: ['biller'] });
    const prefixed = priceCall(book, call({ biller: 'unknown', model: 'anthropic/claude-sonnet-4-5' }));
    expect(prefixed).toMatchObject({ computedPico: 5_400_000_000n, priceGaps: ['biller'] });
  });

  it('falls back to the model asked for when the one that answered has no price, and names that', () => {
    const answered = call({ model: 'my-deployment-v2', requestedModel: 'gpt-5.6-sol' });
    expect(priceCall(book, answered)).toMatchObject({ computedPico: 7_200_000_000n, priceGaps: ['model'] });
    expect(priceCall(book, { ...answered, model: 'gpt-5.6-sol' }).priceGaps).toEqual([]);
  });

  it.each([
    [null, 8n, []],
    ['', 8n, []],
    ['default', 8n, []],
    ['AUTO', 8n, []],
    ['on-demand', 8n, []],
    ['SERVICE_TIER_STANDARD', 8n, []],
    ['flex', 4n, []],
    ['on_demand_flex', 4n, []],
    ['Priority', 16n, []],
    ['fast', 16n, []],
    ['scale', 8n, ['service_tier']],
    ['provisioned-throughput', 8n, ['service_tier']],
    ['no such tier', 8n, ['service_tier']],
  ])('reads the service tier %j', (serviceTier, dollars, gaps) => {
    const usage = aUsage({ input: 100_000, output: 380_000 });
    expect(priceCall(book, call({ serviceTier, usage }))).toEqual({
      computedPico: dollars * 1_000_000_000_000n,
      priceGaps: gaps,
      contextBand: 0,
    });
  });

  it('tells Anthropic’s fast mode from its priority tier, which is paid for ahead', () => {
    const at = (serviceTier: string) =>
      priceCall(
        book,
        call({
          biller: 'anthropic',
          model: 'claude-opus-4-6',
          serviceTier,
          usage: aUsage({ input: 1_000_000 }),
        }),
      );
    expect(at('fast')).toMatchObject({ computedPico: 30_000_000_000_000n, priceGaps: [] });
    expect(at('priority')).toMatchObject({ computedPico: 5_000_000_000_000n, priceGaps: ['service_tier'] });
  });

  it('has a plain model that is not the product’s own', () => {
    expect(equal(fraction(0.144375), { n: 144_375n, d: 1_000_000n })).toBe(true);
    expect(equal(fraction(1e-7), { n: 1n, d: 10_000_000n })).toBe(true);
    expect([round({ n: 5n, d: 2n }), round({ n: 7n, d: 2n }), round({ n: 8n, d: 3n })]).toEqual([2n, 4n, 3n]);
  });
});
