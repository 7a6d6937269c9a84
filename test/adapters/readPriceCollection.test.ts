import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPriceCollection } from '../../adapters/prices/readPriceCollection.js';
import type { ListedCollection } from '../../domain/pricing/imports/collection.js';
import { findSuspicions } from '../../domain/pricing/imports/differences.js';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'prices');
const litellm = readPriceCollection(readFileSync(join(FOLDER, 'litellm.json')));
const modelsDev = readPriceCollection(readFileSync(join(FOLDER, 'modelsDev.json')));
const read = (json: unknown) =>
  readPriceCollection(Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)));

const find = (collection: ListedCollection, provider: string, model: string) =>
  collection.models.find((one) => one.provider === provider && one.model === model);
const USD = 1_000_000_000_000n;

describe('reading LiteLLM’s file', () => {
  it('recognizes it by its content, and leaves out what is no token price of the eight providers', () => {
    expect(litellm.source).toBe('litellm');
    expect(litellm.models.map(({ provider, key }) => `${provider} ${key}`)).toEqual([
      'openai gpt-5.6-sol',
      'openai gpt-5-nano',
      'openai gpt-9-test-2027-01-01',
      'openai text-embedding-9',
      'anthropic claude-3-haiku-20240307',
      'anthropic claude-sonnet-4-5',
      'azure_openai azure/gpt-5.6-sol',
      'azure_openai azure/eu/gpt-4o-2024-11-20',
      'google gemini/gemini-2.5-pro',
      'mistral mistral/mistral-large-4',
      'xai xai/grok-test',
    ]);
    expect(litellm.otherEntries).toBe(4);
  });

  it('turns dollars per token into dollars per million exactly, digit by digit', () => {
    expect(find(litellm, 'openai', 'gpt-9-test-2027-01-01')?.rates.input).toBe(123_456_789_012n);
    expect(find(litellm, 'openai', 'gpt-5.6-sol')?.rates).toMatchObject({
      input: 5n * USD,
      output: 30n * USD,
      cache_read: USD / 2n,
      cache_write_5m: 6_250_000_000_000n,
      cache_write_1h: null,
    });
  });

  it('finds batch, service tiers and long requests, with xAI’s boundary as “200k or more”', () => {
    const tiers = (provider: string, model: string) =>
      find(litellm, provider, model)?.tiers.map((tier) => [
        tier.serviceTier,
        tier.aboveInputTokens,
        tier.rates.input,
      ]);
    expect(tiers('openai', 'gpt-5.6-sol')).toEqual([
      [null, 272_000, 10n * USD],
      ['batch', null, 2_500_000_000_000n],
    ]);
    expect(tiers('openai', 'gpt-5-nano')).toEqual([['priority', null, 2_500_000_000_000n]]);
    expect(tiers('xai', 'grok-test')).toEqual([[null, 199_999, 4n * USD]]);
  });

  it('takes a Gemini model’s price from the Gemini API, and recognizes a regional price', () => {
    expect(find(litellm, 'google', 'gemini-2.5-pro')?.rates.input).toBe(1_250_000_000_000n);
    expect(find(litellm, 'azure_openai', 'gpt-4o-2024-11-20')?.region).toBe('eu');
  });

  it('points out what is hardly right, also where it is known', () => {
    const found = findSuspicions(litellm.models).map(
      ({ listed, tier, rateClass, because }) => `${listed.key} ${tier} ${rateClass}: ${because}`,
    );
    expect(found.sort()).toEqual(
      [
        'gpt-5-nano priority input: priority costs 50 × standard',
        'gpt-5-nano priority output: output is below input',
        'claude-3-haiku-20240307 standard cache_write_5m: writing the cache costs 1.2 × input, not 1, 1.25 or 2',
        'claude-3-haiku-20240307 standard cache_write_1h: writing the cache costs 24 × input, not 1, 1.25 or 2',
        'azure/gpt-5.6-sol standard cache_write_5m: it has no rate for writing the cache, and gpt-5.6-sol has one',
        'azure/eu/gpt-4o-2024-11-20 standard cache_write_5m: writing the cache costs 0.5 × input, not 1, 1.25 or 2',
        'xai/grok-test standard output: output is below input',
        'xai/grok-test standard cache_read: reading the cache costs more than input',
        'xai/grok-test standard above 199999 output: output is below input',
      ].sort(),
    );
  });
});

describe('reading models.dev’s file', () => {
  it('recognizes it by its content and takes dollars per million as they are written', () => {
    expect(modelsDev.source).toBe('models_dev');
    expect(modelsDev.models.map(({ key }) => key)).toEqual([
      'openai/gpt-5.6-sol',
      'openai/gpt-9-test',
      'google/gemini-9-test',
    ]);
    // Thirteen decimals, half to even.
    expect(find(modelsDev, 'openai', 'gpt-9-test')?.rates).toMatchObject({
      input: 123_456_789_012n,
      cache_read: null,
      cache_write_5m: USD / 5n,
    });
  });

  it('finds the tiers for long requests in both of their forms', () => {
    expect(find(modelsDev, 'openai', 'gpt-5.6-sol')?.tiers[0]).toMatchObject({
      serviceTier: null,
      aboveInputTokens: 272_000,
    });
    const gemini = find(modelsDev, 'google', 'gemini-9-test');
    expect(gemini?.tiers[0]).toMatchObject({
      aboveInputTokens: 200_000,
      rates: { input: 2n * USD, output: 6n * USD },
    });
    expect(gemini?.rates.input_audio).toBe(2n * USD);
  });
});

describe('a word that every object knows', () => {
  it('names no provider and no mode', () => {
    const rates = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    const found = read({
      a: { litellm_provider: 'constructor', mode: 'chat', ...rates },
      b: { litellm_provider: 'openai', mode: 'toString', ...rates },
    });
    expect(found).toMatchObject({ models: [], otherEntries: 2 });
  });
});

describe('a file of neither collection', () => {
  it.each([
    ['no JSON', 'prices', /./],
    ['an array', [], /neither/],
    ['another object', { a: { b: 1 } }, /neither/],
    ['two documents', '{}{}', /not one JSON document/],
    [
      'a rate that is a text',
      { m: { litellm_provider: 'openai', mode: 'chat', input_cost_per_token: '1' } },
      /"m"\.input_cost_per_token is not a rate/,
    ],
    [
      'a negative rate',
      { openai: { models: { m: { cost: { input: -1, output: 1 } } } } },
      /openai\/m\.cost\.input is not a rate/,
    ],
    [
      'a rate beyond all reason',
      { openai: { models: { m: { cost: { input: 100_000.5, output: 1 } } } } },
      /openai\/m\.cost\.input is not a rate: a number from 0 to 100000 dollars/,
    ],
    ['an entry that is none', { m: { litellm_provider: 'openai' }, n: 1 }, /"n" is not an object/],
  ])('is refused: %s', (_, json, reason) => {
    expect(() => read(json)).toThrow(reason);
    expect(() => read(json)).toThrow(RangeError);
  });
});
