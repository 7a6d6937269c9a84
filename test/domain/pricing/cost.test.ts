import { describe, expect, it } from 'vitest';
import { expectedRates, priceCall, tokensByClass } from '../../../domain/pricing/cost.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import { aUsage } from '../../support/aCall.js';
import { AS_OF, aCall, aPeriod, bookOf, listOf, microsOf, shippedBook } from './support.js';

const book = shippedBook();

describe('the cost of a call', () => {
  it('prices cached and uncached input as different classes', () => {
    // 200 × 4 + 1000 × 0.4 + 300 × 20 = 7200 per million
    expect(priceCall(book, aCall()).computedPico).toBe(7_200_000_000n);
  });

  it('adds up over classes whatever the split, since it is rounded once', () => {
    const list = listOf([
      { provider: 'openai', model: 'odd', rates: [aPeriod({ input: 0.0000015, output: 0.0000025 })] },
    ]);
    const odd = bookOf(readPriceFile(list));
    const one = (usage: Parameters<typeof aUsage>[0], isBatch = false) =>
      priceCall(odd, aCall({ model: 'odd', usage: aUsage(usage), isBatch })).computedPico;
    expect(one({ input: 1 })).toBe(2n); // 1.5 → 2
    expect(one({ output: 1 })).toBe(2n); // 2.5 → 2
    expect(one({ input: 1, output: 1 })).toBe(4n);
    expect(one({ input: 1, output: 1 }, true)).toBe(2n);
    expect(one({ input: 2, output: 0 }, true)).toBe(2n); // 1.5 → 2
  });

  it('takes the rates of a long request for all of its tokens, only when its whole input exceeds the boundary', () => {
    const at = (over: Parameters<typeof aUsage>[0]) => priceCall(book, aCall({ usage: aUsage(over) }));
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
      priceCall(book, aCall({ biller: 'xai', model: 'grok-4.20', usage: aUsage({ input }) })).contextBand;
    expect([xai(199_999), xai(200_000)]).toEqual([0, 199_999]);
  });

  it('keeps priority’s flat rate at OpenAI where only the standard service charges long requests more', () => {
    const long = aCall({ model: 'gpt-5.4', usage: aUsage({ input: 300_000 }), serviceTier: 'priority' });
    expect(priceCall(book, long)).toEqual({
      computedPico: 1_500_000_000_000n,
      priceGaps: [],
      contextBand: 0,
    });
  });

  it('raises another tier’s rate as the standard rate is raised, and marks it as assumed', () => {
    const long = aCall({
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

  it('prices a class without a rate in any source as text input, and names it', () => {
    const usage = aUsage({ input: 1_000, cacheRead: 1_000, cacheCreation: 1_000, cacheCreation1h: 400 });
    const got = priceCall(book, aCall({ model: 'gpt-4', usage }));
    expect(got).toEqual({
      computedPico: 90_000_000_000n,
      priceGaps: ['cache_read', 'cache_write_5m', 'cache_write_1h'],
      contextBand: 0,
    });
    expect(priceCall(book, aCall({ model: 'gpt-4', usage: aUsage({ input: 1 }) })).priceGaps).toEqual([]);
  });

  it('prices speech by its own rate, and as text where none is known', () => {
    const usage = aUsage({ inputAudio: 1_000_000, outputAudio: 1_000_000 });
    expect(priceCall(book, aCall({ model: 'gpt-audio', usage }))).toMatchObject({
      computedPico: 96_000_000_000_000n,
      priceGaps: [],
    });
    expect(priceCall(book, aCall({ usage: aUsage({ outputAudio: 1_000_000 }) }))).toMatchObject({
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
    const price = priceCall(book, aCall({ biller: 'anthropic', model: 'claude-haiku-4-5', usage }));
    expect(price.computedPico).toBe(2_000_000_000_000n);
  });

  it('halves every class of a batch call, where the provider itself charges otherwise', () => {
    const usage = aUsage({ input: 1_000_000, cacheRead: 1_000_000, output: 1_000_000 });
    const batch = aCall({ biller: 'xai', model: 'grok-4.20', usage, isBatch: true });
    expect(priceCall(book, batch).computedPico).toBe(4_950_000_000_000n - 1_000_000_000_000n);
    const expected = expectedRates(book, 'xai', 'grok-4.20', AS_OF, { isBatch: true, contextBand: 199_999 });
    expect(expected?.rates).toMatchObject({
      input: 2_000_000_000_000n,
      cache_read: 320_000_000_000n,
      output: 4_000_000_000_000n,
    });
  });

  it('bills cached input of a batch in full at some models', () => {
    const rates = expectedRates(book, 'google', 'gemini-2.5-pro', AS_OF, { isBatch: true })?.rates;
    expect(rates).toMatchObject({ input: 625_000_000_000n, cache_read: 125_000_000_000n });
  });

  it('takes half for batch where no source lists batch rates, and marks it as assumed', () => {
    const expected = expectedRates(book, 'openai', 'gpt-4-32k', AS_OF, { isBatch: true });
    expect(expected?.assumed).toContain('batch');
    expect(expected?.rates.input).toBe(30_000_000_000_000n);
  });

  it('finds the rates that a bill names for long requests alone', () => {
    const long = expectedRates(book, 'openai', 'gpt-5.6-sol', AS_OF, { longContext: true });
    expect(long).toMatchObject({ contextBand: 272_000 });
    expect(long?.rates.output).toBe(30_000_000_000_000n);
  });

  it('prices by the rates in force when the call began', () => {
    const at = (iso: string) =>
      priceCall(book, aCall({ atMicros: microsOf(iso), usage: aUsage({ input: 100_000 }) })).computedPico;
    expect(at('2026-08-20T23:59:59.999999Z')).toBe(500_000_000_000n);
    expect(at('2026-08-21T00:00:00Z')).toBe(400_000_000_000n);
    expect(at('2019-01-01T00:00:00Z')).toBe(500_000_000_000n);
  });

  it('never turns an unknown model into a free one', () => {
    expect(priceCall(book, aCall({ model: 'no-such-model' }))).toEqual({
      computedPico: null,
      priceGaps: [],
      contextBand: 0,
    });
    expect(priceCall(book, aCall({ biller: 'unknown', model: 'deepseek-chat' })).computedPico).toBeNull();
  });

  it('prices an unmetered call as unknown, not as nothing', () => {
    expect(priceCall(book, aCall({ usage: null })).computedPico).toBeNull();
  });

  it('assumes the maker’s list price behind a gateway, and names the assumption', () => {
    const gateway = priceCall(book, aCall({ biller: 'unknown' }));
    expect(gateway).toMatchObject({ computedPico: 7_200_000_000n, priceGaps: ['biller'] });
    const prefixed = priceCall(book, aCall({ biller: 'unknown', model: 'anthropic/claude-sonnet-4-5' }));
    expect(prefixed).toMatchObject({ computedPico: 5_400_000_000n, priceGaps: ['biller'] });
  });

  it('falls back to the model asked for when the one that answered has no price, and names that', () => {
    const answered = aCall({ model: 'my-deployment-v2', requestedModel: 'gpt-5.6-sol' });
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
    expect(priceCall(book, aCall({ serviceTier, usage }))).toEqual({
      computedPico: dollars * 1_000_000_000_000n,
      priceGaps: gaps,
      contextBand: 0,
    });
  });

  it('distinguishes Anthropic’s fast mode from its priority tier, which is prepaid', () => {
    const at = (serviceTier: string) =>
      priceCall(
        book,
        aCall({
          biller: 'anthropic',
          model: 'claude-opus-4-6',
          serviceTier,
          usage: aUsage({ input: 1_000_000 }),
        }),
      );
    expect(at('fast')).toMatchObject({ computedPico: 30_000_000_000_000n, priceGaps: [] });
    expect(at('priority')).toMatchObject({ computedPico: 5_000_000_000_000n, priceGaps: ['service_tier'] });
  });
});
