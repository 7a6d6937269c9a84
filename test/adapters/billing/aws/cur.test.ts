import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { type BillingFileOptions, readBillingFile } from '../../../../adapters/billing/file.js';
import type { BilledRow } from '../../../../domain/billing/billedRow.js';

const OPTIONS: BillingFileOptions = {
  provider: 'aws_bedrock',
  format: undefined,
  fxRate: undefined,
  skip: new Set(),
};

async function read(content: Buffer | string, options: Partial<BillingFileOptions> = {}) {
  const bytes = Buffer.from(content);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += 4_096) yield bytes.subarray(at, at + 4_096);
  }
  const random = {
    sizeBytes: bytes.length,
    read: async (from: number, to: number) => bytes.subarray(from, to),
  };
  const rows: BilledRow[] = [];
  const reader = readBillingFile(chunks(), { ...OPTIONS, random, ...options });
  for (let next = await reader.next(); ; next = await reader.next()) {
    if (next.done) return { rows, summary: next.value };
    rows.push(...next.value.map(({ row }) => row));
  }
}

const LINE: Record<string, string> = {
  bill_invoice_id: '2026-INV-1',
  bill_payer_account_id: '111122223333',
  line_item_usage_account_id: '444455556666',
  line_item_line_item_type: 'Usage',
  line_item_usage_start_date: '2026-09-01T07:00:00Z',
  line_item_usage_end_date: '2026-09-01T08:00:00Z',
  line_item_product_code: 'AmazonBedrock',
  line_item_usage_type: 'USE1-Nova2.0Lite-input-tokens',
  line_item_line_item_description: '$0.00033 per 1K input tokens',
  line_item_usage_amount: '37411.2',
  line_item_currency_code: 'USD',
  line_item_unblended_cost: '12.3456960000',
  line_item_net_unblended_cost: '11.1',
  pricing_public_on_demand_cost: '12.345696',
  pricing_unit: '1K tokens',
  product: '{"product_name":"Amazon Bedrock","region":"us-east-1"}',
};
const COLUMNS = Object.keys(LINE);

const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const csv = (lines: readonly Record<string, string>[], columns: readonly string[] = COLUMNS) =>
  [
    columns.join(','),
    ...lines.map((line) => columns.map((column) => quoted(line[column] ?? '')).join(',')),
  ].join('\n');
const line = (over: Record<string, string>) => ({ ...LINE, ...over });

