import { absPico, divideHalfEven } from '../money.js';
import { parseInstant } from '../period.js';
import type {
  InvoiceCheck,
  InvoiceLineReading,
  InvoiceReading,
  ReadField,
  Scaled,
  TaxReading,
} from './invoiceReading.js';
import { findProduct, type Product, productOf, statedUnitsOf } from './productOf.js';
import { INCLUSIVE_TAX } from './reading/labels.js';
import { hasOtherDigits } from './reading/mendedNumbers.js';
import {
  currenciesIn,
  halfUnit,
  isWithin,
  ONE,
  printedDecimals,
  sharedSignOf,
  WHOLE_CURRENCIES,
} from './reading/printedNumber.js';
import { totalEvidence } from './totalEvidence.js';

/** Tolerance of sums of rounded amounts; a larger difference needs review. */
export const CENT: Scaled = ONE / 100n;
export const MONEY_DECIMALS = 2;
/** Range of plausible dates. */
const EARLIEST_DAY = '2015-01-01';
const LATEST_DAY = '2099-12-31';
/** Longest service period: a year's subscription, with some margin. */
const PERIOD_DAYS_MAX = 400;

/** Checks every sum and product of a document, and its required fields. */
export function checkInvoice(reading: InvoiceReading): InvoiceCheck[] {
  const checks = [
    checkRequired(reading),
    checkCurrency(reading),
    checkDates(reading),
    ...checkLines(reading.lines),
    checkLinesSum(reading),
    ...reading.taxes.flatMap((tax) => checkTax(tax, reading)),
    ...checkSharedBase(reading),
    checkTotal(reading),
    checkDue(reading),
    checkNotation(reading),
    checkDigits(reading),
    checkSigns(reading),
  ].filter((check) => check !== undefined);
  return [...checks, totalEvidence(reading, checks)];
}

/** Whether a reading may be used without a review. A single failed check forbids it. */
export function isAccepted(checks: readonly InvoiceCheck[]): boolean {
  return checks.length > 0 && checks.every((check) => check.ok);
}

function statement(check: string, ok: boolean, message: string, line: number | null = null): InvoiceCheck {
  return { check, line, ok, expected: null, found: null, difference: null, message };
}

interface Comparison {
  check: string;
  line?: number;
  expected: Scaled;
  found: Scaled;
  tolerance: Scaled;
  /** The compared value, as the beginning of a sentence. */
  what: string;
}

function compared({ check, line, expected, found, tolerance, what }: Comparison): InvoiceCheck {
  const difference = found - expected;
  const ok = isWithin(difference, tolerance);
  const sums = ok ? `agrees: ${amountText(found)}` : `is ${amountText(found)}, not ${amountText(expected)}`;
  return { check, line: line ?? null, ok, expected, found, difference, message: `${what} ${sums}.` };
}

