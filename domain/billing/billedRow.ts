import { DomainError } from '../errors.js';
import { TOKEN_CLASSES } from '../events/event.js';
import type { Pico } from '../money.js';

/** One line of a bill or usage report. Cost rows have money, usage rows quantities; they are never added to each other. */

export const FEEDS = ['cost', 'usage'] as const;
export type Feed = (typeof FEEDS)[number];

/** Only `usage` enters reconciliation; the other categories appear in the statement. */
export const CHARGE_CATEGORIES = ['usage', 'tax', 'credit', 'refund', 'purchase', 'adjustment'] as const;
export type ChargeCategory = (typeof CHARGE_CATEGORIES)[number];

/** The unit of a billed quantity: a token class, calls, or anything that no token class describes. */
export const BILLED_CLASSES = [...TOKEN_CLASSES, 'requests', 'other'] as const;
export type BilledClass = (typeof BILLED_CLASSES)[number];

/** Aliases of classes in billing files. */
const CLASS_ALIASES: ReadonlyMap<string, BilledClass> = new Map([
  ['audio_input', 'input_audio'],
  ['audio_output', 'output_audio'],
]);

export const BILLED_CLASS_NAMES: readonly string[] = [...BILLED_CLASSES, ...CLASS_ALIASES.keys()];

/** The class with this lower-case name or alias; undefined: unknown. */
export function findBilledClass(name: string): BilledClass | undefined {
  return BILLED_CLASSES.find((one) => one === name) ?? CLASS_ALIASES.get(name);
}

/** Fraction digits of a quantity: it is a bigint count of 1e-12 units, as numeric(38,12) is in SQL. */
export const QUANTITY_SCALE = 12;
export const QUANTITY_ONE = 10n ** BigInt(QUANTITY_SCALE);

/**
 * The report name of monthly cost rows. They are stored on the month's first day and appear in the statement, but
 * are not compared with any day's calls.
 */
export const MONTH_REPORT = 'month';

export interface BilledRow {
  feed: Feed;
  /**
   * The usage report; '' on cost rows, except `month` or another month's invoice, so that such copies do not
   * replace each other.
   */
  report: string;
  /** The account in the content itself; null: the content names none. */
  account: string | null;
  /** UTC day `YYYY-MM-DD` of the charge. */
  day: string;
  /** Half-open interval of the bucket, microseconds. */
  periodStartMicros: bigint;
  periodEndMicros: bigint;
  chargeCategory: ChargeCategory;
  /** The provider's own label, verbatim. */
  lineItem: string;
  /** false: no call can show this usage (storage, hosting, tool fees without a count). */
  observable: boolean;
  /** null: the line was not recognised; it is shown as `other`, never guessed. */
  model: string | null;
  tokenClass: BilledClass;
  /** `standard` if the bill names no tier. */
  serviceTier: string;
  /** null: the bill does not separate batch. */
  isBatch: boolean | null;
  longContext: boolean | null;
  /** Region with a separate price, e.g. `us`; null: the ordinary price. */
  region: string | null;
  project: string | null;
  apiKey: string | null;
  /** In 1e-12 units, of tokens for every token class. null: the bill has no quantity. */
  quantity: bigint | null;
  quantityUnit: string | null;
  /** The amount that counts, in USD; null: a usage row, or the currency has no exchange rate. */
  amountPico: Pico | null;
  /** The charge at list prices, USD; null: the bill has none or it cannot be converted. */
  listPico: Pico | null;
  /** The charge at contract prices, USD; null as for `listPico`. */
  contractedPico: Pico | null;
  /** The charge after discounts of the line itself, USD; null as for `listPico`. */
  netPico: Pico | null;
  /** Upper-case ISO 4217 code of `originalAmount`; null on usage rows. */
  currency: string | null;
  /** The amount as billed, in its own currency, 1e-12 units. */
  originalAmount: bigint | null;
  /**
   * Whether the bill marks the charge as final (an invoice number, or no longer estimated); null: the bill does
   * not mark it.
   */
  isFinal: boolean | null;
}

/** A label that no grammar recognises, kept as `other`, with its number of rows and their sum. */
export interface UnparsedLabel {
  label: string;
  rows: number;
  amountPico: Pico;
}

/**
 * Words of labels that are not usage. OpenAI's and Anthropic's cost reports have no field for grants and
 * corrections.
 */
const WORDS: readonly [ChargeCategory, RegExp][] = [
  ['refund', /\brefund(?:s|ed)?\b/i],
  ['credit', /\b(?:credits?|grants?|promo(?:tional|tion)?|discounts?)\b/i],
  ['tax', /\b(?:tax|taxes|vat|gst)\b/i],
  ['adjustment', /\b(?:adjustments?|corrections?|true-?ups?)\b/i],
  ['purchase', /\b(?:purchases?|top-?ups?|prepaid|commitments?)\b/i],
];

