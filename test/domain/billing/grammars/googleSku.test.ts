import { describe, expect, it } from 'vitest';
import { parseGoogleSku } from '../../../../domain/billing/grammars/googleSku.js';
import { type ParsedLabel, UNKNOWN_LABEL } from '../../../../domain/billing/grammars/parsedLabel.js';
import { AS_OF, shippedBook } from '../../pricing/support.js';

type Expected = [sku: string, model: string, tokenClass: string, more?: Partial<ParsedLabel>];

const short = { longContext: false };
const long = { longContext: true };
const batch = { isBatch: true };
const priority = { serviceTier: 'priority' };

/** Descriptions as the Cloud Billing Catalog and real exports have them. */
const SKUS: readonly Expected[] = [
  ['Gemini 2.5 Flash GA Text Input - Predictions', 'gemini-2.5-flash', 'input'],
  ['Gemini 2.5 Flash GA Thinking Text Output - Predictions', 'gemini-2.5-flash', 'output'],
  ['Gemini 2.5 Flash GA Text Output (Thinking On) - Predictions', 'gemini-2.5-flash', 'output'],
  ['Gemini 2.5 Flash Text Output (Thinking On) - Batch Predictions', 'gemini-2.5-flash', 'output', batch],
  ['Gemini 2.5 Flash Lite Text Input - Predictions', 'gemini-2.5-flash-lite', 'input'],
  [' Gemini 2.5 Flash Lite Input Text Caching', 'gemini-2.5-flash-lite', 'cache_read'],
  ['Gemini 2.5 Pro Text Input Caching (Long)', 'gemini-2.5-pro', 'cache_read', long],
  ['Gemini 2.5 Pro Text Input (Long) - Predictions', 'gemini-2.5-pro', 'input', long],
  ['Gemini 2.5 Pro Text Output Priority - Predictions', 'gemini-2.5-pro', 'output', priority],
  ['Gemini 2.5 Flash GA Video Input Priority - Predictions', 'gemini-2.5-flash', 'input', priority],
  ['Gemini 2.5 Flash GA Audio Input (Long) - Predictions', 'gemini-2.5-flash', 'input_audio', long],
  ['Gemini 3.8 Flash Global Image Input Priority - Predictions', 'gemini-3.8-flash', 'input', priority],
  [
    'Gemini 3.8 Flash Regional Text Input - Predictions',
    'gemini-3.8-flash',
    'input',
    { region: 'vertex_regional' },
  ],
  ['Gemini 3 Flash Text Input Caching', 'gemini-3-flash-preview', 'cache_read'],
  ['Gemini 3 Flash Text Input Caching Flex', 'gemini-3-flash-preview', 'cache_read', { serviceTier: 'flex' }],
  ['Gemini 3 Flash Text Output - Predictions', 'gemini-3-flash-preview', 'output'],
  [
    'Generate content input token count gemini 2.5 flash short input text',
    'gemini-2.5-flash',
    'input',
    short,
  ],
  [
    'Generate content output token count gemini 2.5 flash short input text',
    'gemini-2.5-flash',
    'output',
    short,
  ],
  [
    'Generate content output token count gemini 2.5 flash lite short output text non-thinking',
    'gemini-2.5-flash-lite',
    'output',
    short,
  ],
  ['Generate content output token count Gemini 2.5 Pro short output text', 'gemini-2.5-pro', 'output', short],
  ['Generate content input token count Gemini 2.5 Pro long input text', 'gemini-2.5-pro', 'input', long],
  [
    'Generate content cached input token count gemini 2.5 flash input image',
    'gemini-2.5-flash',
    'cache_read',
  ],
  ['Generate content input token count gemini 2.5 flash input audio', 'gemini-2.5-flash', 'input_audio'],
  ['Generate content input token count gemini 3.7 flash text batch', 'gemini-3.7-flash', 'input', batch],
  [
    'Generate content input token count gemini 3.7 flash image flex caching',
    'gemini-3.7-flash',
    'cache_read',
    { serviceTier: 'flex' },
  ],
  [
    'Generate content input token count gemini 3.1 flash lite preview text',
    'gemini-3.1-flash-lite-preview',
    'input',
  ],
  [
    'Generate_content text cached input token count for gemini 3 pro short',
    'gemini-3-pro-preview',
    'cache_read',
    short,
  ],
  ['GenerateContent text output token count for Gemini 2.0 Flash', 'gemini-2.0-flash', 'output'],
  ['EmbedContent input token count for gemini-embedding-001', 'gemini-embedding-001', 'input'],
  ['EmbedContent input token count for gemini-embedding-2 text', 'gemini-embedding-2', 'input'],
  ['Claude Sonnet 4.5 - Input Tokens', 'claude-sonnet-4-5', 'input'],
  ['Claude 3.5 Sonnet v2 Output Tokens', 'claude-3-5-sonnet-v2', 'output'],
  ['Claude Opus 4.5 Cache Write 1h Tokens Batch', 'claude-opus-4-5', 'cache_write_1h', batch],
  ['Claude Haiku 4.5 Cache Read Tokens', 'claude-haiku-4-5', 'cache_read'],
];

