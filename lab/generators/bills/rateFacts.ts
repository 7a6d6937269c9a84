/**
 * The generators' own list prices in US dollars per million tokens, copied from the providers' pricing pages in
 * November 2026 (platform.openai.com/docs/pricing, docs.claude.com pricing, ai.google.dev pricing, the price pages
 * of Azure OpenAI and Amazon Bedrock). test/lab/rateBook.test.ts compares them with data/prices.json. Missing
 * rates mean no such traffic: a model without batch rates here gets no batch calls.
 */
import type { BookModel, ListRates } from './rateBook.js';

const openai = (input: number, cached: number, output: number, write: number | null = null): ListRates => [
  input,
  cached,
  write,
  null,
  output,
];
/** Anthropic: a cache write costs 1.25 of the input rate for five minutes, twice the input rate for an hour. */
const claude = (input: number, read: number, write5m: number, write1h: number, output: number): ListRates => [
  input,
  read,
  write5m,
  write1h,
  output,
];

export const OPENAI: BookModel[] = [
  {
    provider: 'openai',
    model: 'gpt-5.4',
    billed: 'gpt-5.4-2026-03-05',
    usPerMille: 1_100,
    contextTokens: 1_050_000,
    periods: [
      {
        from: null,
        standard: openai(2.5, 0.25, 15),
        batch: openai(1.25, 0.13, 7.5),
        flex: openai(1.25, 0.13, 7.5),
        priority: openai(5, 0.5, 30),
        long: { above: 272_000, standard: openai(5, 0.5, 22.5), batch: openai(2.5, 0.25, 11.25) },
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5.4-mini',
    billed: 'gpt-5.4-mini-2026-03-17',
    usPerMille: 1_100,
    contextTokens: 400_000,
    periods: [
      {
        from: null,
        standard: openai(0.75, 0.075, 4.5),
        batch: openai(0.375, 0.0375, 2.25),
        flex: openai(0.375, 0.0375, 2.25),
        priority: openai(1.5, 0.15, 9),
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5.5',
    billed: 'gpt-5.5-2026-04-23',
    usPerMille: 1_100,
    contextTokens: 1_050_000,
    periods: [
      {
        from: null,
        standard: openai(5, 0.5, 30),
        batch: openai(2.5, 0.25, 15),
        flex: openai(2.5, 0.25, 15),
        priority: openai(12.5, 1.25, 75),
        long: { above: 272_000, standard: openai(10, 1, 45), batch: openai(5, 0.5, 22.5) },
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5.6-sol',
    billed: 'gpt-5.6-sol',
    usPerMille: 1_100,
    contextTokens: 1_050_000,
    periods: [
      {
        from: null,
        standard: openai(5, 0.5, 30, 6.25),
        long: { above: 272_000, standard: openai(10, 1, 45, 12.5) },
      },
      // Announced as a promotion.
      {
        from: '2026-08-21',
        standard: openai(4, 0.4, 20, 5),
        batch: openai(2, 0.2, 10, 2.5),
        flex: openai(2, 0.2, 10, 2.5),
        priority: openai(8, 0.8, 40, 10),
        long: { above: 272_000, standard: openai(8, 0.8, 30, 10), batch: openai(4, 0.4, 15, 5) },
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5.6-terra',
    billed: 'gpt-5.6-terra',
    usPerMille: 1_100,
    contextTokens: 1_050_000,
    periods: [
      {
        from: null,
        standard: openai(2.5, 0.25, 15, 3.125),
        long: { above: 272_000, standard: openai(5, 0.5, 22.5, 6.25) },
      },
      {
        from: '2026-07-30',
        standard: openai(2, 0.2, 12, 2.5),
        batch: openai(1, 0.1, 6, 1.25),
        flex: openai(1, 0.1, 6, 1.25),
        priority: openai(4, 0.4, 24, 5),
        long: { above: 272_000, standard: openai(4, 0.4, 18, 5), batch: openai(2, 0.2, 9, 2.5) },
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5.6-luna',
    billed: 'gpt-5.6-luna',
    usPerMille: 1_100,
    contextTokens: 1_050_000,
    periods: [
      {
        from: null,
        standard: openai(1, 0.1, 6, 1.25),
        long: { above: 272_000, standard: openai(2, 0.2, 9, 2.5) },
      },
      {
        from: '2026-07-30',
        standard: openai(0.2, 0.02, 1.2, 0.25),
        batch: openai(0.1, 0.01, 0.6, 0.125),
        flex: openai(0.1, 0.01, 0.6, 0.125),
        priority: openai(0.4, 0.04, 2.4, 0.5),
        long: { above: 272_000, standard: openai(0.4, 0.04, 1.8, 0.5), batch: openai(0.2, 0.02, 0.9, 0.25) },
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-4.1',
    billed: 'gpt-4.1-2025-04-14',
    contextTokens: 1_047_576,
    // This model has no batch discount for cached input.
    periods: [
      {
        from: null,
        standard: openai(2, 0.5, 8),
        batch: openai(1, 0.5, 4),
        priority: openai(3.5, 0.875, 14),
      },
    ],
  },
  {
    provider: 'openai',
    model: 'gpt-5-mini',
    billed: 'gpt-5-mini-2025-08-07',
    contextTokens: 400_000,
    periods: [
      {
        from: null,
        standard: openai(0.25, 0.025, 2),
        batch: openai(0.125, 0.0125, 1),
        flex: openai(0.125, 0.0125, 1),
        priority: openai(0.45, 0.045, 3.6),
      },
    ],
  },
];

export const ANTHROPIC: BookModel[] = [
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    billed: 'claude-sonnet-4-5-20250929',
    contextTokens: 1_000_000,
    periods: [
      {
        from: null,
        standard: claude(3, 0.3, 3.75, 6, 15),
        batch: claude(1.5, 0.15, 1.875, 3, 7.5),
        long: {
          above: 200_000,
          standard: claude(6, 0.6, 7.5, 12, 22.5),
          batch: claude(3, 0.3, 3.75, 6, 11.25),
        },
      },
    ],
  },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-6',
    billed: 'claude-sonnet-4-6',
    usPerMille: 1_100,
    contextTokens: 1_000_000,
    periods: [
      {
        from: '2026-03-13',
        standard: claude(3, 0.3, 3.75, 6, 15),
        batch: claude(1.5, 0.15, 1.875, 3, 7.5),
      },
    ],
  },
  {
    provider: 'anthropic',
    model: 'claude-opus-5',
    billed: 'claude-opus-5',
    usPerMille: 1_100,
    contextTokens: 1_000_000,
    periods: [
      {
        from: null,
        standard: claude(5, 0.5, 6.25, 10, 25),
        batch: claude(2.5, 0.25, 3.125, 5, 12.5),
        fast: claude(10, 1, 12.5, 20, 50),
      },
    ],
  },
  {
    provider: 'anthropic',
    model: 'claude-opus-5-5',
    billed: 'claude-opus-5-5',
    usPerMille: 1_100,
    contextTokens: 1_000_000,
    periods: [
      {
        from: null,
        standard: claude(4, 0.2, 5, 8, 20),
        batch: claude(2, 0.1, 2.5, 4, 10),
        fast: claude(8, 0.4, 10, 16, 40),
      },
    ],
  },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-5',
    billed: 'claude-sonnet-5',
    usPerMille: 1_100,
    contextTokens: 1_000_000,
    periods: [{ from: null, standard: claude(2, 0.2, 2.5, 4, 10), batch: claude(1, 0.1, 1.25, 2, 5) }],
  },
  {
    provider: 'anthropic',
    model: 'claude-haiku-4-5',
    billed: 'claude-haiku-4-5-20251001',
    contextTokens: 200_000,
    periods: [{ from: null, standard: claude(1, 0.1, 1.25, 2, 5), batch: claude(0.5, 0.05, 0.625, 1, 2.5) }],
  },
];

export const OTHERS: BookModel[] = [
  {
    provider: 'azure_openai',
    model: 'gpt-5.1',
    billed: 'gpt-5.1-2025-11-13',
    contextTokens: 400_000,
    periods: [{ from: null, standard: openai(1.25, 0.125, 10), batch: openai(0.625, 0.0625, 5) }],
  },
  {
    provider: 'aws_bedrock',
    model: 'amazon.nova-pro-v1:0',
    billed: 'amazon.nova-pro-v1:0',
    contextTokens: 300_000,
    periods: [{ from: null, standard: openai(0.8, 0.2, 3.2) }],
  },
  {
    provider: 'google',
    model: 'gemini-2.5-flash',
    billed: 'gemini-2.5-flash',
    contextTokens: 1_048_576,
    periods: [{ from: null, standard: openai(0.3, 0.03, 2.5) }],
  },
  {
    provider: 'google',
    model: 'gemini-3.6-flash',
    billed: 'gemini-3.6-flash',
    contextTokens: 1_000_000,
    // An introductory price with its announced end.
    periods: [
      { from: null, standard: openai(0.75, 0.075, 3.75), batch: openai(0.375, 0.0375, 1.875) },
      { from: '2027-01-01', standard: openai(1.5, 0.15, 7.5) },
    ],
  },
];
