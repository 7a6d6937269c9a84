import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOKEN_CLASSES } from '../../../domain/events/event.js';
import { type CallToPrice, priceCall } from '../../../domain/pricing/cost.js';
import { type CallExplanation, explainCall } from '../../../domain/pricing/explainCall.js';
import { aUsage } from '../../support/aCall.js';
import { aCall, microsOf, shippedBook } from './support.js';

const book = shippedBook();

function explain(over: Partial<CallToPrice> = {}): CallExplanation {
  const explanation = explainCall(book, aCall(over));
  if ('reason' in explanation) throw new Error(explanation.reason);
  return explanation;
}

describe('the sum behind a cost', () => {
  it('ends in the very cost that was computed, with the same gaps and boundary', () => {
    const models = book.models;
    fc.assert(
      fc.property(
        fc.nat(models.length - 1),
        fc.constantFrom(null, 'flex', 'priority', 'batch', 'committed'),
        fc.boolean(),
        fc.array(fc.nat(500_000), { minLength: 6, maxLength: 6 }),
        (
          index,
          serviceTier,
          isBatch,
          [input = 0, cacheRead = 0, cacheCreation = 0, output = 0, a = 0, b = 0],
        ) => {
          const entry = models[index];
          if (!entry) throw new Error('no such model');
          const usage = aUsage({ input, cacheRead, cacheCreation, output, inputAudio: a, outputAudio: b });
          const given = aCall({ biller: entry.provider, model: entry.model, usage, isBatch, serviceTier });
          const price = priceCall(book, given);
          const sum = explainCall(book, given);
          if ('reason' in sum) throw new Error(sum.reason);
          expect(sum.computed.total).toBe(price.computedPico);
          expect(sum.computed.contextBand).toBe(price.contextBand);
          expect(sum.priceGaps).toEqual(price.priceGaps);
          expect(sum.computed.lines.every((line) => line.product === BigInt(line.tokens) * line.rate)).toBe(
            true,
          );
          if (!isBatch && serviceTier !== 'batch') expect(sum.expected).toEqual(sum.computed);
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it('lists the used classes in one order, each with its sources and the period that holds', () => {
    const sum = explain();
    expect(sum.computed.lines.map((line) => [line.tokenClass, line.tokens, line.rate, line.sources])).toEqual(
      [
        ['input', 200, 4_000_000_000_000n, ['genai_prices', 'litellm']],
        ['cache_read', 1000, 400_000_000_000n, ['genai_prices', 'litellm']],
        ['output', 300, 20_000_000_000_000n, ['genai_prices', 'litellm']],
      ],
    );
    expect(sum.priced.version.effectiveFrom).toBe('2026-08-21');
    expect(sum.priced.entry.agreement).toBe('agree');
  });

  it('contains the sources of a tier’s rates, and the dated source of a past period', () => {
    const flex = explain({ serviceTier: 'flex', usage: aUsage({ input: 300_000 }) });
    expect(flex.computed.lines[0]).toMatchObject({
      rate: 4_000_000_000_000n,
      sources: ['genai_prices', 'litellm'],
    });
    const past = explain({ atMicros: microsOf('2026-08-01') });
    expect(past.computed.lines[0]).toMatchObject({ rate: 5_000_000_000_000n, sources: ['genai_prices'] });
  });

  it('marks an assumed rate, which no source supports', () => {
    const sum = explain({ model: 'gpt-4', usage: aUsage({ input: 1, cacheRead: 1 }) });
    const line = sum.computed.lines.find(({ tokenClass }) => tokenClass === 'cache_read');
    expect(line).toMatchObject({ assumed: true, basis: 'input_rate', sources: [] });
    expect(sum.priceGaps).toEqual(['cache_read']);
  });

  it('shows both batch sums: the specification’s half and what the provider should charge', () => {
    const usage = aUsage({ input: 100_000, cacheRead: 90_000, output: 1_000 });
    const sum = explain({ biller: 'xai', model: 'grok-4.20', usage, isBatch: true });
    expect(sum.computed).toMatchObject({ divisor: 2, serviceTier: 'standard', contextBand: 0 });
    expect(sum.computed.total).toBe((125_000_000_000n + 18_000_000_000n + 2_500_000_000n) / 2n);
    expect(sum.expected).toMatchObject({ divisor: 1, serviceTier: 'batch', contextBand: 0 });
    expect(sum.expected.total).toBe(100_000_000_000n + 14_400_000_000n + 2_000_000_000n);
  });

  it('names every class that has a source in the list, in at least one of its prices', () => {
    const seen = new Set<string>();
    const usage = aUsage({
      input: 1,
      cacheRead: 1,
      cacheCreation: 2,
      cacheCreation1h: 1,
      output: 1,
      inputAudio: 1,
      outputAudio: 1,
    });
    for (const { provider, model } of book.models) {
      for (const line of explain({ biller: provider, model, usage }).computed.lines) {
        if (line.sources.length > 0) seen.add(line.tokenClass);
      }
    }
    expect([...seen].sort()).toEqual([...TOKEN_CLASSES].sort());
  });

  it('states why there is no sum', () => {
    expect(explainCall(book, aCall({ usage: null }))).toEqual({ reason: 'unmetered' });
    expect(explainCall(book, aCall({ model: 'gpt-4o-2099-01-01' }))).toEqual({ reason: 'several_prices' });
    expect(explainCall(book, aCall({ model: 'no-such-model' }))).toEqual({ reason: 'unknown_model' });
    expect(explainCall(book, aCall({ biller: 'unknown', model: 'deepseek-chat' }))).toEqual({
      reason: 'unknown_biller',
    });
  });

  it('marks a price that rests on disputed sources', () => {
    expect(explain({ biller: 'mistral', model: 'mistral-large-4' }).disputed).toBe(true);
    expect(explain().disputed).toBe(false);
  });
});
