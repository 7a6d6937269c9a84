import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decimalOf, picoOf, type Tokens } from '../../../sdk/js/src/money.js';
import { PriceTable } from '../../../sdk/js/src/prices.js';
import { estimateTokens, promptText } from '../../../sdk/js/src/texts.js';
import { tokensOf } from '../../../sdk/js/src/usage.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { LineProgram } from '../../support/python.js';

let python: LineProgram;
beforeAll(() => {
  python = new LineProgram('test/sdk/python/programs/facts.py');
});
afterAll(() => python?.close());

const ask = <Answer>(name: string, value: unknown) => python.ask<Answer>([name, value]);
const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);

/** Texts of all planes, with halves of pairs and the blanks of both languages. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  oneOf('', ' ', '\u00a0\ufeff', '\u001c', '\u0085', '\u2029', 'a😀b', '\ud83d', 'Hello'),
);
const leaf = fc.oneof(
  { weight: 4, arbitrary: text },
  { weight: 1, arbitrary: oneOf<unknown>(null, true, false, 0, 7, -1, 128_000, 1.5) },
);
const FIELDS = [
  ...['messages', 'input', 'prompt', 'contents', 'content', 'system', 'instructions', 'tools', 'texts'],
  ...['inputs', 'message', 'query', 'config', 'toolConfig', 'inputText', 'documents', 'role', 'type', 'data'],
  ...[
    'image_url',
    'inlineData',
    'text',
    'parts',
    'output',
    'functionResponse',
    'toolResult',
    'json',
    'other',
  ],
];
const name = oneOf(...FIELDS);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 5 }),
    fc.tuple(oneOf('user', 'system', 'developer', 'SYSTEM'), tie('value')).map(([role, content]) => ({
      role,
      content,
    })),
  ),
}));
const body = fc.oneof(fc.dictionary(name, value, { maxKeys: 6 }), value);

const count = fc.oneof(oneOf<unknown>(null, 0, 1, 7, 100, 1.5, 4.0, -1, '3', true, 2 ** 53), fc.nat());
const usageNames = [
  ...['prompt_tokens', 'completion_tokens', 'input_tokens', 'output_tokens', 'inputTokens', 'outputTokens'],
  ...['cache_read_input_tokens', 'cache_creation_input_tokens', 'cacheReadInputTokens', 'promptTokens'],
  ...['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'cachedContentTokenCount'],
  ...['prompt_cache_hit_tokens', 'toolUsePromptTokenCount', 'cacheWriteInputTokenCount', 'completionTokens'],
];
const details = fc.dictionary(
  oneOf(
    'cached_tokens',
    'cachedTokens',
    'cache_write_tokens',
    'input_tokens',
    'output_tokens',
    'inputTokens',
  ),
  count,
);
const usage = fc
  .tuple(
    fc.dictionary(oneOf(...usageNames), count, { maxKeys: 6 }),
    fc.dictionary(
      oneOf('prompt_tokens_details', 'input_tokens_details', 'billed_units', 'billedUnits', 'tokens'),
      fc.oneof(details, oneOf(null)),
      { maxKeys: 2 },
    ),
  )
  .map(([counts, inner]) => ({ ...counts, ...inner }));

const snakeCase = (tokens: Tokens | undefined) =>
  tokens === undefined
    ? null
    : {
        input: tokens.input,
        cache_read: tokens.cacheRead,
        cache_write: tokens.cacheWrite,
        output: tokens.output,
      };

const usd = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.nat(),
  fc.tuple(fc.nat(), fc.nat()).map(([whole, fraction]) => `${whole}.${fraction}`),
  fc.string(),
  oneOf<unknown>(
    '1e-13',
    '5e-13',
    '15e-13',
    '.5',
    '5.',
    '.',
    '1e400',
    ' 2 ',
    '١',
    null,
    true,
    [],
    {},
    1e21,
    1e-7,
  ),
);

const FAMILIES = [
  ...['gpt-4o', 'gpt-4o-mini', 'gpt-3.5-turbo', 'o3', 'ft:gpt-4o', 'claude-3-5-haiku', 'claude-sonnet-4-5'],
  ...['gemini-2.5-flash', 'nova-lite', 'mistral-large', 'command-r-plus', 'llama3-1-8b-instruct'],
];
/** Some rows lack what a price needs, or the prices of cached input. */
const PRICING = Object.fromEntries(
  FAMILIES.map((family, index) => {
    const whole = { in_per_mtok: 0.1 + index / 7, out_per_mtok: 1.3 + index, cache_read: index / 30 };
    return [
      family,
      index === 3 ? { in_per_mtok: 1 } : index % 3 === 0 ? whole : { ...whole, cache_creation: 2 },
    ];
  }),
);
const SUFFIXES = ['', '-latest', '-2026-01-02', '-20260102', '-0102', '-002', '-v1:0', '@default', ' ', '-x'];
const PREFIXES = ['', 'us.', 'anthropic.', 'eu.anthropic.', 'models/', 'openai/', 'ft:', 'arn:aws:bedrock/'];
const model = fc
  .tuple(oneOf(...PREFIXES), oneOf(...FAMILIES, 'gpt-35-turbo', 'unknown'), oneOf(...SUFFIXES), fc.boolean())
  .map(([prefix, family, suffix, isLoud]) => {
    const id = `${prefix}${family}${suffix}`;
    return isLoud ? id.toUpperCase() : id;
  });

