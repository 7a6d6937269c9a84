import { describe, expect, it } from 'vitest';
import { parseAzureMeter } from '../../../../domain/billing/grammars/azureMeter.js';
import { type ParsedLabel, UNKNOWN_LABEL } from '../../../../domain/billing/grammars/parsedLabel.js';
import { AS_OF, shippedBook } from '../../pricing/support.js';

type Expected = [meter: string, model: string, tokenClass: string, more?: Partial<ParsedLabel>];

const priority = { serviceTier: 'priority' };
const batch = { isBatch: true };
const zone = { region: 'data_zone' };
const million = { unitTokens: 1_000_000n };

/** Meters as the Azure Retail Prices API and real bills name them. */
const METERS: readonly Expected[] = [
  ['gpt-4o-0806-Inp-glbl Tokens', 'gpt-4o-2024-08-06', 'input'],
  ['gpt-4o-mini-0718-Batch-Inp-glbl Tokens', 'gpt-4o-mini-2024-07-18', 'input', batch],
  ['gpt 4.1 cached Inp glbl Tokens', 'gpt-4.1', 'cache_read'],
  ['o3 0416 Inp glbl Tokens', 'o3-2025-04-16', 'input'],
  ['5.4 inp Gl 1M Tokens', 'gpt-5.4', 'input', million],
  ['5.4 mini cd Inp Gl 1M Tokens', 'gpt-5.4-mini', 'cache_read', million],
  ['5.4 pp opt Gl 1M Tokens', 'gpt-5.4', 'output', { ...priority, ...million }],
  [
    '5.6 sol ShortCo Cd Wr Std Gl 1M Tokens',
    'gpt-5.6-sol',
    'cache_write_5m',
    { longContext: false, ...million },
  ],
  ['5.6 sol ShortCo Inp Std Gl 1M Tokens', 'gpt-5.6-sol', 'input', { longContext: false, ...million }],
  ['6-astra LongCo Opt Std Gl 1M Tokens', 'gpt-6-astra', 'output', { longContext: true, ...million }],
  [
    '6-sol ShortCo Inp PP Gl 1M Tokens',
    'gpt-6-sol',
    'input',
    { ...priority, longContext: false, ...million },
  ],
  [
    '5.6 luna ShortCo Cd Inp Std DZ 1M Tokens',
    'gpt-5.6-luna',
    'cache_read',
    { ...zone, longContext: false, ...million },
  ],
  ['54 mini Inp Flex Gl 1M Tokens', 'gpt-5.4-mini', 'input', { serviceTier: 'flex', ...million }],
  ['GPT 5 Mini Inpt Glbl 1M Tokens', 'gpt-5-mini', 'input', million],
  ['GPT 5 Mini outpt Glbl 1M Tokens', 'gpt-5-mini', 'output', million],
  ['gpt 4o 0513 Input Data Zone Tokens', 'gpt-4o-2024-05-13', 'input', zone],
  ['gpt 4o 0513 Batch Inp glbl Tokens', 'gpt-4o-2024-05-13', 'input', batch],
  ['gpt-4o 1120 Outp glbl Tokens', 'gpt-4o-2024-11-20', 'output'],
  ['gpt 4.1 mini Outp regnl Tokens', 'gpt-4.1-mini', 'output', { region: 'regional' }],
  ['gpt-5-codex-ccchd-inp-glbl Tokens', 'gpt-5-codex', 'cache_read'],
  ['gpt 5 pro out glbl Tokens', 'gpt-5-pro', 'output'],
  ['o3-deep research 0626-inp-glbl Tokens', 'o3-deep-research-0626', 'input'],
  ['o4-mini 0416 cached Inp Data Zone Tokens', 'o4-mini-2025-04-16', 'cache_read', zone],
  ['o1 mini input glbl Tokens', 'o1-mini', 'input'],
  ['gpt-oss-120B Outp glbl Tokens', 'gpt-oss-120b', 'output'],
  ['chat-latest 08062026 inp Gl 1M Tokens', 'chat-latest-2026-08-06', 'input', million],
  ['gpt-4o-aud-1217 Inp glbl Tokens', 'gpt-4o-audio-preview-2024-12-17', 'input_audio'],
  ['gpt-4o-aud-txt-1217 Inp glbl Tokens', 'gpt-4o-audio-preview-2024-12-17', 'input'],
  ['text-embedding-3-small-glbl Tokens', 'text-embedding-3-small', 'input'],
  ['Text Embedding Ada 002 Tokens', 'text-embedding-ada-002', 'input'],
  ['gpt-4-turbo128K Completion Tokens', 'gpt-4-turbo', 'output'],
  ['GPT 35 turbo 16K 0613 Prompt Tokens', 'gpt-3.5-turbo-16k-0613', 'input'],
];

