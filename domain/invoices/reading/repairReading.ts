import { divideHalfEven } from '../../money.js';
import { addedTaxes, checkInvoice, sumOf } from '../checkInvoice.js';
import type { InvoiceLineReading, InvoiceReading, ReadField, Scaled } from '../invoiceReading.js';
import { findProduct, productOf, statedUnitsOf } from '../productOf.js';
import { CONCLUDED_CONFIDENCE } from './documentFields.js';
import { type Alternative, alternativesOf, hasOtherDigits } from './mendedNumbers.js';
import { type DecimalMark, ONE, printedDecimals, SCALE } from './printedNumber.js';

/** Lines with these words are negative, so a missing minus sign was lost. */
const TAKES_AWAY =
  /\b(?:unused time|credits?|discount|refund|goodwill|adjustment|rebate|reversal|correction|gutschrift|rabatt|avoir|remise|true-?down|return)\b/i;
/** Limits the lines whose signs are tried together. */
const SIGNS_MAX = 12;
const ROUNDS_MAX = 3;

/**
 * Restores lost or confused signs and digits that another figure of the document proves. Every other value stays as read,
 * and its check fails.
 */
export function repairReading(reading: InvoiceReading, mark: DecimalMark | undefined): InvoiceReading {
  let repaired = reading;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const before = repaired;
    for (const step of [repairProducts, repairSums, repairSigns, repairAmounts, takeProducts])
      repaired = step(repaired, mark);
    if (repaired === before) break;
  }
  return repaired;
}

type Field = ReadField<Scaled>;

function concluded(field: Field, value: Scaled): Field {
  return { ...field, value, confidence: Math.min(field.confidence, CONCLUDED_CONFIDENCE) };
}

function isOk(reading: InvoiceReading, check: string): boolean {
  const found = checkInvoice(reading).filter((one) => one.check === check);
  return found.length > 0 && found.every((one) => one.ok);
}

const factor = (field: Field) => ({ value: field.value, decimals: printedDecimals(field.text, 2) });

function hasProduct(line: InvoiceLineReading): boolean {
  const { quantity, unitPrice, amount } = line;
  if (!quantity || !unitPrice) return false;
  const per = statedUnitsOf(`${unitPrice.text} ${quantity.text} ${line.description.value}`);
  return findProduct(factor(quantity), factor(unitPrice), factor(amount), per) !== undefined;
}

/** Replaces a quantity, price or amount if exactly one alternative makes the line's product right. */
function repairProducts(reading: InvoiceReading, mark: DecimalMark | undefined): InvoiceReading {
  // If the lines sum to the subtotal, their amounts are right: only a quantity or a price may be wrong.
  const areAmountsProven = isOk(reading, 'lines_sum');
  return withLines(reading, (line) => {
    const { quantity, unitPrice, amount } = line;
    if (!quantity || !unitPrice || hasProduct(line)) return line;
    const negated = { ...line, amount: concluded(amount, -amount.value) };
    if (!areAmountsProven && amount.value > 0n && hasProduct(negated)) return negated;
    const fixes = (['quantity', 'unitPrice', 'amount'] as const).flatMap((name) => {
      if (name === 'amount' && areAmountsProven) return [];
      const field = line[name] as Field;
      const signs = name === 'unitPrice' && amount.value < 0n ? [{ value: -field.value, cost: 0 }] : [];
      // A short quantity is easily confused. If price and amount are equal, it is one.
      const single = name === 'quantity' && field.engine !== 'text' && unitPrice.value === amount.value;
      const ones = single && /^\D*\d{1,2}\D*$/.test(field.text) ? [{ value: ONE, cost: 1 }] : [];
      return [...signs, ...ones, ...alternativesOf(field.text, field, mark)].flatMap(({ value, cost }) => {
        const fixed = { ...line, [name]: concluded(field, value) };
        return hasProduct(fixed) ? [{ fixed, cost, name }] : [];
      });
    });
    const best = fixes.filter((fix) => fix.cost === Math.min(...fixes.map((one) => one.cost)));
    if (best.length !== 1 || !best[0]) return line;
    // The product proves a separator or a decimal mark alone; other digits need the sums as well.
    const { fixed, name } = best[0];
    if (!hasOtherDigits(fixed[name]?.text ?? '', fixed[name]?.value ?? 0n, true)) return fixed;
    if (name !== 'amount') return areAmountsProven ? fixed : line;
    const after = { ...reading, lines: reading.lines.map((one) => (one === line ? fixed : one)) };
    return isOk(after, 'lines_sum') ? fixed : line;
  });
}

function withLines(
  reading: InvoiceReading,
  change: (line: InvoiceLineReading) => InvoiceLineReading,
): InvoiceReading {
  const lines = reading.lines.map(change);
  return lines.some((line, at) => line !== reading.lines[at]) ? { ...reading, lines } : reading;
}

