/**
 * Sums saved pages by account, day and category in plain code: JSON.parse, separate decimal arithmetic, and plainly
 * written rules. It imports nothing of the product, so that the two can be compared.
 */

/** Pico-dollars by `account|day|category`. */
export type BillTotals = Map<string, bigint>;

/** A decimal of any form that JavaScript or an API writes → 1e-12 units; further digits are rounded half to even. */
function scaled(text: string, digits: number): bigint {
  const [mantissa = '0', exponentText = '0'] = text.toLowerCase().split('e');
  const negative = mantissa.startsWith('-');
  const [whole = '0', fraction = ''] = mantissa.replace(/^[-+]/, '').split('.');
  const shift = digits + Number(exponentText) - fraction.length;
  const number = BigInt(whole + fraction);
  if (shift >= 0) {
    const exact = number * 10n ** BigInt(shift);
    return negative ? -exact : exact;
  }
  const divisor = 10n ** BigInt(-shift);
  let result = number / divisor;
  const rest = (number % divisor) * 2n;
  if (rest > divisor || (rest === divisor && result % 2n === 1n)) result += 1n;
  return negative ? -result : result;
}

interface Page {
  data: Bucket[];
}

interface Bucket {
  start_time?: number;
  starting_at?: string;
  results: Result[];
}

interface Result {
  amount: string | { value: number | string };
  line_item?: string | null;
  description?: string | null;
}

function pagesIn(text: string): Page[] {
  const trimmed = text.trim();
  if (trimmed.startsWith('[')) return JSON.parse(trimmed) as Page[];
  return trimmed.split('\n').map((line) => JSON.parse(line) as Page);
}

/** The category of an amount: negative amounts are never usage, and their label names their kind. */
function categoryOf(label: string, pico: bigint): string {
  if (/credit/i.test(label)) return 'credit';
  return pico < 0n ? 'adjustment' : 'usage';
}

/**
 * Totals of the cost pages in `files`, in the order of their saving: a day in a later file of the same provider
 * replaces the earlier one.
 */
export function sumCostPages(
  files: readonly { account: string; provider: string; text: string }[],
): BillTotals {
  const days = new Map<string, BillTotals>();
  for (const { account, provider, text } of files) {
    for (const page of pagesIn(text)) {
      for (const bucket of page.data) {
        const day =
          bucket.starting_at?.slice(0, 10) ??
          new Date((bucket.start_time ?? 0) * 1_000).toISOString().slice(0, 10);
        const sums: BillTotals = new Map();
        for (const result of bucket.results) {
          const isCents = typeof result.amount === 'string';
          const text = typeof result.amount === 'string' ? result.amount : String(result.amount.value);
          const pico = scaled(text, isCents ? 10 : 12);
          const key = `${provider}/${account}|${day}|${categoryOf(result.line_item ?? result.description ?? '', pico)}`;
          sums.set(key, (sums.get(key) ?? 0n) + pico);
        }
        days.set(`${provider}/${account}|${day}`, sums);
      }
    }
  }
  const totals: BillTotals = new Map();
  for (const sums of days.values()) for (const [key, pico] of sums) totals.set(key, pico);
  return totals;
}
