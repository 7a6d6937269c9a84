import { describe, expect, it } from 'vitest';
import type { InvoiceLineReading, InvoiceReading } from '../../../domain/invoices/invoiceReading.js';
import { generateInvoicesSecond } from '../../../lab/generators/invoicesSecond/generateInvoicesSecond.js';
import type { InvoiceTruth } from '../../../lab/generators/invoiceTruth.js';
import { compareReading, scaled } from '../../../lab/invoices/compareReading.js';
import { scanInvoice } from '../../../lab/invoices/scan.js';

async function invoiceAt(place: number): Promise<{ pdf: Buffer; truth: InvoiceTruth }> {
  let at = 0;
  for await (const invoice of generateInvoicesSecond(1, place + 1)) if (at++ === place) return invoice;
  throw new RangeError(`no invoice ${place}`);
}

const field = <T>(value: T) => ({
  value,
  text: String(value),
  box: { page: 1, x: 0, y: 0, width: 1, height: 1 },
  confidence: 1,
  engine: 'text' as const,
});
const maybe = (text: string | null) => (text === null ? null : field(scaled(text)));
const text = (value: string | null) => (value === null ? null : field(value));

/** The reading of one who makes no mistake. */
function perfect(truth: InvoiceTruth): InvoiceReading {
  return {
    kind: truth.kind,
    layout: 'table',
    number: text(truth.number),
    issuer: text(truth.issuer),
    account: text(truth.account),
    issueDate: text(truth.issueDate),
    dueDate: text(truth.dueDate),
    periodStart: text(truth.periodStart),
    periodEnd: text(truth.periodEnd),
    currency: text(truth.currency),
    lines: truth.lines.map(
      (line, at): InvoiceLineReading => ({
        line: at + 1,
        description: field(line.description),
        quantity: maybe(line.quantity),
        unitPrice: maybe(line.unitPrice),
        amount: field(scaled(line.amount)),
        taxRate: maybe(line.taxRate),
        periodStart: text(line.periodStart),
        periodEnd: text(line.periodEnd),
        kind: line.kind,
        model: null,
        tokenClass: null,
      }),
    ),
    subtotal: maybe(truth.subtotal),
    discounts: truth.discounts.map((value) => field(scaled(value))),
    taxes: truth.taxes.map(({ name, amount, isReverseCharge }) => ({
      name,
      rate: null,
      base: null,
      amount: field(scaled(amount)),
      isReverseCharge,
    })),
    credits: truth.credits.map((value) => field(scaled(value))),
    total: maybe(truth.total),
    amountPaid: maybe(truth.amountPaid),
    amountDue: maybe(truth.amountDue),
    replaces: text(truth.replaces),
  } as InvoiceReading;
}

const holds = [
  { check: 'total', line: null, ok: true, expected: 0n, found: 0n, difference: 0n, message: '' },
];

describe('the judge of readings', () => {
  it('finds no fault with a reading that says what is printed', async () => {
    const { truth } = await invoiceAt(0);
    const verdict = compareReading(truth, perfect(truth), holds);
    expect(verdict.faults).toEqual([]);
    expect(verdict.amounts.right).toBe(verdict.amounts.all);
    expect(verdict).toMatchObject({ isAccepted: true, isWronglyAccepted: false, isAcceptedWithError: false });
  });

  it('counts a line that is missing, a line too much and a changed amount', async () => {
    const { truth } = await invoiceAt(0);
    const reading = perfect(truth);
    const [first, second, ...others] = reading.lines as [InvoiceLineReading, InvoiceLineReading];
    const wrong = (lines: readonly InvoiceLineReading[]) => {
      const { amounts } = compareReading(truth, { ...reading, lines }, holds);
      return amounts.all - amounts.right;
    };
    expect(wrong([second, ...others])).toBe(3);
    expect(wrong([first, first, second, ...others])).toBe(1);
    expect(wrong([{ ...first, amount: field(first.amount.value + 1n) }, second, ...others])).toBe(1);
  });

  it('reports a wrong total and a contradiction that are accepted', async () => {
    const { truth } = await invoiceAt(0);
    const reading = { ...perfect(truth), total: field(1n) };
    expect(compareReading(truth, reading, holds).isWronglyAccepted).toBe(true);
    const contradicted: InvoiceTruth = {
      ...truth,
      contradictions: [{ kind: 'total', line: null, printed: '2', right: '1' }],
    };
    expect(compareReading(contradicted, perfect(contradicted), holds).isWronglyAccepted).toBe(true);
    const failed = holds.map((check) => ({ ...check, ok: false }));
    const verdict = compareReading(contradicted, perfect(contradicted), failed);
    expect(verdict).toMatchObject({ isWronglyAccepted: false, isContradictionNamed: true });
  });

  it('counts everything as wrong where nothing is read', async () => {
    const { truth } = await invoiceAt(1);
    const verdict = compareReading(truth, undefined, []);
    expect(verdict.amounts.right).toBe(0);
    expect(verdict.amounts.all).toBeGreaterThan(3);
    expect(verdict.isAccepted).toBe(false);
  });
});

describe('a scan', () => {
  it('is the same for the same seed, holds images alone and has as many pages', async () => {
    const { pdf } = await invoiceAt(0);
    const one = await scanInvoice(pdf, { dpi: 100, seed: 5 });
    expect(one.equals(await scanInvoice(pdf, { dpi: 100, seed: 5 }))).toBe(true);
    expect(one.equals(await scanInvoice(pdf, { dpi: 100, seed: 6 }))).toBe(false);
    expect(one.includes('/DCTDecode')).toBe(true);
    expect(one.includes('/Font')).toBe(false);
  });
});
