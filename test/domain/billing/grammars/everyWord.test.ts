import { describe, expect, it } from 'vitest';
import { parseAzureMeter } from '../../../../domain/billing/grammars/azureMeter.js';
import { parseBedrockUsageType } from '../../../../domain/billing/grammars/bedrockUsageType.js';
import { parseGoogleSku } from '../../../../domain/billing/grammars/googleSku.js';

/** Every word of a kind in every allowed place: a word that one form lacks is a price that is missed. */

const DIRECTIONS = ['input', 'output'] as const;

/** The suffixes of a usage type of Bedrock's own form. */
const MANNERS: readonly (readonly [suffix: string, told: object])[] = [
  ['', { isBatch: false, serviceTier: 'standard' }],
  ['-batch', { isBatch: true, serviceTier: 'standard' }],
  ['-Batch', { isBatch: true, serviceTier: 'standard' }],
  ['-flex', { isBatch: false, serviceTier: 'flex' }],
  ['-priority', { isBatch: false, serviceTier: 'priority' }],
  ['-cross-region-global', { isBatch: false, serviceTier: 'standard' }],
  ['-cross-region-global-batch', { isBatch: true, serviceTier: 'standard' }],
  ['-custom-model', { isBatch: false, serviceTier: 'custom_model' }],
];

describe('a usage type of Bedrock', () => {
  const tokens = DIRECTIONS.flatMap((direction) => MANNERS.map((manner) => [direction, ...manner] as const));

  it.each(tokens)('Claude4.6Sonnet-%s-tokens%s', (direction, suffix, told) => {
    expect(parseBedrockUsageType(`USE1-Claude4.6Sonnet-${direction}-tokens${suffix}`)).toMatchObject({
      recognised: true,
      model: `${suffix.includes('global') ? 'global' : 'us'}.anthropic.claude-sonnet-4-6`,
      tokenClass: direction,
      unitTokens: 1_000n,
      ...told,
    });
  });

  it.each(tokens.filter(([, suffix]) => !/global|custom/.test(suffix)))(
    'the mantle form of %s, %s',
    (direction, suffix, told) => {
      const tier = suffix === '' ? '-standard' : suffix;
      expect(
        parseBedrockUsageType(`USE1-openai.gpt-oss-120b-mantle-${direction}-tokens${tier}`),
      ).toMatchObject({
        recognised: true,
        model: 'openai.gpt-oss-120b',
        tokenClass: direction,
        unitTokens: 1_000n,
        ...told,
      });
    },
  );

  it.each([
    ['cache-read-input-token-count', 'cache_read'],
    ['cache-write-input-token-count', 'cache_write_5m'],
  ])('%s is %s, in every manner', (meter, tokenClass) => {
    for (const [suffix, told] of MANNERS)
      expect(parseBedrockUsageType(`USE1-Claude4.6Sonnet-${meter}${suffix}`)).toMatchObject({
        recognised: true,
        tokenClass,
        ...told,
      });
  });

  it.each(DIRECTIONS)(
    'of a million tokens, the batch’s %s, is of the product that is named beside it',
    (direction) => {
      const word = direction === 'input' ? 'Input' : 'Output';
      const product = 'Claude 3 Haiku (Amazon Bedrock Edition)';
      for (const [meter, isBatch] of [
        [`USE1-MillionBatch${word}Tokens`, true],
        [`USE1-Million${word}Tokens`, false],
      ] as const) {
        expect(parseBedrockUsageType(meter, product)).toMatchObject({
          model: 'anthropic.claude-3-haiku-20240307-v1:0',
          tokenClass: direction,
          isBatch,
          unitTokens: 1_000_000n,
        });
        // The service is no model.
        for (const service of ['', 'Amazon Bedrock', 'Amazon Bedrock Foundation Models'])
          expect(parseBedrockUsageType(meter, service)).toMatchObject({ recognised: false, model: null });
      }
    },
  );
});

describe('a meter of Azure', () => {
  const spelled = (words: readonly string[], told: object) => words.map((word) => [word, told] as const);

  it.each([
    ...spelled(['in', 'inp', 'inpt', 'Input'], { tokenClass: 'input' }),
    ...spelled(['out', 'outp', 'opt', 'outpt', 'Output'], { tokenClass: 'output' }),
    ...spelled(['cd inp', 'cached Inp', 'cchd inp', 'ccchd inp', 'cd'], { tokenClass: 'cache_read' }),
    ...spelled(['Cd Wr', 'cached wr'], { tokenClass: 'cache_write_5m' }),
    ...spelled(['inp Gl', 'inp glbl', 'inp global', 'inp'], { region: null }),
    ...spelled(['inp DZ', 'inp dzone', 'inp Data Zone', 'inp datazone'], { region: 'data_zone' }),
    ...spelled(['inp regnl', 'inp rg', 'inp regional'], { region: 'regional' }),
    ...spelled(['pp inp', 'inp PP', 'Priority inp'], { serviceTier: 'priority' }),
    ...spelled(['Batch Inp', 'inp batch'], { isBatch: true }),
    ...spelled(['ShortCo Inp'], { longContext: false }),
    ...spelled(['LongCo Inp'], { longContext: true }),
  ])('5.4 %s', (words, told) => {
    for (const [unit, unitTokens] of [
      ['1K', 1_000n],
      ['1M', 1_000_000n],
    ] as const)
      for (const model of ['5.4', 'gpt-5.4', 'GPT 5.4'])
        expect(parseAzureMeter(`${model} ${words} ${unit} Tokens`)).toMatchObject({
          recognised: true,
          model: 'gpt-5.4',
          unitTokens,
          ...told,
        });
  });
});

describe('a SKU of Google', () => {
  it('is of Lite before it is of Flash, and both its thinking outputs are output', () => {
    for (const [name, model] of [
      ['Gemini 2.5 Flash', 'gemini-2.5-flash'],
      ['Gemini 2.5 Flash Lite', 'gemini-2.5-flash-lite'],
    ])
      for (const output of [
        'Text Output',
        'Thinking Text Output',
        'Text Output (Thinking On)',
        'Text Output (Non Thinking)',
      ])
        expect(parseGoogleSku(`${name} GA ${output} - Predictions`)).toMatchObject({
          model,
          tokenClass: 'output',
        });
  });
});
