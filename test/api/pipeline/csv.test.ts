import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvInteger, csvShare, csvUsd, writeCsv } from '../../../api/csv.js';
import { dollars, figure } from '../../../bin/terminal/textTable.js';

describe('a CSV answer', () => {
  it('is RFC 4180: CRLF after every record, quotes where a cell needs them', () => {
    expect(writeCsv(['a', 'b'], [['x, "y"', 'two\nlines']])).toBe('a,b\r\n"x, ""y""","two\nlines"\r\n');
  });

  it('runs nothing in a spreadsheet, and leaves negative numbers numbers', () => {
    const texts = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '＝1+1', 'plain'];
    expect(
      writeCsv(
        ['t'],
        texts.map((text) => [text]),
      ),
    ).toBe(`t\r\n'=1+1\r\n'+1\r\n'-1\r\n'@SUM(A1)\r\n'\tx\r\n'＝1+1\r\nplain\r\n`);
    expect(writeCsv(['t'], [['\n=1+1']])).toBe(`t\r\n"'\n=1+1"\r\n`);
    expect(writeCsv(['n'], [[csvUsd(-25_000_000_000_001n)], [csvUsd(null)], [csvInteger(3)]])).toBe(
      'n\r\n-25.000000000001\r\n\r\n3\r\n',
    );
  });

  it('quotes a cell with a semicolon, at which spreadsheets of several locales split', () => {
    expect(writeCsv(['a'], [['x;y'], ['x y']])).toBe('a\r\n"x;y"\r\nx y\r\n');
  });

  it('comes back from another reader as it was written, whatever a label holds', () => {
    const cell = fc
      .string({ unit: 'grapheme', maxLength: 12 })
      .filter((text) => !/^[=+\-@\t\r\n＝＋－＠]/.test(text));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 6 }), (rows) => {
        const read = parse(writeCsv(['a', 'b'], rows), { record_delimiter: '\r\n' });
        expect(read).toEqual([['a', 'b'], ...rows.map((row) => [...row])]);
      }),
    );
  });

  it('has shares to six digits, and none of nothing', () => {
    expect([csvShare(1n, 3n), csvShare(-1n, 3n), csvShare(1n, -3n), csvShare(1n, 0n)]).toEqual([
      { number: '0.333333' },
      { number: '-0.333333' },
      { number: '-0.333333' },
      null,
    ]);
  });
});

describe('figures on a terminal', () => {
  it('are rounded, grouped, and never show something as nothing', () => {
    expect(figure(1_234_567_890_123_456_789n, 2)).toBe('1,234,567.89');
    expect(figure(-1_234_567_890_123_456_789n, 0)).toBe('-1,234,568');
    expect([dollars(0n), dollars(4_999_999_999n), dollars(-1n), dollars(5_000_000_001n)]).toEqual([
      '0.00',
      '<0.01',
      '>-0.01',
      '0.01',
    ]);
  });
});
