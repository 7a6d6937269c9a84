import { describe, expect, it } from 'vitest';
import { checkInvoice, isAccepted } from '../../../domain/invoices/checkInvoice.js';
import type {
  InvoiceLineReading,
  InvoiceReading,
  ReadField,
  Scaled,
} from '../../../domain/invoices/invoiceReading.js';
import type { InvoiceEngine } from '../../../domain/invoices/pageWords.js';
import { parseNumber } from '../../../domain/invoices/reading/printedNumber.js';

function amount(text: string, engine: InvoiceEngine = 'text', confidence = 1): ReadField<Scaled> {
  const box = { page: 1, x: 0, y: 0, width: 10, height: 10 };
  return { value: parseNumber(text, '.')?.value ?? 0n, text, box, confidence, engine };
}
const words = (value: string): ReadField<string> => ({ ...amount('0'), value, text: value });

function lineOf(figures: {
  quantity?: string;
  unitPrice?: string;
  amount: string;
  description?: string;
}): InvoiceLineReading {
  return {
    line: 1,
    description: words(figures.description ?? 'API usage'),
    quantity: figures.quantity === undefined ? null : amount(figures.quantity),
    unitPrice: figures.unitPrice === undefined ? null : amount(figures.unitPrice),
    amount: amount(figures.amount),
    taxRate: null,
    periodStart: null,
    periodEnd: null,
    kind: 'usage',
    model: null,
    tokenClass: null,
  };
}

function reading(changes: Partial<InvoiceReading>): InvoiceReading {
  return {
    kind: 'invoice',
    layout: 'stripe',
    number: words('DSUQQKNL-0001'),
    issuer: null,
    account: null,
    issueDate: words('2026-03-26'),
    dueDate: words('2026-04-25'),
    periodStart: null,
    periodEnd: null,
    currency: words('USD'),
    lines: [lineOf({ quantity: '2', unitPrice: '$5.00', amount: '$10.00' })],
    subtotal: amount('$10.00'),
    discounts: [],
    taxes: [],
    credits: [],
    total: amount('$10.00'),
    amountPaid: null,
    amountDue: null,
    replaces: null,
    ...changes,
  };
}

const failing = (one: InvoiceReading) =>
  checkInvoice(one)
    .filter((check) => !check.ok)
    .map((check) => check.check);
const vat = (text: string, rate: string, base: string | null = null, name = 'VAT') => ({
  name,
  rate: parseNumber(rate)?.value ?? null,
  base: base === null ? null : (parseNumber(base)?.value ?? null),
  amount: amount(text),
  isReverseCharge: false,
});

