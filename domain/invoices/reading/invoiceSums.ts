import type { ReadField, Scaled, TaxReading } from '../invoiceReading.js';
import { amountField } from './draftLines.js';
import { REVERSE_CHARGE, type SumRole } from './labels.js';
import type { NumberedRow, SumRow } from './lineTable.js';
import type { DecimalMark, NumberSpan } from './printedNumber.js';
import { numbersIn } from './printedNumber.js';
import type { Row } from './textRows.js';

/** A sum and its index among the rows of sums, from top to bottom. */
export interface PlacedSum {
  field: ReadField<Scaled>;
  at: number;
}

/** The printed sums of a document: every distinct subtotal, total and so on. */
export interface InvoiceSums {
  subtotals: readonly PlacedSum[];
  nets: readonly PlacedSum[];
  totals: readonly PlacedSum[];
  paid: readonly PlacedSum[];
  dues: readonly PlacedSum[];
  /** Discounts, credits and balances; negative. */
  reductions: readonly PlacedSum[];
  taxes: readonly TaxReading[];
}

export function readSums(
  sums: readonly SumRow[],
  rows: readonly Row[],
  mark: DecimalMark | undefined,
): InvoiceSums {
  const found: (PlacedSum & { role: SumRole })[] = [];
  const taxes: TaxReading[] = [];
  const hasCents = sums.some(({ row }) => row.trailing.some((span) => !span.isPercent && span.decimals > 0));
  for (const [at, { row, role }] of sums.entries()) {
    const span = row.trailing.findLast((one) => !one.isPercent);
    if (!span || !isMoneyLike(span) || (hasCents && isPlainInteger(span))) continue;
    if (role === 'tax') taxes.push(taxFrom(row));
    else found.push({ role, at, field: amountField(span) });
  }
  const of = (...roles: SumRole[]) => found.filter((one) => roles.includes(one.role));
  return {
    subtotals: distinct(of('subtotal')),
    nets: distinct(of('net')),
    totals: distinct(of('total')),
    paid: distinct(of('paid')),
    dues: distinct([...headlines(rows, mark).map((field) => ({ field, at: -1 })), ...of('due')]),
    reductions: of('discount', 'credit')
      .filter(({ field }) => field.value !== 0n)
      .map(({ field, at }) => ({ field: negative(field), at })),
    taxes: [...taxes, ...reverseCharge(taxes, rows)],
  };
}

/** A number of a card or a register, if amounts have cents. */
function isPlainInteger(span: NumberSpan): boolean {
  return (
    span.currency === null && span.decimals === 0 && span.value !== 0n && !/\d[.,' ]\d{3}/.test(span.text)
  );
}

/** False for a plain integer that may be a year, a day without dashes or a legal article. */
function isMoneyLike(span: NumberSpan): boolean {
  return (
    span.currency !== null ||
    span.decimals > 0 ||
    span.value === 0n ||
    /\d[.,' ]\d{3}/.test(span.text) ||
    !/^(?:19|20)\d\d(?:\d{4})?$/.test(span.text)
  );
}

/** A discount or credit is negative, with or without a printed minus sign. */
function negative(field: ReadField<Scaled>): ReadField<Scaled> {
  return field.value > 0n ? { ...field, value: -field.value } : field;
}

/** The last of equal values: sums follow headlines. */
function distinct(sums: readonly PlacedSum[]): PlacedSum[] {
  return [...new Map(sums.map((sum) => [sum.field.value, sum])).values()].sort((a, b) => a.at - b.at);
}

function taxFrom(row: NumberedRow): TaxReading {
  const money = row.trailing.filter((span) => !span.isPercent);
  const amount = money.at(-1) as (typeof money)[number];
  const rate = numbersIn(row.row.tokens, undefined).find((span) => span.isPercent);
  const words = row.row.text.slice(0, row.row.text.lastIndexOf(amount.text));
  // The label contains the base: `VAT - Sweden (25% on $10.00)`.
  const base =
    money.length > 1 && /\b(?:on|of|von|auf|sur|sobre)\b|\(/i.test(words) ? money.at(-2) : undefined;
  const cells = words.trim().split(/ {2,}/);
  const name = cells.findLast((cell) => /\p{L}/u.test(cell)) ?? words;
  return {
    name: name.replace(/\s+/g, ' ').trim().slice(0, NAME_CHARS_MAX),
    rate: rate?.value ?? null,
    base: base?.value ?? null,
    amount: amountField(amount),
    isReverseCharge: REVERSE_CHARGE.test(row.row.text),
  };
}

const NAME_CHARS_MAX = 120;

/** A sentence about reverse charge, if no row of sums states it. */
function reverseCharge(taxes: readonly TaxReading[], rows: readonly Row[]): TaxReading[] {
  if (taxes.some((tax) => tax.isReverseCharge)) return [];
  const row = rows.find((one) => REVERSE_CHARGE.test(one.text));
  if (!row) return [];
  const amount: ReadField<Scaled> = {
    value: 0n,
    text: '',
    box: null,
    confidence: 1,
    engine: row.tokens[0]?.engine ?? 'text',
  };
  return [
    {
      name: row.text.replace(/\s+/g, ' ').slice(0, NAME_CHARS_MAX),
      rate: null,
      base: null,
      amount,
      isReverseCharge: true,
    },
  ];
}

/** `$12.50 USD due March 26, 2026` above the lines. */
function headlines(rows: readonly Row[], mark: DecimalMark | undefined): ReadField<Scaled>[] {
  for (const row of rows.slice(0, 60)) {
    const due = /\s(?:is )?(?:due|fällig|payable)\b/i.exec(row.text);
    if (!due) continue;
    const span = numbersIn(row.tokens, mark).findLast(
      (one) => one.currency !== null && one.end <= due.index + 1,
    );
    if (span && due.index - span.end <= 5) return [amountField(span)];
  }
  return [];
}