/** An amount with at least two decimals. */
export function amountText(value: Scaled): string {
  const digits = absPico(value).toString().padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0{1,10}$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -12)}.${fraction}`;
}

function checkRequired({ number, currency, total, lines }: InvoiceReading): InvoiceCheck {
  const missing = [
    number === null ? 'number' : '',
    currency === null ? 'currency' : '',
    total === null ? 'total' : '',
    lines.length === 0 ? 'line' : '',
  ].filter((name) => name !== '');
  return statement(
    'required_fields',
    missing.length === 0,
    missing.length === 0
      ? 'Number, currency, total and lines are present.'
      : `The document shows no ${missing.join(', no ')}.`,
  );
}

function moneyFields(reading: InvoiceReading): ReadField<Scaled>[] {
  return [
    ...reading.lines.map((line) => line.amount),
    reading.subtotal,
    ...reading.discounts,
    ...reading.taxes.map((tax) => tax.amount),
    ...reading.credits,
    reading.total,
    reading.amountPaid,
    reading.amountDue,
  ].filter((field) => field !== null);
}

function checkCurrency(reading: InvoiceReading): InvoiceCheck {
  const currency = reading.currency?.value;
  const others = new Set(
    moneyFields(reading).flatMap(({ text }) =>
      currenciesIn(text).filter((one) => one !== currency && sharedSignOf(text) === undefined),
    ),
  );
  const ok = others.size === 0;
  return statement(
    'currency',
    ok,
    ok
      ? `All amounts are in ${currency ?? 'one currency'}.`
      : `Some amounts are in ${[...others].join(', ')}, the total is in ${currency ?? 'none that is named'}.`,
  );
}

function checkDates(reading: InvoiceReading): InvoiceCheck {
  const { issueDate, dueDate, periodStart, periodEnd, lines } = reading;
  const spans = [[periodStart, periodEnd], ...lines.map((line) => [line.periodStart, line.periodEnd])];
  const days = [issueDate, dueDate, ...spans.flat()].flatMap((field) => (field ? [field.value] : []));
  const fault =
    days.find((day) => !parseInstant(day)?.dateOnly || day < EARLIEST_DAY || day > LATEST_DAY) !== undefined
      ? 'A date lies outside the years 2015 to 2099.'
      : issueDate && dueDate && dueDate.value < issueDate.value
        ? `The due date ${dueDate.value} is before the date of issue ${issueDate.value}.`
        : spans.some(([start, end]) => start && end && !isPeriod(start.value, end.value))
          ? `A service period ends before it begins or has more than ${PERIOD_DAYS_MAX} days.`
          : undefined;
  return statement('dates', fault === undefined, fault ?? 'The dates are plausible.');
}

function isPeriod(start: string, end: string): boolean {
  const days = (Date.parse(end) - Date.parse(start)) / 86_400_000;
  return days >= 0 && days <= PERIOD_DAYS_MAX;
}

/** Lines whose amount is not the plain product: each tier or flat fee has its own price. */
const GRADUATED =
  /\b(?:graduated|tier(?:ed|s)?|volume pric|blended|stufen|minimum|flat fee|prorat|remaining time|unused time)/i;

/** A single line within the rounding of its factors may as well be wrong; several show that a document rounds. */
const ROUNDED_LINES_MIN = 2;

/**
 * Quantity × unit price = amount, if a line has all three. Printed quantities and prices count as rounded only if at least
 * two lines, and half of all, have no exact product.
 */
function checkLines(lines: readonly InvoiceLineReading[]): InvoiceCheck[] {
  const products = lines.map((line) => ({
    line,
    exact: lineProduct(line, false),
    near: lineProduct(line, true),
  }));
  const explained = products.filter(({ near, line }) => near && line.amount.value !== 0n);
  const rounded = explained.filter(({ exact }) => !exact).length;
  const areRounded = rounded >= ROUNDED_LINES_MIN && 2 * rounded >= explained.length;
  return products.flatMap(({ line, exact, near }) =>
    checkLine(line, exact ?? (areRounded ? near : undefined)),
  );
}

function lineProduct(line: InvoiceLineReading, isRounded: boolean): Product | undefined {
  const { quantity, unitPrice, amount } = line;
  if (!quantity || !unitPrice) return undefined;
  const per = statedUnitsOf(`${unitPrice.text} ${quantity.text} ${line.description.value}`);
  return findProduct(factor(quantity), factor(unitPrice), factor(amount), per, isRounded);
}

function checkLine(line: InvoiceLineReading, product: Product | undefined): InvoiceCheck[] {
  const { quantity, unitPrice, amount } = line;
  if (!quantity || !unitPrice) return [];
  const check = {
    check: 'quantity_times_unit_price',
    line: line.line,
    expected: product?.value ?? productOf(quantity.value, unitPrice.value),
    found: amount.value,
  };
  const difference = check.found - check.expected;
  if (product) {
    const unit =
      product.per === 1n
        ? ''
        : product.isPackage
          ? `, in packages of ${product.per}`
          : `, priced per ${product.per}`;
    return [
      {
        ...check,
        ok: true,
        difference,
        message: `Line ${line.line}: quantity × unit price is the amount${unit}.`,
      },
    ];
  }
  if (GRADUATED.test(line.description.value))
    return [
      {
        ...check,
        ok: true,
        difference,
        message: `Line ${line.line}: the price is graduated, so the amount is not the plain product.`,
      },
    ];
  return [
    {
      ...check,
      ok: false,
      difference,
      message: `Line ${line.line}: ${quantity.text} × ${unitPrice.text} is ${amountText(check.expected)}, not ${amountText(amount.value)}.`,
    },
  ];
}

function factor(field: ReadField<Scaled>): { value: Scaled; decimals: number } {
  return { value: field.value, decimals: decimalsOf(field) };
}

/** Digits after the decimal mark; a concluded or corrected value has as many as it needs. */
function decimalsOf(field: ReadField<Scaled>): number {
  const needed = absPico(field.value).toString().padStart(13, '0').slice(-12).replace(/0+$/, '').length;
  return Math.max(printedDecimals(field.text, MONEY_DECIMALS), needed);
}

export function sumOf(fields: readonly { value: Scaled }[]): Scaled {
  return fields.reduce((sum, field) => sum + field.value, 0n);
}

/** Taxes added to the amounts: neither inclusive taxes nor reverse charge. */
export function addedTaxes(reading: InvoiceReading): Scaled {
  return sumOf(
    reading.taxes
      .filter((tax) => !tax.isReverseCharge && !INCLUSIVE_TAX.test(tax.name))
      .map((tax) => tax.amount),
  );
}

/** Recognition misreads single digits, so sums of recognised figures have to agree exactly. */
function sumTolerance(reading: InvoiceReading): Scaled {
  return moneyFields(reading).some((field) => field.engine !== 'text') ? 0n : CENT;
}

/** The lines sum to the subtotal; without one, lines, discounts and taxes sum to the total. */
function checkLinesSum(reading: InvoiceReading): InvoiceCheck | undefined {
  const { lines, subtotal, total } = reading;
  const printed = subtotal ?? total;
  if (lines.length === 0 || printed === null) return undefined;
  const sum = sumOf(lines.map((line) => line.amount));
  const finest = Math.max(...lines.map((line) => decimalsOf(line.amount)));
  const coarse = printedDecimals(printed.text, MONEY_DECIMALS);
  const tolerance =
    finest > coarse ? halfUnit(coarse) + BigInt(lines.length) * halfUnit(finest) : sumTolerance(reading);
  const below = subtotal === null ? sumOf(reading.discounts) + addedTaxes(reading) : 0n;
  const credits = sumOf(reading.credits);
  const options = subtotal === null ? [sum + below, sum + below + credits] : [sum];
  const expected =
    options.find((option) => isWithin(printed.value - option, tolerance)) ?? (options[0] as Scaled);
  return compared({
    check: 'lines_sum',
    expected,
    found: printed.value,
    tolerance,
    what: subtotal === null ? 'The total of the lines with discounts and taxes' : 'The sum of the lines',
  });
}

/** Subtotal, discounts and taxes sum to the total; credits count before or after it. */
function checkTotal(reading: InvoiceReading): InvoiceCheck | undefined {
  const { subtotal, total, credits } = reading;
  if (subtotal === null || total === null) return undefined;
  const taxed = subtotal.value + sumOf(reading.discounts) + addedTaxes(reading);
  const tolerance = sumTolerance(reading);
  const options = [taxed, taxed + sumOf(credits)];
  return compared({
    check: 'total',
    expected: options.find((option) => isWithin(total.value - option, tolerance)) ?? taxed,
    found: total.value,
    tolerance,
    what: 'The total of subtotal, discounts and taxes',
  });
}

/** Total minus credits and payments is the amount due. */
function checkDue(reading: InvoiceReading): InvoiceCheck | undefined {
  const { total, amountDue, amountPaid, credits } = reading;
  if (total === null || amountDue === null) return undefined;
  const paid = absPico(amountPaid?.value ?? 0n);
  const tolerance = sumTolerance(reading);
  const options = [total.value + sumOf(credits) - paid, total.value - paid];
  return compared({
    check: 'amount_due',
    expected:
      options.find((option) => isWithin(amountDue.value - option, tolerance)) ?? (options[0] as Scaled),
    found: amountDue.value,
    tolerance,
    what: 'The amount due after credits and payments',
  });
}

/**
 * Base × rate = tax, within half a printed unit for each line, because each line's tax may be rounded. Without a printed
 * base, the base is the sum of the lines with this rate, or the taxed sum.
 */
function checkTax(tax: TaxReading, reading: InvoiceReading): InvoiceCheck[] {
  if (tax.rate === null) return [];
  if (tax.isReverseCharge && tax.amount.value === 0n) return [];
  const base = tax.base ?? baseOf(tax, reading);
  if (base === null) return [];
  const whole = 100n * ONE;
  const isInclusive = INCLUSIVE_TAX.test(tax.name) && tax.base === null;
  const half = halfUnit(Math.min(decimalsOf(tax.amount), MONEY_DECIMALS));
  const exact = divideHalfEven(base * tax.rate, isInclusive ? whole + tax.rate : whole);
  const expected = divideHalfEven(exact, 2n * half) * 2n * half;
  const perLine = half * BigInt(reading.lines.length);
  // One unit, because some suppliers round taxes down.
  const tolerance = tax.base !== null || perLine < 2n * half ? 2n * half : perLine;
  return [
    compared({ check: 'tax', expected, found: tax.amount.value, tolerance, what: `${tax.name}: the tax` }),
  ];
}

/**
 * Several taxes with different rates and without printed bases: each is on the whole taxed sum, unless their bases together
 * are that sum, as with a rate for each part of the lines.
 */
function checkSharedBase(reading: InvoiceReading): InvoiceCheck[] {
  const taxes = reading.taxes.flatMap((tax) => {
    const { name, amount, rate, base, isReverseCharge } = tax;
    const hasBase = base !== null || INCLUSIVE_TAX.test(name) || baseOf(tax, reading) !== null;
    return hasBase || isReverseCharge || rate === null || rate === 0n ? [] : [{ name, amount, rate }];
  });
  if (taxes.length < 2) return [];
  const base = taxedSum(reading);
  const whole = 100n * ONE;
  // One unit, because some suppliers round taxes down, or half a unit for each line.
  const unitOf = (amount: ReadField<Scaled>) =>
    halfUnit(Math.min(decimalsOf(amount), MONEY_DECIMALS)) * BigInt(Math.max(2, reading.lines.length));
  const parts = taxes.map(({ amount, rate }) => ({
    value: divideHalfEven(amount.value * whole, rate),
    slack: divideHalfEven(unitOf(amount) * whole, rate),
  }));
  const slack = parts.reduce((sum, part) => sum + part.slack, 0n);
  if (isWithin(sumOf(parts) - base, slack) && 10n * slack < absPico(base)) return [];
  return taxes.map(({ name, amount, rate }) =>
    compared({
      check: 'tax',
      expected: divideHalfEven(base * rate, whole),
      found: amount.value,
      tolerance: unitOf(amount),
      what: `${name}: the tax`,
    }),
  );
}

function baseOf(tax: TaxReading, { lines, taxes, subtotal, discounts }: InvoiceReading): Scaled | null {
  const rated = lines.filter((line) => line.taxRate !== null);
  if (rated.length > 0 && new Set(rated.map((line) => line.taxRate?.value)).size > 1) {
    const own = rated.filter((line) => line.taxRate?.value === tax.rate);
    return own.length > 0 && discounts.length === 0 ? sumOf(own.map((line) => line.amount)) : null;
  }
  // Without printed bases the lines of each of several taxes are unknown.
  const rates = new Set(taxes.map((one) => one.rate));
  if (rates.size > 1) return null;
  return taxedSum({ lines, subtotal, discounts });
}

/** The sum of the lines after discounts. */
function taxedSum({
  lines,
  subtotal,
  discounts,
}: Pick<InvoiceReading, 'lines' | 'subtotal' | 'discounts'>): Scaled {
  return (subtotal?.value ?? sumOf(lines.map((line) => line.amount))) + sumOf(discounts);
}

/** A point or comma before three digits is ambiguous: another number has to show its meaning. */
function checkNotation(reading: InvoiceReading): InvoiceCheck | undefined {
  const texts = moneyFields(reading).map((field) => field.text);
  // In a currency without cents a comma only separates thousands.
  const mark = WHOLE_CURRENCIES.has(reading.currency?.value ?? '') ? '[.]' : '[.,]';
  const ambiguous = new RegExp(`(?<![\\d.,])[1-9]\\d{0,2}${mark}\\d{3}(?![\\d.,])`);
  const isAmbiguous = (text: string) => ambiguous.test(text);
  const isClear = (text: string) => /[.,]\d{1,2}(?!\d)|[.,]\d{4,}|[.,' ]\d{3}[.,]\d/.test(text);
  if (!texts.some(isAmbiguous) || texts.some(isClear)) return undefined;
  return statement(
    'number_notation',
    false,
    'No number shows whether a mark before three digits ends the thousands or the whole.',
  );
}

/**
 * If the sums need other digits than recognition read, either recognition or the document is wrong. Only a person can
 * decide which.
 */
function checkDigits(reading: InvoiceReading): InvoiceCheck | undefined {
  const haveSigns = moneyFields(reading).some((field) => currenciesIn(field.text).length > 0);
  const factors = reading.lines.flatMap(({ quantity, unitPrice }) => [quantity, unitPrice]);
  const fields = [...moneyFields(reading), ...factors].filter((field) => field !== null);
  const other = fields.find(
    (field) =>
      field.engine !== 'text' &&
      field.box !== null &&
      field.confidence < 1 &&
      hasOtherDigits(field.text, field.value, haveSigns),
  );
  if (!other) return undefined;
  return {
    ...statement(
      'digits',
      false,
      `${other.text} was read where the other figures need ${amountText(other.value)}.`,
    ),
    expected: other.value,
  };
}

const DASH = /[-\u2010-\u2015\u2212]/;

/**
 * Some files have lost every dash. Without any dash in the document, the positive amounts of a credit may have been
 * negative, and all sums agree either way.
 */
function checkSigns(reading: InvoiceReading): InvoiceCheck | undefined {
  const { kind, lines, total } = reading;
  const takesAway = lines.some(
    (line) =>
      line.amount.value > 0n &&
      (line.kind === 'credit' || line.kind === 'discount' || /\bunused time\b/i.test(line.description.value)),
  );
  if ((kind !== 'credit_note' && !takesAway) || total === null || total.value < 0n) return undefined;
  const { number, account, issuer, replaces, issueDate, dueDate, periodStart } = reading;
  const texts = [
    number,
    account,
    issuer,
    replaces,
    issueDate,
    dueDate,
    periodStart,
    ...lines.flatMap((line) => [line.description, line.periodStart]),
  ]
    .filter((field) => field !== null)
    .map((field) => field.text);
  if (
    [...texts, ...moneyFields(reading).map((field) => field.text)].some(
      (text) => DASH.test(text) || /\(.*\d\)/.test(text),
    )
  )
    return undefined;
  return statement(
    'signs',
    false,
    'The document shows no dash at all, so minus signs may be missing from its amounts.',
  );
}
