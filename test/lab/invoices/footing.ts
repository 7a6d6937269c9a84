import { expect } from 'vitest';
import { decimal, percentOf, product, sum } from '../../../lab/generators/invoicesFirst/decimal.js';
import { generateInvoicesFirst } from '../../../lab/generators/invoicesFirst/generateInvoicesFirst.js';
import { generateInvoicesSecond } from '../../../lab/generators/invoicesSecond/generateInvoicesSecond.js';
import type { Contradiction, GeneratedInvoice, InvoiceTruth } from '../../../lab/generators/invoiceTruth.js';

export const GENERATORS = { first: generateInvoicesFirst, second: generateInvoicesSecond };

export async function collect(invoices: AsyncIterable<GeneratedInvoice>): Promise<GeneratedInvoice[]> {
  const list: GeneratedInvoice[] = [];
  for await (const invoice of invoices) list.push(invoice);
  return list;
}

function apart(one: bigint, other: bigint): bigint {
  return one > other ? one - other : other - one;
}

/** The kinds of sums and products that are false in a document, by its truth alone. */
export function falseSums(truth: InvoiceTruth): Set<Contradiction['kind']> {
  const found = new Set<Contradiction['kind']>();
  const half = decimal(truth.currency === 'JPY' ? '0.5' : '0.005');
  const lines = sum(truth.lines.map((line) => decimal(line.amount)));
  for (const { quantity, unitPrice, amount } of truth.lines)
    if (
      quantity !== null &&
      unitPrice !== null &&
      apart(product(decimal(quantity), decimal(unitPrice)), decimal(amount)) > half
    )
      found.add('line');
  const subtotal = truth.subtotal === null ? lines : decimal(truth.subtotal);
  if (apart(lines, subtotal) > half) found.add('lines_sum');
  const base = subtotal + sum(truth.discounts.map(decimal));
  const taxes = sum(truth.taxes.map((tax) => decimal(tax.amount)));
  for (const { rate, base: taxed, amount } of truth.taxes)
    if (
      rate !== null &&
      apart(percentOf(decimal(rate), taxed === null ? base : decimal(taxed)), decimal(amount)) > half
    )
      found.add('tax');
  if (apart(base + taxes, decimal(truth.total)) > half) found.add('total');
  if (truth.amountDue !== null) {
    const left = decimal(truth.total) + sum(truth.credits.map(decimal)) - decimal(truth.amountPaid ?? '0');
    if (apart(left, decimal(truth.amountDue)) > half) found.add('amount_due');
  }
  return found;
}

/** Fails where a sum is false that is not planted, or a planted one is not false. */
export function expectFooted(invoices: readonly GeneratedInvoice[]): void {
  for (const { name, truth } of invoices) {
    const planted = truth.contradictions.map(({ kind }) => kind);
    const found = [...falseSums(truth)];
    if (planted.length === 0) expect(found, name).toEqual([]);
    for (const kind of planted) expect(found, name).toContain(kind);
  }
}
