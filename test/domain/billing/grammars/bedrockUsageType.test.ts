import { describe, expect, it } from 'vitest';
import { bedrockModelIds, bedrockModelOf } from '../../../../domain/billing/grammars/bedrockModels.js';
import {
  parseBedrockCharge,
  parseBedrockUsageType,
} from '../../../../domain/billing/grammars/bedrockUsageType.js';
import type { ParsedLabel } from '../../../../domain/billing/grammars/parsedLabel.js';
import { AS_OF, shippedBook } from '../../pricing/support.js';

type Expected = [usageType: string, model: string, tokenClass: string, more?: Partial<ParsedLabel>];

const thousand = { unitTokens: 1_000n };

/** Usage types as AWS's documentation and price list write them. */
const NAMED: readonly Expected[] = [
  ['USE1-Nova2.0Lite-input-tokens', 'us.amazon.nova-2-lite-v1:0', 'input'],
  ['USE1-Claude4.6Sonnet-input-tokens', 'us.anthropic.claude-sonnet-4-6', 'input'],
  ['EUW1-Claude4.6Sonnet-input-tokens', 'eu.anthropic.claude-sonnet-4-6', 'input'],
  ['APNE1-Claude4.6Sonnet-input-tokens', 'jp.anthropic.claude-sonnet-4-6', 'input'],
  ['USE1-Claude4.6Sonnet-cache-read-input-token-count', 'us.anthropic.claude-sonnet-4-6', 'cache_read'],
  ['USW2-Claude4.6Sonnet-cache-write-input-token-count', 'us.anthropic.claude-sonnet-4-6', 'cache_write_5m'],
  [
    'USW2-Claude4.6Sonnet-cache-write-input-token-count-1h',
    'us.anthropic.claude-sonnet-4-6',
    'cache_write_1h',
  ],
  ['USE1-Claude4.6Sonnet-output-tokens-cross-region-global', 'global.anthropic.claude-sonnet-4-6', 'output'],
  [
    'USE1-Claude4.6Opus-cache-read-input-token-count-cross-region-global',
    'global.anthropic.claude-opus-4-6-v1',
    'cache_read',
  ],
  [
    'USE1-Claude4.5Sonnet-input-tokens-cross-region-global-batch',
    'global.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'input',
    { isBatch: true },
  ],
  ['USE1-NovaPro-output-tokens-batch', 'amazon.nova-pro-v1:0', 'output', { isBatch: true }],
  ['EU-NovaLite-input-tokens-Batch', 'eu.amazon.nova-lite-v1:0', 'input', { isBatch: true }],
  ['USE1-Nova2.0Lite-input-tokens-flex', 'us.amazon.nova-2-lite-v1:0', 'input', { serviceTier: 'flex' }],
  ['USE1-gpt-oss-120b-output-tokens-priority', 'openai.gpt-oss-120b', 'output', { serviceTier: 'priority' }],
  ['gpt-oss-20b-input-tokens-flex', 'openai.gpt-oss-20b', 'input', { serviceTier: 'flex' }],
  [
    'USE1-NovaPro-input-tokens-custom-model',
    'amazon.nova-pro-v1:0',
    'input',
    { serviceTier: 'custom_model' },
  ],
  ['USE1-Claude3Haiku-input-tokens', 'anthropic.claude-3-haiku-20240307-v1:0', 'input'],
  ['USE1-openai.gpt-oss-120b-mantle-input-tokens-standard', 'openai.gpt-oss-120b', 'input'],
  ['USE1-openai.gpt-5.6-sol-mantle-output-tokens-standard', 'openai.gpt-5.6-sol', 'output'],
  ['USW2-anthropic.claude-opus-4-8-mantle-input-tokens-standard', 'us.anthropic.claude-opus-4-8', 'input'],
  [
    'USW2-anthropic.claude-opus-4-8-mantle-cache-write-tokens-global-standard',
    'global.anthropic.claude-opus-4-8',
    'cache_write_5m',
  ],
  ['USE1-KimiK2.5-mantle-input-tokens-standard', 'moonshotai.kimi-k2.5', 'input'],
  ['USE1-zai.glm-5-mantle-output-tokens-flex', 'zai.glm-5', 'output', { serviceTier: 'flex' }],
  ['SAE1-Claude4.6Sonnet-input-tokens', 'anthropic.claude-sonnet-4-6', 'input'],
];

const million = { unitTokens: 1_000_000n };

