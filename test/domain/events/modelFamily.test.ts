import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isDatedModel, modelFamily } from '../../../domain/events/biller.js';

describe('the family of a model', () => {
  it.each([
    ['gpt-4o-2024-08-06', 'gpt-4o'],
    ['openai/gpt-4o', 'gpt-4o'],
    ['gpt-4-0613', 'gpt-4'],
    ['gpt-35-turbo', 'gpt-3.5-turbo'],
    ['gpt-3.5-turbo-0125', 'gpt-3.5-turbo'],
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
    ['anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5'],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5'],
    ['bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5'],
    ['claude-3-5-sonnet-latest', 'claude-3-5-sonnet'],
    ['models/gemini-2.5-pro-preview-05-06', 'gemini-2.5-pro'],
    ['publishers/google/models/gemini-1.5-flash-002', 'gemini-1.5-flash'],
    ['command-r-08-2024', 'command-r'],
    ['mistral-large-2411', 'mistral-large'],
  ])('of %s is that of %s', (model, family) => {
    expect(modelFamily(model)).toBe(modelFamily(family));
  });

  it.each([
    ['gpt-4o', 'gpt-4o-mini'],
    ['gpt-4', 'gpt-4o'],
    ['claude-opus-4-5', 'claude-opus-4-6'],
    ['claude-sonnet-4-5', 'claude-haiku-4-5'],
    ['gemini-2.5-flash', 'gemini-2.5-flash-lite'],
    ['o3', 'o3-mini'],
  ])('of %s is not that of %s', (one, other) => {
    expect(modelFamily(one)).not.toBe(modelFamily(other));
  });

  it('is never empty, and is its own family, for every model of the price list', () => {
    const { models } = JSON.parse(readFileSync('data/prices.json', 'utf8')) as {
      models: { model: string }[];
    };
    for (const { model } of models) {
      expect(modelFamily(model)).not.toBe('');
      expect(modelFamily(modelFamily(model))).toBe(modelFamily(model));
    }
  });

  it('distinguishes a dated release from an alias', () => {
    for (const dated of [
      'gpt-4o-2024-08-06',
      'claude-sonnet-4-5-20250929',
      'gpt-4-0613',
      'claude-3-5-haiku@20241022',
    ]) {
      expect(isDatedModel(dated)).toBe(true);
    }
    for (const alias of ['gpt-4o', 'claude-sonnet-4-5', 'o3', 'claude-3-5-sonnet-latest'])
      expect(isDatedModel(alias)).toBe(false);
  });
});