/** Replaces a subtotal, tax or total if the alternative agrees with two sums. */
function repairSums(reading: InvoiceReading, mark: DecimalMark | undefined): InvoiceReading {
  const { subtotal, total, taxes, amountDue, lines } = reading;
  if (!total || !subtotal) return reading;
  const sum = sumOf(lines.map((line) => line.amount));
  const alternative = (field: Field, value: Scaled): Alternative | undefined =>
    alternativesOf(field.text, field, mark).find((one) => one.value === value);
  if (!isOk(reading, 'lines_sum') && alternative(subtotal, sum)) {
    const fixed = { ...reading, subtotal: concluded(subtotal, sum) };
    if (isOk(fixed, 'total')) return fixed;
  }
  if (!isOk(reading, 'lines_sum') || isOk(reading, 'total')) return reading;
  const taxed = subtotal.value + sumOf(reading.discounts) + addedTaxes(reading);
  if (amountDue && alternative(total, taxed)) {
    const fixed = { ...reading, total: concluded(total, taxed) };
    if (isOk(fixed, 'amount_due') && isOk(fixed, 'total')) return fixed;
  }
  for (const tax of taxes) {
    const value = tax.amount.value + total.value - taxed;
    if (tax.rate === null || !alternative(tax.amount, value)) continue;
    const fixed = {
      ...reading,
      taxes: taxes.map((one) => (one === tax ? { ...tax, amount: concluded(tax.amount, value) } : one)),
    };
    if (isOk(fixed, 'tax') && isOk(fixed, 'total')) return fixed;
  }
  return reading;
}

/** Sum of the lines minus the printed sum; undefined without a printed sum. */
function surplusOf(reading: InvoiceReading): Scaled | undefined {
  const { subtotal, total, lines } = reading;
  const sum = sumOf(lines.map((line) => line.amount));
  if (subtotal) return sum - subtotal.value;
  if (!total) return undefined;
  return sum + sumOf(reading.discounts) + addedTaxes(reading) - total.value;
}

/**
 * Restores lost minus signs: the affected amounts sum to half of the surplus. A line qualifies by its words or by a gap
 * in the print, because the printed sum alone may be wrong.
 */
function repairSigns(reading: InvoiceReading): InvoiceReading {
  const surplus = surplusOf(reading);
  if (surplus === undefined || surplus <= 0n) return reading;
  const unsigned = reading.lines.filter(
    (line) => line.amount.value > 0n && (TAKES_AWAY.test(line.description.value) || hasGap(line.amount)),
  );
  const flipped = subsetFor(unsigned.slice(0, SIGNS_MAX), surplus);
  if (!flipped) return reading;
  return withLines(reading, (line) => {
    if (!flipped.includes(line)) return line;
    const price = line.unitPrice;
    const amount = concluded(line.amount, -line.amount.value);
    return { ...line, amount, unitPrice: price && price.value > 0n ? concluded(price, -price.value) : price };
  });
}

/** A lost minus glyph leaves a gap between the currency and the digits. */
function hasGap(field: Field): boolean {
  return /^[^\d\s]+ {2,}\d|\0/.test(field.text);
}

/** The smallest set of lines whose amounts sum to half of the surplus; undefined if several sets are as small. */
function subsetFor(lines: readonly InvoiceLineReading[], surplus: Scaled): InvoiceLineReading[] | undefined {
  const found: InvoiceLineReading[][] = [];
  for (let mask = 1; mask < 1 << lines.length; mask += 1) {
    const chosen = lines.filter((_, at) => (mask >> at) & 1);
    if (2n * sumOf(chosen.map((line) => line.amount)) === surplus) found.push(chosen);
  }
  const fewest = Math.min(...found.map((chosen) => chosen.length));
  const best = found.filter((chosen) => chosen.length === fewest);
  return best.length === 1 ? best[0] : undefined;
}

/** Replaces one amount if the lines then sum to the subtotal, which itself agrees with the total. */
function repairAmounts(reading: InvoiceReading, mark: DecimalMark | undefined): InvoiceReading {
  const surplus = surplusOf(reading);
  if (surplus === undefined || surplus === 0n || !reading.subtotal || !isOk(reading, 'total')) return reading;
  const fixes = reading.lines.flatMap((line) => {
    const value = line.amount.value - surplus;
    const isAlternative = alternativesOf(line.amount.text, line.amount, mark).some(
      (one) => one.value === value,
    );
    return isAlternative ? [{ line, fixed: { ...line, amount: concluded(line.amount, value) } }] : [];
  });
  const proven = fixes.filter(({ fixed }) => fixed.quantity && fixed.unitPrice && hasProduct(fixed));
  const [fix] = proven.length === 1 ? proven : fixes.length === 1 ? fixes : [];
  return fix ? withLines(reading, (line) => (line === fix.line ? fix.fixed : line)) : reading;
}

/** Replaces recognised amounts by their products if then all sums agree: such amounts lost a digit. */
function takeProducts(reading: InvoiceReading): InvoiceReading {
  const taken = withLines(reading, (line) => {
    const { quantity, unitPrice, amount } = line;
    if (!quantity || !unitPrice || amount.engine === 'text' || hasProduct(line)) return line;
    const unit = 10n ** BigInt(SCALE - Math.min(printedDecimals(amount.text, 2), SCALE));
    const product = productOf(quantity.value, unitPrice.value);
    return { ...line, amount: concluded(amount, divideHalfEven(product, unit) * unit) };
  });
  return taken !== reading && isOk(taken, 'lines_sum') && isOk(taken, 'total') ? taken : reading;
}