const MARKETPLACE: readonly [...Expected, product: string][] = [
  [
    'USE1-MP:USE1_InputTokenCount-Units',
    'us.anthropic.claude-sonnet-4-6',
    'input',
    {},
    'Claude Sonnet 4.6 (Amazon Bedrock Edition)',
  ],
  [
    'USE2-MP:USE2_OutputTokenCount_Global-Units',
    'global.anthropic.claude-sonnet-4-6',
    'output',
    {},
    'Claude 4.6 Sonnet (Amazon Bedrock Edition)',
  ],
  [
    'USE1-MP:USE1_CacheReadInputTokenCount_Global-Units',
    'global.anthropic.claude-opus-5',
    'cache_read',
    {},
    'Claude Opus 5 (Amazon Bedrock Edition)',
  ],
  [
    'USW2-MP:USW2_input_tokens_global_standard-Units',
    'global.anthropic.claude-opus-5-5',
    'input',
    {},
    'Claude Opus 5.5 (Amazon Bedrock Edition)',
  ],
  [
    'USW2-MP:USW2_cache_write_tokens_1h_standard-Units',
    'us.anthropic.claude-opus-5-5',
    'cache_write_1h',
    {},
    'Claude Opus 5.5 (Amazon Bedrock Edition)',
  ],
  [
    'USE1-MP:USE1_OutputTokenCount_Batch-Units',
    'us.anthropic.claude-haiku-4-5-20251001-v1:0',
    'output',
    { isBatch: true },
    'Claude Haiku 4.5 (Amazon Bedrock Edition)',
  ],
  [
    'USE1-MillionBatchInputTokens',
    'anthropic.claude-3-haiku-20240307-v1:0',
    'input',
    { isBatch: true },
    'Claude 3 Haiku (Amazon Bedrock Edition)',
  ],
  [
    'USE1-MP:USE1_ResponseTokenCount-Units',
    'cohere.command-text-v14',
    'output',
    {},
    'Command Text V14 (Amazon Bedrock Edition)',
  ],
];

describe('usage types that name their model', () => {
  it.each(NAMED)('%s is %s %s', (usageType, model, tokenClass, more = {}) => {
    expect(parseBedrockUsageType(usageType)).toEqual({
      recognised: true,
      model,
      tokenClass,
      serviceTier: 'standard',
      isBatch: false,
      longContext: false,
      region: null,
      observable: true,
      ...thousand,
      ...more,
    });
  });

  it('whose model is missing from the price list keep the name on the bill', () => {
    expect(parseBedrockUsageType('USE1-Claude9.1Sonata-input-tokens')).toMatchObject({
      recognised: true,
      model: 'Claude9.1Sonata',
    });
  });
});

describe('usage types of the marketplace', () => {
  it.each(MARKETPLACE)('%s of the product is %s %s', (usageType, model, tokenClass, more, product) => {
    expect(parseBedrockUsageType(usageType, product)).toMatchObject({
      recognised: true,
      model,
      tokenClass,
      serviceTier: 'standard',
      isBatch: false,
      ...million,
      ...more,
    });
  });

  it('without a product are not guessed', () => {
    expect(parseBedrockUsageType('USE1-MP:USE1_InputTokenCount-Units').recognised).toBe(false);
  });
});

describe('labels that are no tokens of a call', () => {
  it.each([
    'USE1-Guardrail-ContentPolicyUnitsConsumed',
    'USE1-ProvisionedThroughput-Claude3Sonnet-ModelUnits',
    'USE1-Claude4.5Sonnet-input-tpm-reserved-1month',
    'USE1-BedrockKnowledgeBase-searchunits',
    'USE1-Customization-Storage',
  ])('%s is declared as a charge that no call shows', (usageType) => {
    expect(parseBedrockUsageType(usageType)).toMatchObject({
      recognised: true,
      observable: false,
      tokenClass: 'other',
    });
  });

  it.each([
    'USE1-output-tokens-cross-region-global',
    'USE1-Nova2.0Pro-input-image-token-count-cross-region-global',
    'USE1-NovaCanvas-T2I-1024-Standard',
    'USE1-Claude4.6Sonnet-input-tokens-moonlight',
    'USE1-Claude4.6Sonnet-input-output-tokens-x1',
    '',
  ])('%s is not guessed', (usageType) => {
    expect(parseBedrockUsageType(usageType)).toMatchObject({
      recognised: false,
      model: null,
      tokenClass: 'other',
    });
  });
});

