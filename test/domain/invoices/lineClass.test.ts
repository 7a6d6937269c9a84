import { describe, expect, it } from 'vitest';
import { classifyLine } from '../../../domain/invoices/lineClass.js';
import type { Provider } from '../../../domain/providers.js';

const classed = (provider: Provider, description: string, amount = 1n) => {
  const { kind, model, tokenClass } = classifyLine(description, { amount, provider, hasQuantity: true });
  return [kind, model, tokenClass];
};

describe('classifyLine', () => {
  it.each<[Provider, string, string, string, string | null]>([
    ['openai', 'gpt-5.2-2025-12-11, cached input', 'usage', 'gpt-5.2-2025-12-11', 'cache_read'],
    ['openai', 'gpt-4o-2024-08-06, output (per 1K tokens)', 'usage', 'gpt-4o-2024-08-06', 'output'],
    ['anthropic', 'Claude Sonnet 4.5 Usage - Input Tokens', 'usage', 'claude-sonnet-4-5', 'input'],
    ['anthropic', 'Claude Opus 4.1 Usage - Prompt Caching Read', 'usage', 'claude-opus-4-1', 'cache_read'],
    ['azure_openai', '5.4 mini cached Inp glbl Tokens', 'usage', 'gpt-5.4-mini', 'cache_read'],
    [
      'google',
      'Vertex AI: Gemini 2.5 Flash GA Text Input - Predictions',
      'usage',
      'gemini-2.5-flash',
      'input',
    ],
    ['mistral', 'mistral-large-2512 output tokens', 'usage', 'mistral-large-2512', 'output'],
    ['cohere', 'command-a-03-2025 - Input Tokens', 'usage', 'command-a-03-2025', 'input'],
    ['xai', 'grok-4-fast-reasoning prompt text tokens', 'usage', 'grok-4-fast-reasoning', 'input'],
    ['xai', 'API usage (grok-4-fast-reasoning)', 'usage', 'grok-4-fast-reasoning', null],
  ])('reads the usage that %s bills as %s', (provider, description, ...expected) => {
    expect(classed(provider, description)).toEqual(expected);
  });

  it.each<[string, string, bigint?]>([
    ['OpenAI API usage credit', 'prepaid_purchase'],
    ['One-time credit purchase', 'prepaid_purchase'],
    ['La Plateforme prepaid credits', 'prepaid_purchase'],
    ['Cohere platform credits', 'prepaid_purchase'],
    ['Team plan - Premium', 'subscription'],
    ['ChatGPT Team Subscription (per seat)', 'subscription'],
    ['Remaining time on 97 × Team plan - Premium after Aug 23, 2026', 'proration'],
    ['Unused time on 40 × Team plan - Standard', 'proration', -1n],
    ['Promotional credit', 'credit', -1n],
    ['Goodwill credit for incident INC-4417', 'credit', -1n],
    ['Committed use discount', 'discount', -1n],
    ['Conference ticket', 'other'],
  ])('takes %s for %s', (description, kind, amount = 1n) => {
    expect(classed('openai', description, amount)[0]).toBe(kind);
  });

  it('names no model for what is no usage', () => {
    expect(classed('openai', 'ChatGPT Team Subscription (per seat)')).toEqual(['subscription', null, null]);
  });
});
