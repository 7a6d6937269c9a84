import type { Pico } from '../money.js';
import { MICROS_PER_DAY, microsOfDay } from '../period.js';
import type { Provider } from '../providers.js';
import { nextMonth } from './periods.js';

/**
 * Properties of each kind of bill: issuer, rank among copies, rounding, and how long days may be restated
 * (docs/decisions/0011).
 */
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

/** 10 plain file, 20 saved page, 30 API, 40 finalised export. The copy of a day with the highest rank counts. */
export const SOURCE_RANKS = { plainFile: 10, savedPage: 20, api: 30, finalisedExport: 40 } as const;

/**
 * `day`: so many days from the day's own start. `month`: until so many days after the end of the day's month, in which
 * the provider closes the month's bill.
 */
export interface Restatable {
  readonly of: 'day' | 'month';
  readonly days: number;
}

export interface FormatFacts {
  format: BillingFormat;
  /** `pages`: saved report answers; `table`: records under a header; `document`: one JSON document. */
  shape: 'pages' | 'table' | 'document';
  /** The only provider that issues this format; undefined: any provider may. */
  provider: Provider | undefined;
  rank: number;
  /**
   * The maximum difference between a row's amount and quantity × rate by rounding alone. OpenAI: amounts are
   * floats in dollars, 1e-9. Anthropic: decimal cents with five observed fraction digits, half of the last one.
   * AWS: ten fraction digits. Azure and Google: floating-point numbers of six sure digits. A plain file may be
   * rounded to the cent.
   */
  roundingPico: Pico;
  /** The time in which a day may be restated, unless the bill marks it final. */
  restatable: Restatable;
  /** The format contains every kind of charge of its days, so an older copy's credits no longer count. */
  coversAllCategories: boolean;
  /**
   * The bill covers one period, and a later bill contains only additions. Other formats state a day's whole cost
   * on any invoice.
   */
  isOfOnePeriod: boolean;
}

const CENT_HALF_PICO = 5_000_000_000n;
const MICRO_DOLLAR_PICO = 1_000_000n;
const TWO_DAYS: Restatable = { of: 'day', days: 2 };
/**
 * Azure closes a month up to five days after its end (Cost Management, "Understand cost management data"). AWS issues the
 * bill around the sixth or seventh (Billing User Guide), Google after five business days, which a holiday makes eight days;
 * other exports are taken to be as late.
 */
const AZURE_MONTH: Restatable = { of: 'month', days: 5 };
const AWS_MONTH: Restatable = { of: 'month', days: 7 };
const LATEST_MONTH: Restatable = { of: 'month', days: 8 };

const FACTS: Record<BillingFormat, FormatFacts> = {
  openai_pages: {
    format: 'openai_pages',
    shape: 'pages',
    provider: 'openai',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 1_000n,
    restatable: TWO_DAYS,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  anthropic_pages: {
    format: 'anthropic_pages',
    shape: 'pages',
    provider: 'anthropic',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 50_000n,
    restatable: TWO_DAYS,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  aws_ce_pages: {
    format: 'aws_ce_pages',
    shape: 'pages',
    provider: 'aws_bedrock',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: 100n,
    restatable: AWS_MONTH,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  azure_query_pages: {
    format: 'azure_query_pages',
    shape: 'pages',
    provider: 'azure_openai',
    rank: SOURCE_RANKS.savedPage,
    roundingPico: MICRO_DOLLAR_PICO,
    restatable: AZURE_MONTH,
    coversAllCategories: true,
    isOfOnePeriod: false,
  },
  plain_csv: {
    format: 'plain_csv',
    shape: 'table',
    provider: undefined,
    rank: SOURCE_RANKS.plainFile,
    roundingPico: CENT_HALF_PICO,
    restatable: TWO_DAYS,
    coversAllCategories: false,
    isOfOnePeriod: false,
  },
  aws_cur2: { ...exportFacts('aws_cur2', 'aws_bedrock'), roundingPico: 100n, restatable: AWS_MONTH },
  aws_cur_legacy: {
    ...exportFacts('aws_cur_legacy', 'aws_bedrock'),
    roundingPico: 100n,
    restatable: AWS_MONTH,
  },
  azure_cost_details: { ...exportFacts('azure_cost_details', 'azure_openai'), restatable: AZURE_MONTH },
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

/** The properties of a whole export of a billing period, line by line. */
function exportFacts(format: BillingFormat, provider: Provider | undefined): FormatFacts {
  return {
    format,
    shape: 'table',
    provider,
    rank: SOURCE_RANKS.finalisedExport,
    roundingPico: MICRO_DOLLAR_PICO,
    restatable: LATEST_MONTH,
    coversAllCategories: true,
    isOfOnePeriod: true,
  };
}

/** The format of the answers that are fetched from a provider's API; undefined: its bills are not fetched. */
export const FETCHED_FORMATS: Readonly<Partial<Record<Provider, BillingFormat>>> = {
  openai: 'openai_pages',
  anthropic: 'anthropic_pages',
  azure_openai: 'azure_query_pages',
  aws_bedrock: 'aws_ce_pages',
};

/** The time in which fetched days of a provider may be restated. */
export function restatableOf(provider: Provider): Restatable {
  return FACTS[FETCHED_FORMATS[provider] ?? 'openai_pages'].restatable;
}

export function factsOfFormat(format: BillingFormat): FormatFacts {
  return FACTS[format];
}

/** The clouds' exports and answers, each line of which is labelled with a meter, a SKU or a usage type. */
const LABELLED_BY_METER: ReadonlySet<BillingFormat> = new Set([
  'azure_cost_details',
  'azure_query_pages',
  'google_billing_export',
  'aws_ce_pages',
]);

/**
 * Whether a line of `standard` is known to be of the ordinary tier, since its label would name another: clouds sell each
 * tier under a meter of its own (Azure `pp`, Bedrock `-priority` and `-flex`, Google `Priority`). A CUR line whose usage
 * type could not be read has its model from the product's attributes, which name neither tier nor length; a usage type that
 * was read states the length. Other formats have a column for the tier that may be empty, or no place for it.
 */
export function isTierNamed(format: BillingFormat, longContext: boolean | null): boolean {
  if (format === 'aws_cur2' || format === 'aws_cur_legacy') return longContext !== null;
  return LABELLED_BY_METER.has(format);
}

/** The rank of a day; a day that the export marks as not final ranks below the API. */
export function rankOfDay(format: BillingFormat, isFinal: boolean | null): number {
  const { rank } = FACTS[format];
  return isFinal === false && rank === SOURCE_RANKS.finalisedExport ? SOURCE_RANKS.savedPage : rank;
}

/**
 * The days from its start in which a day, `YYYY-MM-DD`, may still be restated; the longest of the formats, and 0 if the
 * bill marks the day final.
 */
export function provisionalDaysOf(
  formats: readonly BillingFormat[],
  isFinal: boolean | null,
  day: string,
): number {
  return isFinal ? 0 : Math.max(...formats.map((format) => daysUntilClosed(FACTS[format].restatable, day)));
}

function daysUntilClosed({ of, days }: Restatable, day: string): number {
  if (of === 'day') return days;
  return Number((microsOfDay(nextMonth(day)) - microsOfDay(day)) / MICROS_PER_DAY) + days;
}

export function isBillingFormat(text: string): text is BillingFormat {
  return (BILLING_FORMATS as readonly string[]).includes(text);
}
