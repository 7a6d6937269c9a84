import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkInvoice, isAccepted } from '../../../domain/invoices/checkInvoice.js';
import type { InvoiceReading } from '../../../domain/invoices/invoiceReading.js';
import type { PageWords } from '../../../domain/invoices/pageWords.js';
import { readInvoice } from '../../../domain/invoices/readInvoice.js';
import { decimalFromPico } from '../../../domain/money.js';
import { extractionOf, type LaidRow, layPage, line, type Placed, STRIPE_HEAD, sum } from './layPage.js';

type Rows = readonly (LaidRow | readonly Placed[])[];

function read(rows: Rows): InvoiceReading {
  const reading = readInvoice(extractionOf(layPage([...STRIPE_HEAD, ...rows])), { provider: 'cohere' });
  if (!reading) throw new Error('no lines were found');
  return reading;
}

const value = (field: { value: bigint } | null) => (field ? decimalFromPico(field.value) : null);
const amounts = ({ lines }: InvoiceReading) => lines.map((one) => value(one.amount));
const failed = (reading: InvoiceReading) =>
  checkInvoice(reading)
    .filter((check) => !check.ok)
    .map((check) => check.check);
const money = (cents: number) => `$${(cents / 100).toFixed(2)}`;

/** A tax invoice with a net, tax and gross amount of each service; the tax has a foreign name. */
const columns = (service: string, net: string, rate: string, tax: string, gross: string): Placed[] => [
  [service, 40],
  [net, 280, 'right'],
  [rate, 370, 'right'],
  [tax, 470, 'right'],
  [gross, 555, 'right'],
];
const HEADER = columns('Service', 'Charges (excl. IGST)', 'IGST rate', 'IGST amount', 'Total');