describe('checkInvoice', () => {
  it('accepts an invoice whose sums agree', () => {
    expect(failing(reading({}))).toEqual([]);
    expect(isAccepted(checkInvoice(reading({})))).toBe(true);
    expect(isAccepted([])).toBe(false);
  });

  it.each<[string, Partial<InvoiceReading>, string[]]>([
    ['a missing number', { number: null }, ['required_fields']],
    ['a missing total', { total: null }, ['required_fields', 'total_evidence']],
    ['two currencies', { total: amount('€10.00') }, ['currency']],
    ['a due date before the issue', { dueDate: words('2026-03-25') }, ['dates']],
    [
      'a service period that ends before it begins',
      { periodStart: words('2026-03-02'), periodEnd: words('2026-03-01') },
      ['dates'],
    ],
    [
      'a wrong product',
      { lines: [lineOf({ quantity: '3', unitPrice: '$5.00', amount: '$10.00' })] },
      ['quantity_times_unit_price'],
    ],
    [
      'lines that miss the subtotal',
      { lines: [lineOf({ amount: '$10.02' })] },
      ['lines_sum', 'total_evidence'],
    ],
    ['a total that misses the subtotal', { total: amount('$12.00') }, ['total', 'total_evidence']],
    ['a tax that misses its rate', { taxes: [vat('$2.60', '25%')], total: amount('$12.60') }, ['tax']],
    [
      'a tax beside another that misses its rate',
      { taxes: [vat('$0.50', '5%', null, 'GST'), vat('$1.20', '10%', null, 'QST')], total: amount('$11.70') },
      ['tax'],
    ],
    [
      'a product within the rounding of its price on a single line',
      {
        lines: [lineOf({ quantity: '1,000', unitPrice: '$0.0100', amount: '$10.03' })],
        subtotal: amount('$10.03'),
        total: amount('$10.03'),
      },
      ['quantity_times_unit_price'],
    ],
    [
      'a due amount that ignores a credit',
      { credits: [amount('-$4.00')], amountDue: amount('$7.00') },
      ['amount_due'],
    ],
    [
      'a mark that may end thousands or the whole',
      { lines: [lineOf({ amount: '1.234' })], subtotal: amount('1.234'), total: amount('1.234') },
      ['number_notation'],
    ],
  ])('refuses %s', (_, changes, checks) => {
    expect(failing(reading(changes))).toEqual(checks);
  });

  it.each<[string, Partial<InvoiceReading>]>([
    [
      'a price per million tokens',
      { lines: [lineOf({ quantity: '4,000,000', unitPrice: '$2.50', amount: '$10.00' })] },
    ],
    [
      'a price of twelve decimals',
      { lines: [lineOf({ quantity: '3,333,333', unitPrice: '$0.000003000000', amount: '$10.00' })] },
    ],
    [
      'a package that is charged whole',
      {
        lines: [
          lineOf({
            quantity: '1,500',
            unitPrice: '$5.00',
            amount: '$10.00',
            description: 'Calls, per 1,000 units',
          }),
        ],
      },
    ],
    [
      'a graduated price',
      {
        lines: [
          lineOf({ quantity: '7', unitPrice: '$2.00', amount: '$10.00', description: 'Tier 1: first 10' }),
        ],
      },
    ],
    [
      'lines that are rounded at the end',
      { lines: [lineOf({ amount: '$3.7993124' }), { ...lineOf({ amount: '$6.2012345' }), line: 2 }] },
    ],
    ['a tax on its printed base', { taxes: [vat('$2.50', '25%', '$10.00')], total: amount('$12.50') }],
    ['a tax that the prices contain', { taxes: [vat('$2.00', '25%', null, 'VAT included')] }],
    [
      'two taxes on the same sum',
      { taxes: [vat('$0.50', '5%', null, 'GST'), vat('$1.00', '10%', null, 'QST')], total: amount('$11.50') },
    ],
    [
      'two taxes on parts of the sum',
      { taxes: [vat('$0.50', '10%'), vat('$0.35', '7%')], total: amount('$10.85') },
    ],
    [
      'prices that are rounded on several lines',
      {
        lines: ['$4.99', '$5.01'].map((text, at) => ({
          ...lineOf({ quantity: '1,000', unitPrice: '$0.0050', amount: text }),
          line: at + 1,
        })),
      },
    ],
    ['reverse charge', { taxes: [{ ...vat('$0.00', '19%'), isReverseCharge: true }] }],
    [
      'a discount before tax',
      { discounts: [amount('-$2.00')], taxes: [vat('$2.00', '25%')], total: amount('$10.00') },
    ],
    [
      'a credit and a payment after the total',
      { credits: [amount('-$4.00')], amountPaid: amount('$1.00'), amountDue: amount('$5.00') },
    ],
  ])('explains %s', (_, changes) => {
    expect(failing(reading(changes))).toEqual([]);
  });

  describe('of recognised figures', () => {
    const recognised = (text: string, confidence = 0.95) => amount(text, 'tesseract', confidence);
    const scan = (changes: Partial<InvoiceReading>) =>
      reading({
        lines: [
          { ...lineOf({ amount: '$7.00' }), amount: recognised('$7.00') },
          { ...lineOf({ amount: '$3.00' }), line: 2, amount: recognised('$3.00') },
        ],
        subtotal: recognised('$10.00'),
        total: recognised('$10.00'),
        ...changes,
      });

    it('accepts a total that lines and subtotal confirm', () => {
      expect(failing(scan({}))).toEqual([]);
    });

    it('refuses a total that only the lines confirm', () => {
      expect(failing(scan({ subtotal: null }))).toEqual(['total_evidence']);
    });

    it('refuses a cent of difference', () => {
      expect(failing(scan({ total: recognised('$10.01') }))).toEqual(['total', 'total_evidence']);
    });

    it('refuses figures that repeat one amount of which recognition is not sure', () => {
      const one = { ...lineOf({ amount: '$10.00' }), amount: recognised('$10.00') };
      expect(failing(scan({ lines: [one] }))).toEqual([]);
      expect(failing(scan({ lines: [one], total: recognised('$10.00', 0.6) }))).toEqual(['total_evidence']);
    });

    it('asks a person where the sums need other digits than were read', () => {
      const first = { ...recognised('$1.00', 0.5), value: recognised('$7.00').value };
      const second = { ...lineOf({ amount: '$3.00' }), line: 2, amount: recognised('$3.00') };
      expect(failing(scan({ lines: [{ ...second, line: 1, amount: first }, second] }))).toEqual(['digits']);
    });
  });
});