describe('a CUR 2.0', () => {
  it('line of usage contains model, class, tokens, account and the money in all its stages', async () => {
    const { rows, summary } = await read(csv([LINE]));
    expect(summary).toMatchObject({ format: 'aws_cur2', leftOut: [], unconverted: [], unparsed: [] });
    expect(rows).toEqual([
      {
        feed: 'cost',
        report: '',
        account: '111122223333',
        day: '2026-09-01',
        periodStartMicros: 1_788_246_000_000_000n,
        periodEndMicros: 1_788_249_600_000_000n,
        chargeCategory: 'usage',
        lineItem: 'USE1-Nova2.0Lite-input-tokens',
        observable: true,
        model: 'us.amazon.nova-2-lite-v1:0',
        tokenClass: 'input',
        serviceTier: 'standard',
        isBatch: false,
        longContext: false,
        region: null,
        project: '444455556666',
        apiKey: null,
        quantity: 37_411_200n * 10n ** 12n,
        quantityUnit: 'tokens',
        amountPico: 12_345_696_000_000n,
        listPico: 12_345_696_000_000n,
        contractedPico: null,
        netPico: 11_100_000_000_000n,
        currency: 'USD',
        originalAmount: 12_345_696_000_000n,
        isFinal: true,
      },
    ]);
  });

  it.each([
    ['Usage', '1', 'usage'],
    ['DiscountedUsage', '1', 'usage'],
    ['Usage', '-1', 'adjustment'],
    ['Tax', '1', 'tax'],
    ['Credit', '-1', 'credit'],
    ['Refund', '-1', 'refund'],
    ['Fee', '1', 'purchase'],
    ['EdpDiscount', '-1', 'adjustment'],
    ['SomethingNew', '1', 'adjustment'],
  ])('line of type %s with an amount of %s is %s', async (type, cost, category) => {
    const { rows } = await read(
      csv([line({ line_item_line_item_type: type, line_item_unblended_cost: cost })]),
    );
    expect(rows[0]).toMatchObject({ chargeCategory: category });
    if (category === 'tax') expect(rows[0]).toMatchObject({ model: null, quantity: null });
  });

  it('counts the unit on the bill, whatever the usage type usually has', async () => {
    const model = { product: '{"product_name":"Claude Sonnet 4.6 (Amazon Bedrock Edition)"}' };
    const usage = {
      ...model,
      line_item_product_code: '8ayjd0',
      line_item_usage_type: 'USE1-MP:USE1_InputTokenCount-Units',
      line_item_usage_amount: '2',
    };
    const { rows } = await read(
      csv([
        line({ ...usage, pricing_unit: 'Units' }),
        line({ ...usage, pricing_unit: '1K tokens' }),
        line({ ...usage, pricing_unit: '' }),
      ]),
    );
    expect(rows.map(({ model: id, quantity }) => [id, (quantity ?? 0n) / 10n ** 12n])).toEqual([
      ['us.anthropic.claude-sonnet-4-6', 2_000_000n],
      ['us.anthropic.claude-sonnet-4-6', 2_000n],
      ['us.anthropic.claude-sonnet-4-6', 2_000_000n],
    ]);
  });

  it('prefers the attributes of the product to the usage type', async () => {
    const product =
      '{"product_name":"Amazon Bedrock","model":"Claude Sonnet 5","inferenceType":"Prompt cache read input tokens","feature":"On-demand Inference"}';
    const { rows } = await read(csv([line({ product, line_item_usage_type: 'USE1-Opaque-thing' })]));
    expect(rows[0]).toMatchObject({ model: 'us.anthropic.claude-sonnet-5', tokenClass: 'cache_read' });
  });

  it('keeps an unknown usage type as other, with its dollars', async () => {
    const { rows, summary } = await read(csv([line({ line_item_usage_type: 'USE1-Mystery' })]));
    expect(rows[0]).toMatchObject({
      model: null,
      tokenClass: 'other',
      quantity: 37_411_200_000_000_000n,
      quantityUnit: '1K tokens',
    });
    expect(summary.unparsed).toEqual([{ label: 'USE1-Mystery', rows: 1, amountPico: 12_345_696_000_000n }]);
  });

  it('leaves other services out and lists what they sum to, by category and currency', async () => {
    const other = { line_item_product_code: 'AmazonEC2', line_item_usage_type: 'BoxUsage', product: '' };
    const { rows, summary } = await read(
      csv([
        LINE,
        line({ ...other, line_item_unblended_cost: '0.1' }),
        line({
          ...other,
          line_item_unblended_cost: '0.2',
          line_item_usage_start_date: '2026-09-03T00:00:00Z',
        }),
        line({ ...other, line_item_line_item_type: 'Tax', line_item_currency_code: 'EUR' }),
      ]),
    );
    expect(rows).toHaveLength(1);
    expect(summary.leftOut).toEqual([
      { chargeCategory: 'tax', currency: 'EUR', rows: 1, amount: 12_345_696_000_000n },
      { chargeCategory: 'usage', currency: 'USD', rows: 2, amount: 300_000_000_000n },
    ]);
    expect(summary.covered.map(({ day }) => day).sort()).toEqual(['2026-09-01', '2026-09-03']);
  });

  it('in a currency without a rate is kept in it, and converted by a rate from the request', async () => {
    const euros = csv([line({ line_item_currency_code: 'EUR' })]);
    const { rows, summary } = await read(euros);
    expect(rows[0]).toMatchObject({
      amountPico: null,
      listPico: null,
      currency: 'EUR',
      originalAmount: 12_345_696_000_000n,
    });
    expect(summary.unconverted).toEqual([{ currency: 'EUR', rows: 1, amount: 12_345_696_000_000n }]);
    const converted = await read(euros, { fxRate: { scaled: 1_100_000_000_000n } });
    expect(converted.rows[0]).toMatchObject({ amountPico: 13_580_265_600_000n });
  });

  it('needs no column beyond those for time, product, usage and cost', async () => {
    const columns = COLUMNS.filter(
      (column) =>
        /usage_start|line_item_type|product_code|usage_type|usage_amount|unblended_cost$/.test(column) &&
        !/net/.test(column),
    );
    const { rows } = await read(csv([LINE], columns));
    expect(rows[0]).toMatchObject({
      account: null,
      currency: 'USD',
      isFinal: false,
      amountPico: 12_345_696_000_000n,
    });
    await expect(
      read(
        csv(
          [LINE],
          columns.filter((column) => column !== 'line_item_usage_type'),
        ),
      ),
    ).rejects.toThrow(
      'line 1, column 1: the column line_item_usage_type is missing; an AWS Cost and Usage Report (CUR 2.0) has',
    );
  });

  it('is the same as CSV with a byte order mark, packed, and as Parquet', async () => {
    const lines = [
      LINE,
      line({
        line_item_usage_type: 'USE1-NovaPro-output-tokens',
        line_item_line_item_description: 'a "b",\nc',
      }),
      line({ line_item_line_item_type: 'Tax' }),
    ];
    const { rows } = await read(csv(lines));
    expect((await read(`\ufeff${csv(lines)}\r\n`)).rows).toEqual(rows);
    expect((await read(gzipSync(csv(lines)))).rows).toEqual(rows);
    const numbers = new Set([
      'line_item_usage_amount',
      'line_item_unblended_cost',
      'line_item_net_unblended_cost',
      'pricing_public_on_demand_cost',
    ]);
    const times = new Set(['line_item_usage_start_date', 'line_item_usage_end_date']);
    const parquet = parquetWriteBuffer({
      rowGroupSize: 2,
      columnData: COLUMNS.map((name) => {
        const texts = lines.map((one) => one[name] ?? '');
        if (numbers.has(name)) return { name, data: texts.map(Number), type: 'DOUBLE' as const };
        if (times.has(name))
          return { name, data: texts.map((text) => new Date(text)), type: 'TIMESTAMP' as const };
        if (name === 'product')
          return { name, data: texts.map((text) => JSON.parse(text)), type: 'JSON' as const };
        return { name, data: texts, type: 'STRING' as const };
      }),
    });
    expect((await read(Buffer.from(parquet))).rows).toEqual(rows);
  });

  it('that a database has rewritten has its times in that database’s format', async () => {
    for (const start of [
      '2026-09-01 07:00:00',
      '2026-09-01 07:00:00.000',
      '2026-09-01 07:00:00+00',
      '2026-09-01 07:00:00 UTC',
    ]) {
      const { rows } = await read(csv([line({ line_item_usage_start_date: start })]));
      expect(rows[0]?.periodStartMicros).toBe(1_788_246_000_000_000n);
    }
    const product = '{product_name=Claude Sonnet 4.6 (Amazon Bedrock Edition), region=us-east-1}';
    const usage = {
      line_item_usage_type: 'USE1-MP:USE1_OutputTokenCount-Units',
      line_item_product_code: 'x8k2',
    };
    const { rows } = await read(csv([line({ ...usage, product })]));
    expect(rows[0]).toMatchObject({ model: 'us.anthropic.claude-sonnet-4-6', tokenClass: 'output' });
  });

  it('that is cut is refused with its place', async () => {
    const whole = csv([LINE, LINE]);
    await expect(
      read(whole.slice(0, whole.indexOf('Nova2.0', whole.indexOf('Nova2.0') + 8))),
    ).rejects.toThrow(/^line 3, column 9: the line has 8 cells/);
    await expect(read(csv([line({ line_item_unblended_cost: '12.3x' })]))).rejects.toThrow(
      'line 2, column 12: line_item_unblended_cost must be a decimal number',
    );
    await expect(read(csv([line({ line_item_usage_start_date: 'soon' })]))).rejects.toThrow(
      'line 2, column 5: line_item_usage_start_date must be a time',
    );
  });

  it('that has a line twice is refused with its place; lines that only look alike all count', async () => {
    const one = line({ identity_line_item_id: 'a1', identity_time_interval: '2026-09-01T07/2026-09-01T08' });
    const columns = Object.keys(one);
    const other = { ...one, identity_line_item_id: 'a2' };
    expect((await read(csv([one, other, LINE, LINE], columns))).rows).toHaveLength(4);
    await expect(read(csv([one, other, one], columns))).rejects.toThrow(
      'line 4, column 1: the same charge occurs twice; give each part of a bill once',
    );
    // An hour of another period has the id again.
    const later = { ...one, line_item_usage_start_date: '2026-10-01T07:00:00Z' };
    expect((await read(csv([one, later], columns))).rows).toHaveLength(2);
  });

  it('has tags in columns whose names differ by case alone, and in JSON with quotes and line ends', async () => {
    const tagged = {
      resource_tags_user_Name: 'a',
      resource_tags_user_name: 'b',
      resource_tags: '{"user_team":"a, \\"b\\"\nc"}',
    };
    const { rows } = await read(csv([line(tagged)], [...COLUMNS, ...Object.keys(tagged)]));
    expect(rows).toEqual((await read(csv([LINE]))).rows);
  });

  it('uploaded as another provider’s bill is refused', async () => {
    await expect(read(csv([LINE]), { provider: 'openai' })).rejects.toThrow(
      'a bill of aws_bedrock, but the file was given as openai’s'.replace('’', "'"),
    );
  });
});

describe('a legacy CUR', () => {
  const header =
    'bill/PayerAccountId,lineItem/UsageAccountId,lineItem/LineItemType,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/UsageType,lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,product/ProductName,product/model,product/inferenceType,pricing/unit';

  it('yields the same rows as a CUR 2.0', async () => {
    const { rows, summary } = await read(
      `${header}\n1,2,Usage,2023-11-04T23:00:00.000Z,2023-11-05T00:00:00.000Z,AmazonBedrock,USE1-Claude3Haiku-input-tokens,4.0,USD,1.0E-3,Amazon Bedrock,Claude 3 Haiku,Input tokens,1K tokens\n`,
    );
    expect(summary.format).toBe('aws_cur_legacy');
    expect(rows[0]).toMatchObject({
      account: '1',
      project: '2',
      day: '2023-11-04',
      model: 'anthropic.claude-3-haiku-20240307-v1:0',
      tokenClass: 'input',
      quantity: 4_000n * 10n ** 12n,
      amountPico: 1_000_000_000n,
      isFinal: false,
    });
  });
});