describe('the Python package computes what the JavaScript package computes', () => {
  it('estimates the same tokens of a request', async () => {
    await fc.assert(
      fc.asyncProperty(body, async (drawn) => {
        expect(await ask('estimate', drawn)).toBe(estimateTokens(drawn));
      }),
      { numRuns: propertyRuns(400) },
    );
  });

  it('finds the same prompts in a request', async () => {
    await fc.assert(
      fc.asyncProperty(body, async (drawn) => {
        expect(await ask('prompt', drawn)).toBe(promptText(drawn));
      }),
      { numRuns: propertyRuns(400) },
    );
  });

  it('reads the same tokens in a usage object', async () => {
    await fc.assert(
      fc.asyncProperty(usage, async (drawn) => {
        expect(await ask('tokens', drawn)).toEqual(snakeCase(tokensOf(drawn)));
      }),
      { numRuns: propertyRuns(400) },
    );
  });

  it('reads the same dollars, to the last digit', async () => {
    await fc.assert(
      fc.asyncProperty(usd, async (drawn) => {
        const pico = picoOf(drawn);
        expect(await ask('dollars', drawn)).toBe(pico === undefined ? null : decimalOf(pico));
      }),
      { numRuns: propertyRuns(400) },
    );
  });

  it('finds the same price of a model, and costs that are equal to the last digit', async () => {
    const table = new PriceTable(PRICING);
    let priced = 0;
    await fc.assert(
      fc.asyncProperty(
        model,
        fc.array(fc.nat(), { minLength: 4, maxLength: 4 }),
        fc.boolean(),
        async (drawn, counts, isBatch) => {
          const [input = 0, output = 0, read = 0, write = 0] = counts;
          const given = {
            input_tokens: input,
            output_tokens: output,
            cache_read_input_tokens: read,
            cache_creation_input_tokens: write,
          };
          const pico = table.cost(drawn, { input, output, cacheRead: read, cacheWrite: write }, isBatch);
          const asked = { model: drawn, usage: given, is_batch: isBatch, pricing: PRICING };
          expect(await ask('cost', asked), drawn).toBe(pico === undefined ? null : decimalOf(pico));
          if (pico !== undefined) priced += 1;
        },
      ),
      { numRuns: propertyRuns(200) },
    );
    expect(priced).toBeGreaterThan(50);
  });
});