describe('a product’s attributes', () => {
  it('take precedence over the usage type', () => {
    const attributes = {
      model: 'Claude Sonnet 5',
      inferenceType: 'Output tokens',
      feature: 'On-demand Inference',
    };
    expect(parseBedrockCharge('USE1-Something-input-tokens', '', attributes)).toMatchObject({
      model: 'us.anthropic.claude-sonnet-5',
      tokenClass: 'output',
      ...thousand,
    });
    expect(
      parseBedrockCharge('USE1-opaque', '', { ...attributes, feature: 'Batch Inference' }),
    ).toMatchObject({
      recognised: true,
      model: 'us.anthropic.claude-sonnet-5',
      isBatch: true,
    });
  });

  it('without a known value leave the usage type unchanged', () => {
    const attributes = { model: 'Sonata', inferenceType: 'Something', feature: 'Reranker' };
    expect(parseBedrockCharge('USE1-NovaPro-input-tokens', '', attributes)).toMatchObject({
      model: 'amazon.nova-pro-v1:0',
      tokenClass: 'input',
    });
    expect(parseBedrockCharge('USE1-opaque', '', attributes).recognised).toBe(false);
  });
});

const CODES: Readonly<Record<string, string>> = {
  us: 'USE1',
  'us-gov': 'UGW1',
  eu: 'EUC1',
  jp: 'APN1',
  au: 'APS2',
  in: 'APS3',
  apac: 'APS1',
  global: 'USE1',
};
/** A region that no group of the price list serves. */
const NO_GROUP = 'SAE1';

/** An id written as a usage type writes it: without vendor, version and date, each word with a capital. */
function asBillName(id: string): string {
  const name = id
    .slice(id.indexOf('.') + 1)
    .replace(/-20\d{6}/, '')
    .replace(/:0$/, '')
    .replace(/(?<=[\d-].*)-v1$/, '')
    .replace(/-instruct|-preview/, '')
    .replace(/(\d)-(?=\d)/g, '$1.')
    .split('-')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
  // The maker's name is the family's.
  return id.startsWith('deepseek.') ? `DeepSeek${name}` : name;
}

/**
 * Ids whose billed name is that of another entry of the list, which is recognised instead; their ids are listed
 * separately.
 */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'anthropic.claude-haiku-4-5': 'anthropic.claude-haiku-4-5-20251001-v1:0',
  'moonshot.kimi-k2-thinking': 'moonshotai.kimi-k2-thinking',
  'qwen.qwen3-coder-30b-a3b-instruct': 'qwen.qwen3-coder-30b-a3b-v1:0',
  'qwen.qwen3-coder-480b-a35b-instruct': 'qwen.qwen3-coder-480b-a35b-v1:0',
  'qwen.qwen3-next-80b-a3b': 'qwen.qwen3-next-80b-a3b-instruct',
  'qwen.qwen3-vl-235b-a22b': 'qwen.qwen3-vl-235b-a22b-instruct',
};

describe('every model of Bedrock’s price list', () => {
  const book = shippedBook();
  const cases = book.entriesOf('aws_bedrock').flatMap(({ entry }) =>
    [entry.model, ...entry.aliases].map((id) => {
      const [, group = '', model = id] = /^(us-gov|us|eu|jp|au|in|apac|global)\.(.*)$/.exec(id) ?? [];
      return { id, group, model, entry: entry.model };
    }),
  );

  it.each(cases)('$id is recognized by its name on a bill', ({ id, group, model, entry }) => {
    const suffix = group === 'global' ? '-cross-region-global' : '';
    const usageType = `${CODES[group] ?? NO_GROUP}-${asBillName(model)}-input-tokens${suffix}`;
    const parsed = parseBedrockUsageType(usageType);
    expect(parsed.recognised, usageType).toBe(true);
    const found = book.find('aws_bedrock', parsed.model ?? '', AS_OF)?.entry.model;
    expect(found, `${usageType} ${parsed.model}`).toBe(AMBIGUOUS[id] ?? entry);
  });

  it.each(cases)('$id is found again by its own id', ({ group, model, entry }) => {
    const usageType = `${CODES[group] ?? NO_GROUP}-${model}-mantle-input-tokens-${group === 'global' ? 'global-' : ''}standard`;
    const parsed = parseBedrockUsageType(usageType);
    expect(
      book.find('aws_bedrock', parsed.model ?? '', AS_OF)?.entry.model,
      `${usageType} ${parsed.model}`,
    ).toBe(entry);
  });

  it('is in the table, and nothing else is', () => {
    const unpriced = bedrockModelIds().filter((id) => !book.find('aws_bedrock', id, AS_OF));
    // Models that are served from groups of regions alone.
    expect(unpriced.every((id) => bedrockModelIds().some((other) => other.endsWith(`.${id}`)))).toBe(true);
    expect(bedrockModelOf('Sonata', 'USE1', false)).toBeNull();
  });
});
