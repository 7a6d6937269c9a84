import { describe, expect, it } from 'vitest';
import { parseOpenaiLineItem } from '../../../domain/billing/openaiRows.js';

const line = (label: string) => parseOpenaiLineItem(label);

describe('an OpenAI line item', () => {
  it.each([
    ['gpt-5.5-2026-04-23, input', 'gpt-5.5-2026-04-23', 'input'],
    ['gpt-5.5-2026-04-23, cached input', 'gpt-5.5-2026-04-23', 'cache_read'],
    ['gpt-5.6-sol, cache writes', 'gpt-5.6-sol', 'cache_write_5m'],
    ['o3-2025-04-16, output', 'o3-2025-04-16', 'output'],
    ['gpt-4o-audio-preview-2025-06-03 audio, input', 'gpt-4o-audio-preview-2025-06-03', 'input_audio'],
    ['gpt-4o-audio-preview-2025-06-03 text, output', 'gpt-4o-audio-preview-2025-06-03', 'output'],
    ['gpt-5-mini, input_tokens', 'gpt-5-mini', 'input'],
    ['text-embedding-3-small, input', 'text-embedding-3-small', 'input'],
  ])('%s names model and class', (label, model, tokenClass) => {
    expect(line(label)).toMatchObject({
      recognised: true,
      model,
      tokenClass,
      observable: true,
      serviceTier: 'standard',
      isBatch: null,
    });
  });

  it('of a fine-tuned model names it as its calls do', () => {
    expect(line('ft-gpt-4o-2024-08-06, input').model).toBe('ft:gpt-4o-2024-08-06');
  });

  it('names priority processing and long context', () => {
    expect(line('priority | gpt-5.6-sol, output, long context')).toMatchObject({
      recognised: true,
      serviceTier: 'priority',
      isBatch: false,
      longContext: true,
    });
    expect(line('gpt-5.6-sol, output').longContext).toBe(false);
  });

  it('of evals is usage that no client call shows', () => {
    expect(line('evals | gpt-4o-mini-2024-07-18, input')).toMatchObject({
      recognised: true,
      observable: false,
    });
  });

  it.each([
    'web search tool calls',
    'assistants api | file search',
    'Vector storage',
    'vector store storage',
    'code interpreter sessions',
    'assistants api | code interpreter',
    'whisper-1, audio',
  ])('%s is a known charge that no call shows', (label) => {
    expect(line(label)).toMatchObject({
      recognised: true,
      model: null,
      tokenClass: 'other',
      observable: false,
    });
  });

  it.each([
    '',
    'gpt-4o',
    'gpt-4o input',
    'gpt-4o, input, output',
    'gpt-4o, inputs',
    'gpt-4o, input, long',
    'something new | gpt-4o, input',
    'priority |gpt-4o, input',
    'x gpt-4o, input and more',
    'Promotional credit',
  ])('"%s" is not guessed', (label) => {
    expect(line(label)).toMatchObject({ recognised: false, tokenClass: 'other', observable: true });
  });

  it('for image or cached audio tokens keeps the model and prices nothing', () => {
    expect(line('gpt-image-2 image, output')).toMatchObject({
      recognised: false,
      model: 'gpt-image-2',
      tokenClass: 'other',
    });
    expect(line('gpt-audio audio, cached input')).toMatchObject({ recognised: false, tokenClass: 'other' });
  });
});
