import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsvLines } from '../../../../adapters/billing/tables/csvTable.js';

function cut(text: string, sizes: readonly number[] = []): { cells: string[]; line: number }[] {
  const bytes = Buffer.from(text);
  const lines = new CsvLines();
  const found = [];
  let at = 0;
  for (const size of sizes) {
    found.push(...lines.write(bytes.subarray(at, at + size)));
    at += size;
  }
  found.push(...lines.write(bytes.subarray(at)), ...lines.end());
  return found;
}

const cell = fc.stringMatching(/^[a-z0-9 ,"\né€]{0,6}$/);
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

describe('CSV', () => {
  it('is cut into cells whatever the line ends are', () => {
    for (const ending of ['\n', '\r\n', '\r']) {
      expect(cut(`a,b${ending}1,"2,""x"""${ending}${ending}3,${ending}`)).toEqual([
        { cells: ['a', 'b'], line: 1 },
        { cells: ['1', '2,"x"'], line: 2 },
        { cells: ['3', ''], line: 4 },
      ]);
    }
  });

  it('counts the lines inside quoted cells, so that a place is where an editor shows it', () => {
    expect(cut('a\n"x\ny\nz"\nb\n')).toEqual([
      { cells: ['a'], line: 1 },
      { cells: ['x\ny\nz'], line: 2 },
      { cells: ['b'], line: 5 },
    ]);
  });

  it('needs no line end behind the last record and no byte order mark before the first', () => {
    expect(cut('﻿a,b\n"1",2')).toEqual([
      { cells: ['a', 'b'], line: 1 },
      { cells: ['1', '2'], line: 2 },
    ]);
  });

  it('returns what was written, however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 40 }),
        fc.constantFrom('\n', '\r\n'),
        (records, sizes, ending) => {
          const text = records.map((cells) => cells.map(quoted).join(',')).join(ending) + ending;
          expect(cut(text, sizes).map(({ cells }) => cells)).toEqual(records);
        },
      ),
    );
  });

  it('with a quote that is never closed is a fault at the record', () => {
    expect(() => cut('a,b\n1,"2\n3,4\n')).toThrow(
      'line 2, column 2: not CSV: the file ends inside a quoted cell',
    );
    expect(() => cut('a,b\n1,"2"3\n')).toThrow('line 2, column 2: not CSV: a quoted cell goes on');
  });

  it('with a record longer than one may be is refused before it fills the memory', () => {
    const lines = new CsvLines();
    lines.write(Buffer.from('a\n"'));
    expect(() => {
      for (let chunk = 0; chunk < 3; chunk += 1) lines.write(Buffer.alloc(600_000, 0x78));
    }).toThrow('line 2, column 1: not CSV: a record is longer than');
  });
});
