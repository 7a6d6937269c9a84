import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';

/**
 * The kinds of bill that are read, as data: who issues them, which copy of a day counts before which, how finely
 * their amounts are rounded and how long a day may still be restated (docs/decisions/0042).
 */
export const BILLING_FORMATS = ['openai_pages', 'anthropic_pages', 'plain_csv'] as const;
export type BillingFormat = (typeof BILLING_FORMATS)[number];

/** 10 plain file, 20 saved page, 30 API, 40 finalised export: of two copies of a day the higher counts. */
export const SOURCE_RANKS = { plainFile: 10, savedPage: 20, api: 30, finalisedExport: 40 } as const;

export interface FormatFacts {
  format: BillingFormat;
  /** The only provider that issues it; undefined where any may. */
  provider: Provider | undefined;
  rank: number;
  /**
   * How far one row's amount may lie from quantity × rate by rounding alone. OpenAI: amounts are floats in dollars,
   * 1e-9. Anthropic: decimal cents with five observed fraction digits, half of the last one. A plain file may be
   * rounded to the cent.
   */
  roundingPico: Pico;
  /** A day read within so many days of its beginning may still be restated; it is provisional. */
  provisionalDays: number;
  /** The format lists every kind of charge of the days it covers, so an older copy's credits no longer count. */
  coversAllCategories: boolean;
}

const FACTS: Record<BillingFormat, FormatFacts> = {
  openai_pages: {
    format: 'openai_pages',
    provider: 'openai',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 1_000n,
    provisionalDays: 2,
    coversAllCategories: true,
  },
  anthropic_pages: {
    format: 'anthropic_pages',
    provider: 'anthropic',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 50_000n,
    provisionalDays: 2,
    coversAllCategories: true,
  },
  plain_csv: {
    format: 'plain_csv',
    provider: undefined,
    rank: SOURCE_RANKS.plainFile,
    roundingPico: 5_000_000_000n,
    provisionalDays: 2,
    coversAllCategories: false,
  },
};

export function factsOfFormat(format: BillingFormat): FormatFacts {
  return FACTS[format];
}

export function isBillingFormat(text: string): text is BillingFormat {
  return (BILLING_FORMATS as readonly string[]).includes(text);
}
