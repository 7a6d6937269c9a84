/**
 * One line of a provider's bill or usage report, read from whatever file or feed it came by. Cost rows carry money,
 * usage rows carry quantities of the same consumption; the two are never added to each other.
 */
import { TOKEN_CLASSES } from '../events/event.js';
import type { Pico } from '../money.js';

export const FEEDS = ['cost', 'usage'] as const;
export type Feed = (typeof FEEDS)[number];

/** Only `usage` enters reconciliation; the rest belong to the statement. */
export const CHARGE_CATEGORIES = ['usage', 'tax', 'credit', 'refund', 'purchase', 'adjustment'] as const;
export type ChargeCategory = (typeof CHARGE_CATEGORIES)[number];

/** What a billed quantity counts: a token class, calls, or something that no token class describes. */
export const BILLED_CLASSES = [...TOKEN_CLASSES, 'requests', 'other'] as const;
export type BilledClass = (typeof BILLED_CLASSES)[number];

/** Other names of classes, which billing files use too. */
const CLASS_ALIASES: ReadonlyMap<string, BilledClass> = new Map([
  ['audio_input', 'input_audio'],
  ['audio_output', 'output_audio'],
]);

/** Every name of a billed class that a billing file may use. */
export const BILLED_CLASS_NAMES: readonly string[] = [...BILLED_CLASSES, ...CLASS_ALIASES.keys()];

/** The class with this name or alias, in lower case; undefined for any other word. */
export function findBilledClass(name: string): BilledClass | undefined {
  return BILLED_CLASSES.find((one) => one === name) ?? CLASS_ALIASES.get(name);
}

/** Fraction digits of a quantity: it is a bigint count of 1e-12 units, as numeric(38,12) is in SQL. */
export const QUANTITY_SCALE = 12;
export const QUANTITY_ONE = 10n ** BigInt(QUANTITY_SCALE);

/**
 * The report of cost rows that tell a month and no day of it: they stand on the month's first day, enter the statement, and
 * are compared with no day's calls.
 */
export const MONTH_REPORT = 'month';

export interface BilledRow {
  feed: Feed;
  /**
   * Which of a provider's usage reports told it, e.g. `completions`; '' on cost rows, but where copies of other rows of
   * the day must not take their place: `month`, or the invoice of another month.
   */
  report: string;
  /** The account that the content itself names; null where it names none. */
  account: string | null;
  /** UTC day `YYYY-MM-DD` that the charge belongs to. */
  day: string;
  /** Half-open interval of the bucket, microseconds. */
  periodStartMicros: bigint;
  periodEndMicros: bigint;
  chargeCategory: ChargeCategory;
  /** The provider's own label, verbatim. */
  lineItem: string;
  /** False for usage that no call can show: storage, hosting, tool fees without a count. */
  observable: boolean;
  /** Null where the line was not understood: shown as `other`, never guessed. */
  model: string | null;
  tokenClass: BilledClass;
  /** `standard` where the bill names no other. */
  serviceTier: string;
  /** Null where the bill does not say. */
  isBatch: boolean | null;
  longContext: boolean | null;
  /** Region whose price differs, e.g. `us`; null for the ordinary price. */
  region: string | null;
  project: string | null;
  apiKey: string | null;
  /** In 1e-12 units; tokens wherever the class is a token class. Null where the bill gives none. */
  quantity: bigint | null;
  quantityUnit: string | null;
  /** The money that counts, in USD; null on usage rows, and where nobody gave a rate for its currency. */
  amountPico: Pico | null;
  /** The same charge at list prices, USD; null where the bill does not say or it cannot be converted. */
  listPico: Pico | null;
  /** At the prices of the customer's contract, USD; null likewise. */
  contractedPico: Pico | null;
  /** After discounts that the bill gives to the line itself, USD; null likewise. */
  netPico: Pico | null;
  /** Upper-case ISO 4217 code of `originalAmount`; null on usage rows. */
  currency: string | null;
  /** The amount as billed, in its own currency, 1e-12 units. */
  originalAmount: bigint | null;
  /** Whether the bill itself calls the charge final (an invoice number, no longer estimated); null: it does not say. */
  isFinal: boolean | null;
}

/** A label that no grammar knows, kept as `other`: how often it came and what it sums to. */
export interface UnparsedLabel {
  label: string;
  rows: number;
  amountPico: Pico;
}

/**
 * Words by which a label that names no usage says what it is. OpenAI's costs and Anthropic's cost report have no
 * field for it; grants and corrections come as labels of their own, mostly with a negative amount.
 */
const WORDS: readonly [ChargeCategory, RegExp][] = [
  ['refund', /\brefund(?:s|ed)?\b/i],
  ['credit', /\b(?:credits?|grants?|promo(?:tional|tion)?|discounts?)\b/i],
  ['tax', /\b(?:tax|taxes|vat|gst)\b/i],
  ['adjustment', /\b(?:adjustments?|corrections?|true-?ups?)\b/i],
  ['purchase', /\b(?:purchases?|top-?ups?|prepaid|commitments?)\b/i],
];

/**
 * The category of a cost row without a category field. `recognised` says that the label's grammar named usage. A
 * negative amount is never usage: netted into it, a day of use would look free. A label that is
 * not understood and not negative stays usage, so that it is shown until somebody explains it.
 */
export function categoryOfLabel(label: string, recognised: boolean, amountPico: Pico): ChargeCategory {
  if (!recognised) {
    for (const [category, words] of WORDS) if (words.test(label)) return category;
  }
  return amountPico < 0n ? 'adjustment' : 'usage';
}