describe('the column of the amounts', () => {
  it('is never the unit price, although the subtotal repeats it', () => {
    const reading = read([
      { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
      line('Prepaid balance top-up', '1', '$250.00', '', '$450.00'),
      { texts: sum('Subtotal', '$250.00'), skip: 30 },
      sum('Total', '$250.00'),
      sum('Amount due', '$250.00'),
    ]);
    expect(amounts(reading)).toEqual(['450']);
    expect(failed(reading)).toEqual(['quantity_times_unit_price', 'lines_sum', 'total_evidence']);
  });

  it('is never the unit price of a table without a header', () => {
    const reading = read([
      { texts: line('Prepaid balance top-up', '1', '$250.00', '', '$450.00'), skip: 40 },
      { texts: sum('Subtotal', '$250.00'), skip: 30 },
      sum('Total', '$250.00'),
    ]);
    expect(isAccepted(checkInvoice(reading))).toBe(false);
  });

  it('is the net amount where net and tax make the gross amount', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 100, max: 900_000 }), { minLength: 2, maxLength: 8 }),
        fc.constantFrom(0, 10, 18),
        fc.integer({ min: 0, max: 5_000 }),
        (nets, percent, slip) => {
          const taxes = nets.map((net) => Math.round((net * percent) / 100));
          const subtotal = nets.reduce((total, net) => total + net, 0);
          const tax = Math.round((subtotal * percent) / 100);
          const reading = read([
            { texts: HEADER, skip: 40 },
            ...nets.map((net, at) =>
              columns(
                `Amazon Bedrock ${'abcdefgh'[at]}`,
                money(net),
                `${percent}%`,
                money(taxes[at] ?? 0),
                money(net + (taxes[at] ?? 0)),
              ),
            ),
            { texts: sum('Total charges excluding tax', money(subtotal + slip)), skip: 30 },
            sum(`IGST at ${percent}%`, money(tax)),
            sum('TOTAL AMOUNT', money(subtotal + slip + tax)),
          ]);
          expect(amounts(reading)).toEqual(nets.map((net) => value({ value: BigInt(net) * 10n ** 10n })));
          expect(reading.lines.map((one) => one.unitPrice)).toEqual(nets.map(() => null));
          if (slip > 1) expect(isAccepted(checkInvoice(reading))).toBe(false);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('leaves a number beside the header of its column to the description', () => {
    const reading = read([
      { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
      line('gpt-5.2, output', '2', '$20.00', '', '$40.00'),
      line('Goodwill credit for incident INC 4417', '', '', '', '-$11.35'),
      { texts: sum('Subtotal', '$28.65'), skip: 30 },
      sum('Total', '$28.65'),
    ]);
    expect(reading.lines[1]).toMatchObject({
      description: { value: 'Goodwill credit for incident INC 4417' },
      quantity: null,
    });
    expect(failed(reading)).toEqual([]);
  });
});

describe('readInvoice', () => {
  it('keeps the columns of the first page where the next one lies at another slope and has no header', () => {
    const rows: Rows = [
      ...STRIPE_HEAD,
      { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
      ...[1, 2, 3].map((count) => line('Team plan', `${count}`, '$20.00', '', money(count * 2_000))),
    ];
    const next: Rows = [
      { texts: line('Team plan', '4', '$20.00', '', '$80.00'), skip: 300 },
      line('Team plan', '5', '$20.00', '', '$100.00'),
      { texts: sum('Subtotal', '$300.00'), skip: 30 },
      sum('Total', '$300.00'),
    ];
    const about = (page: PageWords, slope: number): PageWords => ({
      ...page,
      words: page.words.map((word) => {
        const x = word.x + word.width / 2 - page.width / 2;
        const y = word.y + word.height / 2 - page.height / 2;
        const length = Math.hypot(1, slope);
        return {
          ...word,
          x: (x - y * slope) / length + page.width / 2 - word.width / 2,
          y: (y + x * slope) / length + page.height / 2 - word.height / 2,
        };
      }),
    });
    const reading = readInvoice(
      extractionOf(about(layPage(rows), 0.035), about(layPage(next, { page: 2 }), -0.035)),
      { provider: 'anthropic' },
    );
    expect(reading?.lines.map((one) => [value(one.quantity), value(one.unitPrice)])).toEqual(
      ['1', '2', '3', '4', '5'].map((count) => [count, '20']),
    );
    expect(reading && failed(reading)).toEqual([]);
  });

  it('concludes a quantity of one that recognition lost from a price that equals the amount', () => {
    const page = layPage(
      [
        ...STRIPE_HEAD,
        { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
        line('Prepaid balance top-up', 'x', '$250.00', '', '$250.00'),
        { texts: sum('Subtotal', '$250.00'), skip: 30 },
        sum('Total', '$250.00'),
        sum('Amount due', '$250.00'),
      ],
      { engine: 'tesseract', confidence: 0.95 },
    );
    const reading = readInvoice(extractionOf(page), { provider: 'cohere' });
    expect(reading?.lines[0]?.quantity).toMatchObject({ value: 10n ** 12n, box: null });
  });

  it('separates a stamp across the page from the row below it', () => {
    const page = layPage([
      ...STRIPE_HEAD,
      { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
      line('Team plan', '2', '$20.00', '', '$40.00'),
      { texts: sum('Subtotal', '$40.00'), skip: 30 },
      sum('Total', '$40.00'),
    ]);
    const total = page.words.find((word) => word.text === 'Total') as PageWords['words'][number];
    const stamp = { ...total, text: 'COPY', x: 420, width: 60, y: total.y - 100, height: total.height + 200 };
    const stamped = { ...page, words: [...page.words, stamp] };
    const reading = readInvoice(extractionOf(stamped), { provider: 'anthropic' });
    expect(value(reading?.total ?? null)).toBe('40');
  });

  it('restores dashes whose glyph became NUL, unless it stands before most amounts', () => {
    const rows = (mark: string): Rows => [
      [['Reference AB\0CD\u000012', 40]],
      { texts: line('Description', 'Qty', 'Unit price', '', 'Amount'), skip: 40 },
      line('Team plan', '2', `${mark}$20.00`, '', `${mark}$40.00`),
      line('Unused time', '', '', '', '\0$10.00'),
      { texts: sum('Sub\0total', `${mark}$30.00`), skip: 30 },
      sum('Total', `${mark}$30.00`),
    ];
    const reading = read(rows(''));
    expect(amounts(reading)).toEqual(['40', '-10']);
    expect(value(reading.subtotal)).toBe('30');
    expect(failed(reading)).toEqual([]);
    expect(value(read(rows('\0')).total)).toBe('30');
  });

  it('takes a breakdown directly above the total for the sums, if other breakdowns follow', () => {
    const reading = read([
      {
        texts: [
          ['AWS Service Charges', 40],
          ['$125.00', 555, 'right'],
        ],
        skip: 40,
      },
      [
        ['Charges', 40],
        ['$100.00', 555, 'right'],
      ],
      [
        ['VAT (25%)', 40],
        ['$25.00', 555, 'right'],
      ],
      [
        ['Total for this invoice', 40],
        ['$126.00', 555, 'right'],
      ],
      {
        texts: [
          ['Amazon Bedrock', 40],
          ['$100.00', 555, 'right'],
        ],
        skip: 40,
      },
      [
        ['Charges', 40],
        ['$100.00', 555, 'right'],
      ],
    ]);
    expect(amounts(reading)).toEqual(['100']);
    expect(reading.taxes.map((tax) => value(tax.amount))).toEqual(['25']);
    expect(failed(reading)).toEqual(['total', 'total_evidence']);
  });
});