/**
 * The category of a row without a category field. A negative amount is never usage; other unknown labels count as
 * usage.
 */
export function categoryOfLabel(label: string, recognised: boolean, amountPico: Pico): ChargeCategory {
  if (!recognised) {
    for (const [category, words] of WORDS) if (words.test(label)) return category;
  }
  return amountPico < 0n ? 'adjustment' : 'usage';
}

/**
 * Maximum charge: a billion dollars. A larger one is a number in the wrong column, and its monthly sums could not
 * be stored.
 */
const DOLLARS_MAX = 1_000_000_000n * QUANTITY_ONE;
const ORIGINAL_MAX = 1_000_000n * DOLLARS_MAX;
/** Maximum tokens of a charge and of a day: more than any provider serves to all of its customers in a day. */
const TOKENS_MAX = 100_000_000_000_000n * QUANTITY_ONE;
/** Maximum of any other quantity, such as bytes or characters. */
const QUANTITY_MAX = 10n ** 18n * QUANTITY_ONE;
/** Accepted days of bills, half-open: earlier days had no such bills, and later ones are typing errors. */
const FIRST_DAY = '2000-01-01';
const END_DAY = '2100-01-01';

/** Error invalid_billing_file if the day, `YYYY-MM-DD`, is outside the accepted days. */
export function assertPlausibleDay(day: string): void {
  if (day < FIRST_DAY || day >= END_DAY)
    throw fault(`the day ${day} is none of a bill's, which lie between ${FIRST_DAY} and ${END_DAY}`);
}

/** Error invalid_billing_file if the amount, quantity or day of a row is implausible. */
export function assertPlausible(row: BilledRow): void {
  assertPlausibleDay(row.day);
  const dollars = [row.amountPico, row.listPico, row.contractedPico, row.netPico];
  if (isAbove(row.originalAmount, ORIGINAL_MAX) || dollars.some((amount) => isAbove(amount, DOLLARS_MAX)))
    throw fault('an amount is too large for a charge: the most is 1,000,000,000 dollars');
  if (isAbove(row.quantity, row.quantityUnit === 'tokens' ? TOKENS_MAX : QUANTITY_MAX))
    throw fault('the quantity is too large for a charge: the most is 100,000,000,000,000 tokens');
}

/** Error invalid_billing_file if the dollars of a day or file are implausible. */
export function assertPlausibleSum(amountPico: bigint, what: string): void {
  if (isAbove(amountPico, 10n * DOLLARS_MAX))
    throw fault(`the charges of ${what} sum to more than 10,000,000,000 dollars`);
}

/** Like `assertPlausibleSum`, for the tokens of a day in 1e-12 units. */
export function assertPlausibleTokens(tokens: bigint, day: string): void {
  if (isAbove(tokens, TOKENS_MAX))
    throw fault(`the charges of ${day} are for more than 100,000,000,000,000 tokens`);
}

function isAbove(value: bigint | null, most: bigint): boolean {
  return value !== null && (value > most || value < -most);
}

function fault(reason: string): DomainError {
  return new DomainError('invalid_billing_file', reason);
}

/** The account of a bill without an account while no other is known; the provider's first connection replaces it. */
export const DEFAULT_ACCOUNT = 'default';

/** The declared account, else the content's, else the only known one, else `default`. Error account_required. */
export function resolveAccount(
  declared: string | null,
  fromContent: string | null,
  known: readonly string[],
): string {
  if (declared !== null && declared !== '') return declared;
  if (fromContent !== null && fromContent !== '') return fromContent;
  if (known.length > 1) {
    throw new DomainError(
      'account_required',
      `the provider has ${known.length} known accounts and the file names none; say whose bill it is in the field account`,
      {
        issues: [{ in: 'body', field: 'account', message: `name one, e.g. ${known.slice(0, 3).join(', ')}` }],
      },
    );
  }
  return known[0] ?? DEFAULT_ACCOUNT;
}

/** The organization in OpenAI's results. */
const ORGANIZATION_IN_PAGE = /"organization_id"\s*:\s*"([^"\\]{1,512})"/;

/** Columns and fields that contain the account in every line of a cloud's export. */
const ACCOUNT_IN_EVERY_LINE =
  /bill_payer_account_id|bill\/PayerAccountId|subscription_?(?:id|guid)|billing_?account_?id/i;
/** The first bytes of Parquet and gzip, whose content cannot be checked yet. */
const PACKED_BEGINNINGS = ['PAR1', '\u001f\u008b'];

/** Refuses a bill without an account early, by its first bytes (latin1). Error account_required. */
export function assertAccountIn(head: string, known: readonly string[]): void {
  if (PACKED_BEGINNINGS.some((beginning) => head.startsWith(beginning))) return;
  if (ACCOUNT_IN_EVERY_LINE.test(head)) return;
  resolveAccount(null, ORGANIZATION_IN_PAGE.exec(head)?.[1] ?? null, known);
}