describe('SKUs of Google', () => {
  it.each(SKUS)('%s', (sku, model, tokenClass, more = {}) => {
    expect(parseGoogleSku(sku)).toEqual({
      recognised: true,
      model,
      tokenClass,
      serviceTier: 'standard',
      isBatch: false,
      longContext: null,
      region: null,
      observable: true,
      ...more,
    });
  });

  it.each([
    'Gemini 2.5 Flash Live Audio Input - Predictions',
    'Gemini 2.5 Flash Image Output - Predictions',
    'Gemini 2.5 Flash GA Audio Input Caching',
    'Generate content cached input token count gemini 2.5 flash input audio',
    'Gemini 1.5 Flash Text Input - Predictions',
    'Gemini 3.7 Flash Text Input Off-Peak - Predictions',
    'Gemini Text Input - Predictions',
    'Unknown Future SKU',
    'N1 Predefined Instance Core running in Americas',
    '',
  ])('%s is not understood, and not guessed', (sku) => {
    expect(parseGoogleSku(sku)).toEqual(UNKNOWN_LABEL);
  });

  it.each([
    'Gemini 2.5 Flash Input Text Caching Storage',
    'Cached content storage token hours gemini 2.5 pro',
    'Grounding with Google Search',
    'Provisioned Throughput Gemini 2.5 Pro GSU',
  ])('%s is a charge that no call can show', (sku) => {
    expect(parseGoogleSku(sku)).toMatchObject({ recognised: true, model: null, observable: false });
  });
});

/** A SKU names no snapshot: these are found as the entry that the list has under the name without a date. */
const AMBIGUOUS: Readonly<Record<string, string>> = { 'claude-3-5-haiku@20241022': 'claude-3-5-haiku' };

describe('every model of Google’s price list, written as a SKU, is found again', () => {
  const book = shippedBook();
  const cases = book
    .entriesOf('google')
    .flatMap(({ entry }) =>
      [entry.model, ...entry.aliases].map((id) => ({ id, entry: AMBIGUOUS[id] ?? entry.model })),
    );

  it.each(cases)('$id', ({ id, entry }) => {
    const words = id
      .replace(/@.*$/, '')
      .replace(/^(claude-.*)(\d)-(\d)/, '$1$2.$3')
      .replaceAll('-', ' ');
    const labels = /^gemini-1/.test(id)
      ? [`Generate content output token count ${words} text`]
      : [`Generate content output token count ${words} text`, `${words} Text Output - Predictions`];
    for (const label of labels) {
      const parsed = parseGoogleSku(label);
      expect(parsed.recognised, label).toBe(true);
      expect(book.find('google', parsed.model ?? '', AS_OF)?.entry.model, label).toBe(entry);
    }
  });
});