describe('meters of Azure', () => {
  it.each(METERS)('%s', (meter, model, tokenClass, more = {}) => {
    expect(parseAzureMeter(meter)).toEqual({
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
    'gpt 4.1 weirdly-worded glbl Tokens',
    '4.3 Cached Inp Glbl Tokens',
    'K2.5 Thinking Outp DZ Tokens',
    'V3.1 Inp DZone Tokens',
    'Llama 3.3 70B Inp glbl Tokens',
    'o4-mini-ft output Tokens',
    'gpt 4.1 mini ft Inp glbl Tokens',
    'Image 2 img opt Gl 1M Tokens',
    'Image 2 txt inp Gl 1M Tokens',
    'Sora 2 pro glbl Second',
    'Standard Tokens',
    '5.4 inp opt Gl 1M Tokens',
    '5.4 inp Gl Dz 1M Tokens',
    '5.4 Gl 1M Tokens',
    '',
  ])('%s is not understood, and not guessed', (meter) => {
    expect(parseAzureMeter(meter)).toEqual(UNKNOWN_LABEL);
  });

  it('a bare version is a model of OpenAI’s only where no other maker’s product is named', () => {
    expect(parseAzureMeter('5 inp Gl 1M Tokens', 'Azure OpenAI GPT5').model).toBe('gpt-5');
    expect(parseAzureMeter('5 inp Gl 1M Tokens', 'Foundry Models').model).toBe('gpt-5');
    expect(parseAzureMeter('5 inp Gl 1M Tokens', 'Azure Grok Models').recognised).toBe(false);
  });

  it.each([
    'o4 mini ft hosting Dz Unit',
    'Provisioned Managed Global Unit',
    'Code-Interpreter-global Session',
    'o4-mini-ft model grader output Tokens',
    'gpt-4o-0806-FTuned Training glbl Tokens',
    'File Search Tool Calls',
    'Hosted vCPU Usage',
  ])('%s is a charge that no call can show', (meter) => {
    expect(parseAzureMeter(meter)).toMatchObject({ recognised: true, model: null, observable: false });
  });
});

describe('every model of Azure’s price list, written as a meter, is found again', () => {
  const book = shippedBook();
  const cases = book
    .entriesOf('azure_openai')
    .flatMap(({ entry }) => [entry.model, ...entry.aliases].map((id) => ({ id, entry: entry.model })));

  it.each(cases)('$id', ({ id, entry }) => {
    const name = id.replace(/-(20\d\d)-(\d\d)-(\d\d)$/, '-$2$3').replace(/audio-preview/, 'aud');
    const bare = name.replace(/^gpt-(?=(?:4o|4\.1|5|6)(?:\b|\.))/, '').replaceAll('-', ' ');
    for (const meter of [`${name}-Inp-glbl Tokens`, `${bare} Inp Gl 1M Tokens`]) {
      const parsed = parseAzureMeter(meter);
      expect(parsed.recognised, meter).toBe(true);
      expect(book.find('azure_openai', parsed.model ?? '', AS_OF)?.entry.model, meter).toBe(entry);
    }
  });
});
