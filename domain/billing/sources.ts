import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';

/** Kinds of bills as data: issuer, rank among copies, rounding, and how long days may be restated (docs/decisions/0011). */
export const BILLING_FORMATS = [
  'openai_pages',
  'anthropic_pages',
  'aws_ce_pages',
  'azure_query_pages',
  'plain_csv',
  'aws_cur2',
  'aws_cur_legacy',
  'azure_cost_details',
  'google_billing_export',
  'focus',
  'xai_invoices',
  'mistral_usage',
] as const;
export type BillingFormat = (typeof BILLING_FORMATS)[number];

/** 10 plain file, 20 saved page, 30 API, 40 finalised export: of two copies of a day the higher counts. */
export const SOURCE_RANKS = { plainFile: 10, savedPage: 20, api: 30, finalisedExport: 40 } as const;

export interface FormatFacts {
  format: BillingFormat;
  /** `pages`: saved report answers; `table`: records under a header; `document`: one JSON document. */
  shape: 'pages' | 'table' | 'document';
  /** The only provider that issues it; undefined where any may. */
  provider: Provider | undefined;
  rank: number;
  /**
   * How far one row's amount may lie from quantity × rate by rounding alone. OpenAI: amounts are floats in dollars,
   * 1e-9. Anthropic: decimal cents with five observed fraction digits, half of the last one. AWS: ten fraction digits.
   * Azure and Google: floating-point numbers of six sure digits. A plain file may be rounded to the cent.
   */
  roundingPico: Pico;
  /** A day read within so many days of its beginning may still be restated, where the bill itself does not say. */
  provisionalDays: number;
  /** The format lists every kind of charge of the days it covers, so an older copy's credits no longer count. */
  coversAllCategories: boolean;
  /** The bill of one period: a later bill states what it adds. Other formats state a day's cost on whatever invoice. */
  isOfOnePeriod: boolean;
}

const CENT_HALF_PICO = 5_000_000_000n;
const MICRO_DOLLAR_PICO = 1_000_000n;
/** Bills by calendar month are closed some days after it: AWS and Google say so of theirs, Azure after five days. */
const UNTIL_MONTH_CLOSED_DAYS = 36;

const FACTS: Record<BillingFormat, FormatFacts> = {
  openai_pages: {
    format: 'openai_pages',
    shape: 'pages',
    provider: 'openai',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 1_000n,
    provisionalDays: 2,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  anthropic_pages: {
    format: 'anthropic_pages',
    shape: 'pages',
    provider: 'anthropic',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 50_000n,
    provisionalDays: 2,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  aws_ce_pages: {
    format: 'aws_ce_pages',
    shape: 'pages',
    provider: 'aws_bedrock',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 100n,
    provisionalDays: UNTIL_MONTH_CLOSED_DAYS,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  azure_query_pages: {
    format: 'azure_query_pages',
    shape: 'pages',
    provider: 'azure_openai',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: MICRO_DOLLAR_PICO,
    provisionalDays: UNTIL_MONTH_CLOSED_DAYS,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  plain_csv: {
    format: 'plain_csv',
    shape: 'table',
    provider: undefined,
    rank: SOURCE_RANKS.plainFile,
    roundingPico: CENT_HALF_PICO,
    provisionalDays: 2,
    coversAllCategories: false,
    isOfOnePeriod: false,
  },
  aws_cur2: { ...exportFacts('aws_cur2', 'aws_bedrock'), roundingPico: 100n },
  aws_cur_legacy: { ...exportFacts('aws_cur_legacy', 'aws_bedrock'), roundingPico: 100n },
  azure_cost_details: exportFacts('azure_cost_details', 'azure_openai'),
  google_billing_export: exportFacts('google_billing_export', 'google'),
  focus: exportFacts('focus', undefined),
  xai_invoices: {
    ...exportFacts('xai_invoices', 'xai'),
    shape: 'document',
    roundingPico: CENT_HALF_PICO,
    coversAllCategories: false,
    isOfOnePeriod: false,
  },
  mistral_usage: {
    ...exportFacts('mistral_usage', 'mistral'),
    shape: 'document',
    roundingPico: CENT_HALF_PICO,
    coversAllCategories: false,
    isOfOnePeriod: false,
  },
};

/** A whole export of a billing period, line by line. */
function exportFacts(format: BillingFormat, provider: Provider | undefined): FormatFacts {
  return {
    format,
    shape: 'table',
    provider,
    rank: SOURCE_RANKS.finalisedExport,
    roundingPico: MICRO_DOLLAR_PICO,
    provisionalDays: UNTIL_MONTH_CLOSED_DAYS,
    coversAllCategories: true,
    isOfOnePeriod: true,
  };
}

export function factsOfFormat(format: BillingFormat): FormatFacts {
  return FACTS[format];
}

/** The rank of a day; an export that calls the day not final ranks below the API. */
export function rankOfDay(format: BillingFormat, isFinal: boolean | null): number {
  const { rank } = FACTS[format];
  return isFinal === false && rank === SOURCE_RANKS.finalisedExport ? SOURCE_RANKS.savedPage : rank;
}

/** A day read within so many days of its beginning may still be restated; none where the bill itself calls it final. */
export function provisionalDaysOf(formats: readonly BillingFormat[], isFinal: boolean | null): number {
  return isFinal ? 0 : Math.max(...formats.map((format) => FACTS[format].provisionalDays));
}

export function isBillingFormat(text: string): text is BillingFormat {
  return (BILLING_FORMATS as readonly string[]).includes(text);
}
