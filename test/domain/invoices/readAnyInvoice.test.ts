import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkInvoice, isAccepted } from '../../../domain/invoices/checkInvoice.js';
import type { PageWords } from '../../../domain/invoices/pageWords.js';
import { readInvoice } from '../../../domain/invoices/readInvoice.js';
import { decimalFromScaled } from '../../../domain/money.js';
import { extractionOf, layPage, line, STRIPE_HEAD, sum, turned } from './layPage.js';

/** How numbers are printed. */
interface Style {
  group: string;
  point: string;
  before: string;
  after: string;
  minus: 'front' | 'parentheses' | 'trailing';
}

const STYLES: readonly Style[] = [
  { group: ',', point: '.', before: '$', after: '', minus: 'front' },
  { group: '.', point: ',', before: '', after: ' €', minus: 'front' },
  { group: ' ', point: ',', before: '', after: ' €', minus: 'front' },
  { group: "'", point: '.', before: 'CHF ', after: '', minus: 'trailing' },
  { group: ',', point: '.', before: '£', after: '', minus: 'parentheses' },
];

function printed(value: bigint, decimals: number, { group, point }: Style): string {
  const [whole = '', part = ''] = decimalFromScaled(value < 0n ? -value : value, decimals).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group);
  return decimals === 0 ? grouped : `${grouped}${point}${part.padEnd(decimals, '0')}`;
}

function money(cents: bigint, style: Style): string {
  const plain = `${style.before}${printed(cents, 2, style)}${style.after}`;
  if (cents >= 0n) return plain;
  return style.minus === 'front' ? `-${plain}` : style.minus === 'trailing' ? `${plain}-` : `(${plain})`;
}

interface Bill {
  style: Style;
  lines: { words: string; quantity: bigint; cents: bigint }[];
  taxPercent: bigint;
  hasProducts: boolean;
}

const bills: fc.Arbitrary<Bill> = fc.record({
  style: fc.constantFrom(...STYLES),
  lines: fc.array(
    fc.record({
      words: fc.constantFrom(
        'Claude Sonnet 4.5 Usage - Input Tokens',
        'gpt-5.2, output',
        'Team plan',
        'Web search',
      ),
      quantity: fc.bigInt({ min: 1n, max: 5_000n }),
      cents: fc.oneof(fc.bigInt({ min: 3n, max: 900_000n }), fc.bigInt({ min: -40_000n, max: -3n })),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  taxPercent: fc.constantFrom(0n, 19n, 25n),
  hasProducts: fc.boolean(),
});

interface Sums {
  amounts: bigint[];
  subtotal: bigint;
  tax: bigint;
  total: bigint;
}

function sumsOf({ lines, taxPercent, hasProducts }: Bill): Sums {
  const amounts = lines.map(({ quantity, cents }) => (hasProducts ? quantity * cents : cents));
  const subtotal = amounts.reduce((total, amount) => total + amount, 0n);
  // Half away from zero, as invoices round.
  const twice = subtotal * taxPercent * 2n;
  const tax = (twice + (twice < 0n ? -100n : 100n)) / 200n;
  return { amounts, subtotal, tax, total: subtotal + tax };
}

function lay(
  { style, lines, taxPercent, hasProducts }: Bill,
  { amounts, subtotal, tax, total }: Sums,
): PageWords {
  return layPage([
    ...STRIPE_HEAD,
    { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
    ...lines.map(({ words, quantity, cents }, at) =>
      line(
        words,
        hasProducts ? printed(quantity, 0, style) : '',
        hasProducts ? money(cents, style) : '',
        '',
        money(amounts[at] ?? 0n, style),
      ),
    ),
    { texts: sum('Subtotal', money(subtotal, style)), skip: 30 },
    ...(taxPercent === 0n ? [] : [sum(`VAT (${taxPercent}%)`, money(tax, style))]),
    sum('Total', money(total, style)),
  ]);
}

const CENT = 10n ** 10n;
const read = (page: PageWords) => readInvoice(extractionOf(page), { provider: 'anthropic' });

describe('readInvoice', () => {
  it('reads back any invoice that foots, turned and with its words in any order', () => {
    fc.assert(
      fc.property(bills, fc.integer({ min: -48, max: 48 }), (bill, permille) => {
        const sums = sumsOf(bill);
        const reading = read(turned(lay(bill, sums), permille / 1000));
        expect(reading?.lines.map((one) => one.amount.value)).toEqual(
          sums.amounts.map((cents) => cents * CENT),
        );
        expect(reading?.subtotal?.value).toBe(sums.subtotal * CENT);
        expect(reading?.total?.value).toBe(sums.total * CENT);
        if (bill.hasProducts)
          expect(reading?.lines.map((one) => one.unitPrice?.value)).toEqual(
            bill.lines.map(({ cents }) => cents * CENT),
          );
        expect(isAccepted(checkInvoice(reading as NonNullable<typeof reading>))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('accepts no invoice of which one amount is changed by more than a cent', () => {
    const change = fc.record({
      by: fc.oneof(fc.bigInt({ min: 2n, max: 900_000n }), fc.bigInt({ min: -900_000n, max: -2n })),
      where: fc.nat(),
    });
    fc.assert(
      fc.property(bills, change, (bill, { by, where }) => {
        const sums = sumsOf(bill);
        const place = where % (sums.amounts.length + 2);
        const changed: Sums = {
          ...sums,
          amounts: sums.amounts.map((amount, at) => (at === place ? amount + by : amount)),
          subtotal: sums.subtotal + (place === sums.amounts.length ? by : 0n),
          total: sums.total + (place === sums.amounts.length + 1 ? by : 0n),
        };
        const reading = read(lay(bill, changed));
        expect(reading === undefined || !isAccepted(checkInvoice(reading))).toBe(true);
      }),
      { numRuns: 60 },
    );
  });
});
