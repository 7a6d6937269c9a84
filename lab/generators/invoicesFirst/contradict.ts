import { type Decimal, decimal, decimalText, product, sum } from './decimal.js';
import type { DraftInvoice } from './draft.js';
import { roundedMoney } from './numberStyle.js';
import type { Random } from './random.js';

/** Differences that are too large for rounding of this many lines. */
function leastDifference(draft: DraftInvoice, lines: number): Decimal {
  const cents = decimal('0.02') + decimal('0.01') * BigInt(lines);
  return draft.currency.digits === 0 ? cents * 100n : cents;
}

/** The amount as a slip would print it: two digits swapped, one digit changed, or a round sum too much. */
function wrong(right: Decimal, least: Decimal, draft: DraftInvoice, random: Random): Decimal {
  const { digits } = draft.currency;
  const text = decimalText(right < 0n ? -right : right, digits);
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const slipped = slip(text, random);
    const value = decimal(slipped) * (right < 0n ? -1n : 1n);
    const difference = value > right ? value - right : right - value;
    if (difference >= least && value !== 0n) return value;
  }
  return right + least + decimal(random.whole(1, 40));
}

function slip(text: string, random: Random): string {
  const letters = [...text];
  const at = random.whole(0, letters.length - 1);
  if (letters[at] === '.') return text;
  const next = letters[at + 1];
  if (random.chance(0.5) && next !== undefined && next !== '.') {
    [letters[at], letters[at + 1]] = [next, letters[at] as string];
  } else {
    letters[at] = String((Number(letters[at]) + random.whole(1, 9)) % 10);
  }
  return letters.join('').replace(/^0+(?=\d)/, '');
}

/** Falsifies one sum or product of the document and records it in `contradictions`. */
export function plantContradiction(
  draft: DraftInvoice,
  hasSubtotal: boolean,
  hasAmountDue: boolean,
  random: Random,
): void {
  const { lines, currency } = draft;
  const products = lines.flatMap((line, at) =>
    line.quantity !== null &&
    line.unitPrice !== null &&
    line.amount > decimal(1) &&
    line.amount === roundedMoney(line.amount, currency)
      ? [at]
      : [],
  );
  const kinds = [
    ...(products.length > 0 ? ['line' as const] : []),
    ...(hasSubtotal ? ['lines_sum' as const] : []),
    ...(draft.taxes.some((tax) => tax.amount > decimal(1)) ? ['tax' as const] : []),
    'total' as const,
    ...(hasAmountDue && draft.credits.length > 0 ? ['amount_due' as const] : []),
  ];
  const kind = random.pick(kinds);
  const record = (line: number | null, printed: Decimal, right: Decimal) => {
    draft.contradictions.push({ kind, line, printed: decimalText(printed), right: decimalText(right) });
    draft.features.add('contradiction').add(`contradiction_${kind}`);
  };
  const follow = (difference: Decimal) => {
    draft.total += difference;
    draft.amountDue += difference;
    if (draft.amountPaid !== null) draft.amountPaid += difference;
  };
  if (kind === 'line') {
    const at = random.pick(products);
    const line = lines[at] as (typeof lines)[number];
    const right = line.amount;
    line.amount = wrong(right, leastDifference(draft, 1), draft, random);
    record(at + 1, line.amount, right);
    if (random.chance(0.5)) return;
    // The sums include the wrong amount.
    const difference = line.amount - right;
    draft.subtotal += difference;
    for (const tax of draft.taxes) {
      tax.base = (tax.base ?? 0n) + difference;
      const amount = tax.isReverseCharge
        ? 0n
        : roundedMoney(product(tax.rate ?? 0n, tax.base) / 100n, currency);
      follow(amount - tax.amount);
      tax.amount = amount;
    }
    follow(difference);
  } else if (kind === 'lines_sum') {
    const right = draft.subtotal;
    draft.subtotal = wrong(right, leastDifference(draft, lines.length), draft, random);
    const base = draft.subtotal + sum(draft.discounts.map(({ amount }) => amount));
    record(null, draft.subtotal, right);
    follow(draft.subtotal - right);
    for (const tax of draft.taxes) {
      tax.base = base;
      const amount = tax.isReverseCharge ? 0n : roundedMoney(product(tax.rate ?? 0n, base) / 100n, currency);
      follow(amount - tax.amount);
      tax.amount = amount;
    }
  } else if (kind === 'tax') {
    const tax = random.pick(draft.taxes.filter(({ amount }) => amount > decimal(1)));
    const right = tax.amount;
    tax.amount = wrong(right, leastDifference(draft, lines.length), draft, random);
    record(null, tax.amount, right);
    follow(tax.amount - right);
  } else if (kind === 'total') {
    const right = draft.total;
    const printed = wrong(right, leastDifference(draft, 0), draft, random);
    record(null, printed, right);
    follow(printed - right);
  } else {
    const right = draft.amountDue;
    draft.amountDue = wrong(right, leastDifference(draft, 0), draft, random);
    record(null, draft.amountDue, right);
  }
}
