import { describe, expect, it } from 'vitest';
import { findDate } from '../../../domain/invoices/reading/printedDate.js';
import { decimalMarkOf, parseNumber } from '../../../domain/invoices/reading/printedNumber.js';
import { decimalFromPico } from '../../../domain/money.js';

describe('parseNumber', () => {
  it.each([
    ['1,234.56', '1234.56', null],
    ['1.234,56', '1234.56', null],
    ['1 234,56 €', '1234.56', 'EUR'],
    ["CHF 1'234.50", '1234.5', 'CHF'],
    ['€ 1.234,56', '1234.56', 'EUR'],
    ['CA$8,902.38 CAD', '8902.38', 'CAD'],
    ['kr1,799.94', '1799.94', 'SEK'],
    ['¥1,197', '1197', 'JPY'],
    ['$0.000003000000', '0.000003', 'USD'],
    ['$3.7993124', '3.7993124', 'USD'],
    ['1,234,567', '1234567', null],
    ['1,23,456.78', '123456.78', null],
    ['-$4,978.24', '-4978.24', 'USD'],
    ['−12.00', '-12', null],
    ['$-12.00', '-12', 'USD'],
    ['(5.00)', '-5', null],
    ['5.00-', '-5', null],
    ['$5.00 CR', '-5', 'USD'],
    ['25%', '25', null],
    ['(23%)', '23', null],
  ])('reads %s', (text, value, currency) => {
    const number = parseNumber(text);
    expect(number && [decimalFromPico(number.value), number.currency]).toEqual([value, currency]);
  });

  it.each(['gpt-4.1', '2026-08-06', '1M', 'INV-0042', '10:30', '1.2.3', ''])(
    'does not take %s for a number',
    (text) => {
      expect(parseNumber(text)).toBeUndefined();
    },
  );

  it('leaves a single mark before three digits to the notation of the document', () => {
    expect(parseNumber('1.234')).toMatchObject({ isAmbiguous: true });
    expect(decimalFromPico(parseNumber('1.234', ',')?.value ?? 0n)).toBe('1234');
    expect(decimalFromPico(parseNumber('1.234', '.')?.value ?? 0n)).toBe('1.234');
    expect(decimalMarkOf(['Total 12,50 €'])).toBe(',');
    expect(decimalMarkOf(['14.211.005 tokens'])).toBe(',');
    expect(decimalMarkOf(['Team plan'])).toBeUndefined();
  });
});

describe('findDate', () => {
  it.each([
    ['March 26, 2026', '2026-03-26', '2026-03-26'],
    ['26 March 2026', '2026-03-26', '2026-03-26'],
    ['26. März 2026', '2026-03-26', '2026-03-26'],
    ['2026-03-26', '2026-03-26', '2026-03-26'],
    ['26.03.2026', '2026-03-26', '2026-03-26'],
    ['03/26/2026', '2026-03-26', '2026-03-26'],
    ['26/03/2026', '2026-03-26', '2026-03-26'],
    ['26-Mar-2026', '2026-03-26', '2026-03-26'],
    ['2026 03 26', '2026-03-26', '2026-03-26'],
    ['Aug 23-Sep 23, 2026', '2026-08-23', '2026-09-23'],
    ['Aug 23 Sep 23, 2026', '2026-08-23', '2026-09-23'],
    ['Dec 15 – Jan 15, 2026', '2025-12-15', '2026-01-15'],
    ['Aug 1 – 31, 2026', '2026-08-01', '2026-08-31'],
    ['1 Oct 2025 to 3 Oct 2025', '2025-10-01', '2025-10-03'],
    ['01.08.2026 - 31.08.2026', '2026-08-01', '2026-08-31'],
    ['2026-08-01 to 2026-08-31', '2026-08-01', '2026-08-31'],
    ['August 2026', '2026-08-01', '2026-08-31'],
    ['Jun 1 - Jun 3', '2026-06-01', '2026-06-03'],
    ['Mar I, 2026', '2026-03-01', '2026-03-01'],
  ])('reads %s', (text, first, last) => {
    expect(findDate(text, 'month_first', 2026)).toMatchObject({ first, last });
  });

  it('reads strokes in the order of the document, and otherwise where only one order is a date', () => {
    expect(findDate('03/04/2026', 'month_first')?.first).toBe('2026-03-04');
    expect(findDate('03/04/2026', 'day_first')?.first).toBe('2026-04-03');
    expect(findDate('31/02/2026', 'day_first')).toBeUndefined();
  });
});
