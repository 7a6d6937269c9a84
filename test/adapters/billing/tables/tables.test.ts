import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type BillingFileOptions, readBillingFile } from '../../../../adapters/billing/file.js';
import { openJsonLines } from '../../../../adapters/billing/tables/jsonLinesTable.js';

const OPTIONS: BillingFileOptions = {
  provider: 'mistral',
  format: undefined,
  fxRate: undefined,
  skip: new Set(),
};
const CSV = 'date,model,token_class,quantity,amount_usd\n2026-01-31,mistral-large,input,1000,0.5\n';

async function* bytesOf(content: Buffer | string, size = 7): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(content: Buffer | string, size?: number) {
  const rows = [];
  const reader = readBillingFile(bytesOf(content, size), OPTIONS);
  for (let next = await reader.next(); ; next = await reader.next()) {
    if (next.done) return { rows, summary: next.value };
    rows.push(...next.value.map(({ row }) => row));
  }
}

describe('a packed file', () => {
  it('is read as what it holds', async () => {
    const plain = await read(CSV, 1_000);
    expect((await read(gzipSync(CSV), 1_000)).rows).toEqual(plain.rows);
  });

  it('that is cut is refused with its place', async () => {
    await expect(read(gzipSync(CSV.repeat(1)).subarray(0, -6), 1_000)).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringMatching(/^byte \d+ of the unpacked file: the gzip data is cut or damaged/),
    });
  });
});

describe('JSON lines', () => {
  it('are records like those of a CSV', async () => {
    const lines =
      '{"date":"2026-01-31","model":"m","token_class":"input","quantity":1000,"amount_usd":0.5}\n{"date":"2026-02-01","model":"m","token_class":"output","quantity":null,"amount_usd":"1.25"}';
    const { rows, summary } = await read(lines, 100_000);
    expect(summary.format).toBe('plain_csv');
    expect(rows.map(({ day, amountPico }) => [day, amountPico])).toEqual([
      ['2026-01-31', 500_000_000_000n],
      ['2026-02-01', 1_250_000_000_000n],
    ]);
  });

  it('have dotted paths for nested fields, JSON for arrays and numbers as they were written', async () => {
    const table = await openJsonLines(
      bytesOf('{"A":{"B":1.50,"C":null},"D":[{"e":12345678901234567890.1}],"f":"","g":true}\n'),
    );
    for await (const [one] of table.records(undefined))
      expect(Object.fromEntries(one?.record ?? [])).toEqual({
        'a.b': '1.50',
        d: '[{"e":12345678901234567890.1}]',
        g: 'true',
      });
  });

  it('name the line of a record at fault', async () => {
    const good = '{"date":"2026-01-31","model":"m","token_class":"input","quantity":1,"amount_usd":1}';
    await expect(read(`${good}\n${good.replace('input', 'inputs')}\n`, 100_000)).rejects.toThrow(
      'line 2, column 1: token_class must be one of',
    );
  });
});

describe('a header', () => {
  it('of an unknown format is refused with the nearest format and its missing columns', async () => {
    await expect(read('Date,Model,quantity\n1,2,3\n')).rejects.toThrow(
      'line 1, column 1: the columns token_class, amount_usd are missing; a plain CSV has date, model',
    );
  });

  it('may not name a column twice that is read; tags of a bill may differ by case alone', async () => {
    const twice = (name: string, other: string) =>
      read(
        CSV.split('\n')
          .map((line, at) => (line === '' ? line : `${line},${at === 0 ? `${name},${other}` : 'a,b'}`))
          .join('\n'),
      );
    await expect(twice('note', 'Model')).rejects.toThrow('column 7: the column model stands twice');
    expect((await twice('tag/Name', 'tag/name')).rows).toEqual((await read(CSV)).rows);
  });
});
