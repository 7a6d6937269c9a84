import { DomainError } from '../errors.js';
import { type BilledRow, QUANTITY_ONE } from './billedRow.js';

/**
 * Largest amount of one charge: a billion dollars, or a million billions in another currency. What is larger is a number in
 * the wrong column; what it would be compared with, summed over months, could not be kept.
 */
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
