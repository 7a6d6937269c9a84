import { readFileSync } from 'node:fs';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { readBillingFile } from '../../../../adapters/billing/file.js';
import {
  decimalText,
  floatText,
  openParquetTable,
} from '../../../../adapters/billing/tables/parquetTable.js';
import type { RandomAccess } from '../../../../adapters/billing/tables/readTable.js';
import { readBill } from '../../../support/readBill.js';

/** 2026-09-01T07:00:00Z */
const AT_SEVEN = 1_788_246_000_000_000n;

const randomOf = (bytes: Buffer): RandomAccess => ({
  sizeBytes: bytes.length,
  read: async (from, to) => bytes.subarray(from, to),
});

const written = (
  columnData: Parameters<typeof parquetWriteBuffer>[0]['columnData'],
  rowGroupSize = 2,
): Buffer => Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize }));

async function recordsOf(bytes: Buffer, wanted?: ReadonlySet<string>) {
  const table = await openParquetTable(randomOf(bytes));
  const records: Record<string, string>[] = [];
  for await (const batch of table.records(wanted))
    records.push(...batch.map(({ record }) => Object.fromEntries(record)));
  return records;
}

const bill = (classes: string[]) =>
  written([
    { name: 'Date', data: classes.map(() => '2026-01-31'), type: 'STRING' },
    { name: 'model', data: classes.map(() => 'm'), type: 'STRING' },
    { name: 'token_class', data: classes, type: 'STRING' },
    { name: 'quantity', data: classes.map(() => 1_000), type: 'DOUBLE' },
    { name: 'amount_usd', data: classes.map((_one, at) => 0.1 * (at + 1)), type: 'DOUBLE' },
  ]);

async function read(bytes: Buffer) {
  async function* chunks() {
    yield bytes.subarray(0, 50);
    yield bytes.subarray(50);
  }
  const rows = [];
  const reader = readBillingFile(chunks(), {
    provider: 'mistral',
    format: undefined,
    fxRate: undefined,
    skip: new Set(),
    random: randomOf(bytes),
  });
  for (let next = await reader.next(); !next.done; next = await reader.next())
    rows.push(...next.value.map(({ row }) => row));
  return rows;
}

describe('a Parquet file', () => {
  it('has the cells of a CSV of the same export: exact numbers, times as texts, nothing for null', async () => {
    const bytes = written([
      { name: 'Cost', data: [0.1 + 0.2, null, 1e-10], type: 'DOUBLE', nullable: true },
      { name: 'Count', data: [9_007_199_254_740_993n, 1n, -5n], type: 'INT64' },
      { name: 'at', data: [new Date(0), new Date(1), new Date(2)], type: 'TIMESTAMP' },
      { name: 'text', data: [' a ', '', 'é'], type: 'STRING' },
      { name: 'map', data: [{ model: 'x' }, {}, { n: 1 }], type: 'JSON' },
      { name: 'yes', data: [true, false, true], type: 'BOOLEAN' },
    ]);
    expect(await recordsOf(bytes)).toEqual([
      {
        cost: '0.30000000000000004',
        count: '9007199254740993',
        at: '1970-01-01T00:00:00Z',
        text: 'a',
        map: '{"model":"x"}',
        yes: 'true',
      },
      { count: '1', at: '1970-01-01T00:00:00.001000Z', map: '{}', yes: 'false' },
      {
        cost: '1e-10',
        count: '-5',
        at: '1970-01-01T00:00:00.002000Z',
        text: 'é',
        map: '{"n":1}',
        yes: 'true',
      },
    ]);
    expect(await recordsOf(bytes, new Set(['count']))).toEqual([
      { count: '9007199254740993' },
      { count: '1' },
      { count: '-5' },
    ]);
  });

  it('has decimals to the last digit, however they are stored', async () => {
    const bytes = parquetWriteBuffer({
      columnData: [{ name: 'd', data: [123_456_789.12, -0.01] }],
      schema: [
        { name: 'root', num_children: 1 },
        {
          name: 'd',
          type: 'INT64',
          converted_type: 'DECIMAL',
          scale: 2,
          precision: 18,
          repetition_type: 'REQUIRED',
        },
      ],
    });
    expect(await recordsOf(Buffer.from(bytes))).toEqual([{ d: '123456789.12' }, { d: '-0.01' }]);
    expect(decimalText(-1n, 10)).toBe('-0.0000000001');
    expect(decimalText(Uint8Array.of(0xff, 0xfe), 1)).toBe('-0.2');
    expect(decimalText(Uint8Array.of(0x01, 0, 0, 0, 0, 0, 0, 0, 0), 3)).toBe('18446744073709551.616');
    expect(floatText(Math.fround(0.1))).toBe('0.1');
    expect(floatText(Math.fround(16_777_217.5))).toBe('16777218');
  });

  it('is read as the bill of its columns', async () => {
    const rows = await read(bill(['input', 'output', 'input']));
    expect(rows.map(({ tokenClass, amountPico }) => [tokenClass, amountPico])).toEqual([
      ['input', 100_000_000_000n],
      ['output', 200_000_000_000n],
      ['input', 300_000_000_000n],
    ]);
  });

  it('names row group, row and column of a cell at fault', async () => {
    await expect(read(bill(['input', 'output', 'inputs']))).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringMatching(/^row group 2, row 1, column token_class: token_class must be one of/),
    });
  });

  it('that is cut anywhere is refused with its place', async () => {
    const whole = bill(['input', 'output', 'input']);
    for (const size of [11, 60, Math.floor(whole.length / 2), whole.length - 1])
      await expect(read(whole.subarray(0, size))).rejects.toMatchObject({
        code: 'invalid_billing_file',
        message: expect.stringMatching(new RegExp(`^byte ${size}: the Parquet file is cut or damaged`)),
      });
  });

  it('whose pages are damaged never yields anything but a fault or rows', async () => {
    const whole = bill(['input', 'output', 'input']);
    for (let at = 4; at < whole.length; at += 7) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] as number) ^ 0x5a;
      await read(bytes).catch((error: unknown) =>
        expect(error).toMatchObject({ code: 'invalid_billing_file' }),
      );
    }
  });
});

describe('a Parquet file that another program wrote', () => {
  it.each(['cur2-int96-snappy', 'cur2-decimal128-zstd', 'cur2-decimal64-gzip', 'cur2-struct-delta-v2'])(
    '%s: the same charges, however times, numbers and maps are stored and packed',
    async (name) => {
      const bytes = readFileSync(new URL(`../../../fixtures/bills/${name}.parquet`, import.meta.url));
      const { rows, summary } = await readBill(bytes, { provider: 'aws_bedrock', random: randomOf(bytes) });
      expect(summary.format).toBe('aws_cur2');
      expect(
        rows.map(({ chargeCategory, periodStartMicros, model, quantity, amountPico }) => [
          chargeCategory,
          periodStartMicros,
          model,
          quantity,
          amountPico,
        ]),
      ).toEqual([
        ['usage', AT_SEVEN, 'us.amazon.nova-2-lite-v1:0', 1_500n * 10n ** 12n, 100_000_000_000n],
        ['tax', AT_SEVEN, null, null, 200_000_000_000n],
        ['usage', AT_SEVEN, 'us.anthropic.claude-sonnet-4-6', 2_000_000n * 10n ** 12n, 100_000n],
      ]);
    },
  );
});
