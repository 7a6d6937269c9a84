import { DomainError } from '../errors.js';
import { type BilledRow, QUANTITY_ONE } from './billedRow.js';

/**
 * Largest amount of one charge: a hundred billion dollars, and as many thousand billions in another currency. What is
 * larger is a number in the wrong column, and sums of it could not be kept.
 */
const DOLLARS_MAX = 100_000_000_000n * QUANTITY_ONE;
const ORIGINAL_MAX = 1_000n * DOLLARS_MAX;
/** Largest quantity of one charge. */
const QUANTITY_MAX = 10n ** 18n * QUANTITY_ONE;
/** Days of bills, half-open: before the first there was nothing to bill, and a typing error of the year is no bill. */
const FIRST_DAY = '2000-01-01';
const END_DAY = '2100-01-01';

/** Error invalid_billing_file where a row has an amount, a quantity or a day that no bill has. */
export function assertPlausible(row: BilledRow): void {
  if (row.day < FIRST_DAY || row.day >= END_DAY)
    throw fault(`the day ${row.day} is none of a bill's, which lie between ${FIRST_DAY} and ${END_DAY}`);
  const dollars = [row.amountPico, row.listPico, row.contractedPico, row.netPico];
  if (isAbove(row.originalAmount, ORIGINAL_MAX) || dollars.some((amount) => isAbove(amount, DOLLARS_MAX)))
    throw fault('an amount is too large for a charge: the most is 100,000,000,000 dollars');
  if (isAbove(row.quantity, QUANTITY_MAX))
    throw fault('the quantity is too large for a charge: the most is 1,000,000,000,000,000,000');
}

/** Largest sum of a day's or a file's charges, in dollars. */
const SUM_MAX = 10n * DOLLARS_MAX;

/** Error invalid_billing_file where a sum of charges cannot be kept. */
export function assertPlausibleSum(amountPico: bigint, what: string): void {
  if (isAbove(amountPico, SUM_MAX - 1n))
    throw fault(`the charges of ${what} sum to more than 1,000,000,000,000 dollars`);
}

function isAbove(value: bigint | null, most: bigint): boolean {
  return value !== null && (value > most || value < -most);
}

function fault(reason: string): DomainError {
  return new DomainError('invalid_billing_file', reason);
}
