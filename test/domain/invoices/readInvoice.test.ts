import { describe, expect, it } from 'vitest';
import { checkInvoice, isAccepted } from '../../../domain/invoices/checkInvoice.js';
import type { InvoiceReading } from '../../../domain/invoices/invoiceReading.js';
import { readInvoice } from '../../../domain/invoices/readInvoice.js';
import { decimalFromPico, picoFromDecimal } from '../../../domain/money.js';
import { extractionOf, layPage, line, STRIPE_HEAD, sum, turned } from './layPage.js';

const HEADER = line('Description', 'Qty', 'Unit price', 'Tax', 'Amount');

const CREDIT_PURCHASE = layPage([
  ...STRIPE_HEAD,
  { texts: [['$12.50 USD due April 25, 2026', 40]], skip: 30 },
  { texts: HEADER, skip: 40 },
  line('One-time credit purchase', '1', '$10.00', '25%', '$10.00'),
  { texts: sum('Subtotal', '$10.00'), skip: 30 },
  sum('Total excluding tax', '$10.00'),
  sum('VAT - Sweden (25% on $10.00)', '$2.50'),
  sum('Total', '$12.50'),
  sum('Amount due', '$12.50 USD'),
]);

function read(page: Parameters<typeof extractionOf>[0]): InvoiceReading {
  const reading = readInvoice(extractionOf(page), { provider: 'anthropic' });
  if (!reading) throw new Error('no lines were found');
  return reading;
}

const value = (field: { value: bigint } | null) => (field ? decimalFromPico(field.value) : null);
const failed = (reading: InvoiceReading) =>
  checkInvoice(reading)
    .filter((check) => !check.ok)
    .map((check) => check.message);

describe('readInvoice', () => {
  it('reads a purchase of credits with its tax', () => {
    const reading = read(CREDIT_PURCHASE);
    expect(reading).toMatchObject({
      kind: 'invoice',
      layout: 'stripe',
      number: { value: 'DSUQQKNL-0001' },
      issueDate: { value: '2026-03-26' },
      dueDate: { value: '2026-04-25' },
      currency: { value: 'USD' },
      issuer: { value: 'Anthropic, PBC' },
    });
    expect(reading.lines).toHaveLength(1);
    expect(reading.lines[0]).toMatchObject({
      kind: 'prepaid_purchase',
      description: { value: 'One-time credit purchase' },
    });
    expect([reading.subtotal, reading.total, reading.amountDue].map(value)).toEqual(['10', '12.5', '12.5']);
    expect(reading.taxes).toMatchObject([
      {
        name: 'VAT - Sweden (25% on $10.00)',
        rate: picoFromDecimal('25'),
        base: picoFromDecimal('10'),
        amount: { value: picoFromDecimal('2.5') },
      },
    ]);
    expect(failed(reading)).toEqual([]);
    expect(isAccepted(checkInvoice(reading))).toBe(true);
  });

  it.each([-0.05, -0.031, -0.007, 0.012, 0.05])('reads a page that is turned by %s', (slope) => {
    const reading = read(turned(CREDIT_PURCHASE, slope));
    expect(reading.lines.map((one) => value(one.amount))).toEqual(['10']);
    expect(failed(reading)).toEqual([]);
  });

  it('reads prorations with their signs, prices of twelve decimals and the period below a line', () => {
    const page = layPage([
      ...STRIPE_HEAD,
      { texts: HEADER, skip: 40 },
      line('Claude Sonnet 4.5 Usage - Input Tokens', '1,234,567', '$0.000003000000', '', '$3.70'),
      [['Aug 23 – Sep 23, 2026', 40]],
      line('Unused time on 40 × Team plan - Standard after', '40', '', '', '-$1,000.00'),
      [['Aug 23, 2026', 40]],
      line('Remaining time on 97 × Team plan - Premium', '97', '', '', '$4,978.24'),
      { texts: sum('Subtotal', '$3,981.94'), skip: 30 },
      sum('Total', '$3,981.94'),
      sum('Applied balance', '-$81.94'),
      sum('Amount due', '$3,900.00 USD'),
    ]);
    const reading = read(page);
    expect(reading.lines).toMatchObject([
      {
        kind: 'usage',
        model: 'claude-sonnet-4-5',
        tokenClass: 'input',
        periodStart: { value: '2026-08-23' },
        periodEnd: { value: '2026-09-23' },
      },
      {
        kind: 'proration',
        description: { value: 'Unused time on 40 × Team plan - Standard after Aug 23, 2026' },
      },
      { kind: 'proration' },
    ]);
    expect(reading.lines.map((one) => value(one.amount))).toEqual(['3.7', '-1000', '4978.24']);
    expect(reading.credits.map(value)).toEqual(['-81.94']);
    expect(failed(reading)).toEqual([]);
  });
});
