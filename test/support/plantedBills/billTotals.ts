import { decimalFromPico } from '../../../domain/money.js';
import { sumsBy, sumTexts } from '../exactTable.js';
import { readBill } from '../readBill.js';
import type { PlantedBill } from './planted.js';

/** Sums by category and currency, as exact texts; sums of nothing are left out. */
export type Totals = Record<string, string>;

/** The product's totals of a bill: the rows that it keeps, and the charges that it leaves out. */
export async function totalsRead(
  bill: Omit<PlantedBill, 'charges'>,
): Promise<{ kept: Totals; leftOut: Totals; all: Totals }> {
  const { rows, summary } = await readBill(bill.bytes, {
    provider: bill.provider,
    random: { sizeBytes: bill.bytes.length, read: async (from, to) => bill.bytes.subarray(from, to) },
  });
  if (summary.format !== bill.format) throw new Error(`${bill.name} was taken for ${summary.format}`);
  const kept = rows.map((row) => ({
    name: `${row.chargeCategory} ${row.currency}`,
    amount: decimalFromPico(row.originalAmount ?? 0n),
  }));
  const leftOut = summary.leftOut.map((one) => ({
    name: `${one.chargeCategory} ${one.currency}`,
    amount: decimalFromPico(one.amount),
  }));
  return { kept: sumNamed(kept), leftOut: sumNamed(leftOut), all: sumNamed([...kept, ...leftOut]) };
}

/** The planted totals, by arithmetic that shares nothing with the product's. */
export function totalsPlanted(bill: PlantedBill): { kept: Totals; leftOut: Totals; all: Totals } {
  const named = bill.charges.map(({ category, currency, amount, isKept }) => ({
    name: `${category} ${currency}`,
    amount,
    isKept,
  }));
  return {
    kept: sumNamed(named.filter(({ isKept }) => isKept)),
    leftOut: sumNamed(named.filter(({ isKept }) => !isKept)),
    all: sumNamed(named),
  };
}

/** Sums of texts by name, in the order of the names. */
export function sumNamed(all: readonly { name: string; amount: string }[]): Totals {
  const rows = all.map(({ name, amount }) => ({ name, amount }));
  return Object.fromEntries(
    Object.entries(sumsBy(rows, (row) => row.name ?? '', 'amount')).filter(
      ([, sum]) => sumTexts([sum]) !== '0',
    ),
  );
}
