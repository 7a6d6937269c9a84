import { DomainError } from '../errors.js';
import { TOKEN_CLASSES } from '../events/event.js';
import type { Pico } from '../money.js';

/** One line of a bill or usage report. Cost rows have money, usage rows quantities; they are never added to each other. */

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

export const BILLED_CLASS_NAMES: readonly string[] = [...BILLED_CLASSES, ...CLASS_ALIASES.keys()];

/** The class with this name or alias, in lower case; undefined for any other word. */
export function findBilledClass(name: string): BilledClass | undefined {
  return BILLED_CLASSES.find((one) => one === name) ?? CLASS_ALIASES.get(name);
}

/** Fraction digits of a quantity: it is a bigint count of 1e-12 units, as numeric(38,12) is in SQL. */
export const QUANTITY_SCALE = 12;
export const QUANTITY_ONE = 10n ** BigInt(QUANTITY_SCALE);

/** The report of cost rows by month: on its first day, in the statement, compared with no day's calls. */
export const MONTH_REPORT = 'month';

export interface BilledRow {
  feed: Feed;
  /** The usage report; '' on cost rows, but `month` or another month's invoice where copies must not replace each other. */
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

/** Words of labels without usage. OpenAI's and Anthropic's cost reports have no field for grants and corrections. */
const WORDS: readonly [ChargeCategory, RegExp][] = [
  ['refund', /\brefund(?:s|ed)?\b/i],
  ['credit', /\b(?:credits?|grants?|promo(?:tional|tion)?|discounts?)\b/i],
  ['tax', /\b(?:tax|taxes|vat|gst)\b/i],
  ['adjustment', /\b(?:adjustments?|corrections?|true-?ups?)\b/i],
  ['purchase', /\b(?:purchases?|top-?ups?|prepaid|commitments?)\b/i],
];

/** The category of a row without one. Negative amounts are never usage; other unknown labels stay usage until explained. */
export function categoryOfLabel(label: string, recognised: boolean, amountPico: Pico): ChargeCategory {
  if (!recognised) {
    for (const [category, words] of WORDS) if (words.test(label)) return category;
  }
  return amountPico < 0n ? 'adjustment' : 'usage';
}

/** Largest charge: a billion dollars. Larger is a number in the wrong column, and sums over months could not be stored. */
const DOLLARS_MAX = 1_000_000_000n * QUANTITY_ONE;
const ORIGINAL_MAX = 1_000_000n * DOLLARS_MAX;
/** Largest number of tokens of one charge, and of a day: more than any provider serves to all of its customers in a day. */
const TOKENS_MAX = 100_000_000_000_000n * QUANTITY_ONE;
/** Largest quantity of anything else: bytes, characters. */
const QUANTITY_MAX = 10n ** 18n * QUANTITY_ONE;
/** Days of bills, half-open: before the first there was nothing to bill, and a typing error of the year is no bill. */
const FIRST_DAY = '2000-01-01';
const END_DAY = '2100-01-01';

/** Error invalid_billing_file for a day, `YYYY-MM-DD`, that no bill speaks of. */
export function assertPlausibleDay(day: string): void {
  if (day < FIRST_DAY || day >= END_DAY)
    throw fault(`the day ${day} is none of a bill's, which lie between ${FIRST_DAY} and ${END_DAY}`);
}

/** Error invalid_billing_file where a row has an amount, a quantity or a day that no bill has. */
export function assertPlausible(row: BilledRow): void {
  assertPlausibleDay(row.day);
  const dollars = [row.amountPico, row.listPico, row.contractedPico, row.netPico];
  if (isAbove(row.originalAmount, ORIGINAL_MAX) || dollars.some((amount) => isAbove(amount, DOLLARS_MAX)))
    throw fault('an amount is too large for a charge: the most is 1,000,000,000 dollars');
  if (isAbove(row.quantity, row.quantityUnit === 'tokens' ? TOKENS_MAX : QUANTITY_MAX))
    throw fault('the quantity is too large for a charge: the most is 100,000,000,000,000 tokens');
}

/** Error invalid_billing_file where the charges of a day or a file, in dollars, sum to what no bill does. */
export function assertPlausibleSum(amountPico: bigint, what: string): void {
  if (isAbove(amountPico, 10n * DOLLARS_MAX))
    throw fault(`the charges of ${what} sum to more than 10,000,000,000 dollars`);
}

/** As `assertPlausibleSum`, for the tokens of a day, in 1e-12. */
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

/** The account of a bill that names none, while no other is known; the first connection of the provider takes it over. */
export const DEFAULT_ACCOUNT = 'default';

/** The account as declared, else by the content, else the only known one, else `default`. Error account_required. */
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

/** How OpenAI's results name their organization. */
const ORGANIZATION_IN_PAGE = /"organization_id"\s*:\s*"([^"\\]{1,512})"/;

/** Columns and fields by which the exports of clouds name the account in every line. */
const ACCOUNT_IN_EVERY_LINE =
  /bill_payer_account_id|bill\/PayerAccountId|subscription_?(?:id|guid)|billing_?account_?id/i;
/** How Parquet and gzip begin: what they hold is not seen yet. */
const PACKED_BEGINNINGS = ['PAR1', '\u001f\u008b'];

/** Refuses early, by its first bytes (latin1), a bill without an account. Error account_required. */
export function assertAccountIn(head: string, known: readonly string[]): void {
  if (PACKED_BEGINNINGS.some((beginning) => head.startsWith(beginning))) return;
  if (ACCOUNT_IN_EVERY_LINE.test(head)) return;
  resolveAccount(null, ORGANIZATION_IN_PAGE.exec(head)?.[1] ?? null, known);
}
