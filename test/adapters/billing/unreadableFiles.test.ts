import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Provider } from '../../../domain/providers.js';
import { readBill } from '../../support/readBill.js';

const HEADER = 'date,model,token_class,quantity,amount_usd';
const LINE = '2026-01-01,gpt-6-sol,input,10,1';
const BILL = `${HEADER}\n${LINE}\n`;
const withAmount = (text: string) => `${HEADER}\n2026-01-01,gpt-6-sol,input,10,${text}\n`;
const withQuantity = (text: string) => `${HEADER}\n2026-01-01,gpt-6-sol,input,${text},1\n`;

const read = (content: Buffer | string) => readBill(content, { provider: 'openai' });

const refused = (content: Buffer | string) =>
  expect(
    readBill(content, {
      provider: 'openai',
      random: {
        sizeBytes: Buffer.from(content).length,
        read: async (from, to) => Buffer.from(content).subarray(from, to),
      },
    }),
  ).rejects;

const beginningWith = (...bytes: number[]) => Buffer.concat([Buffer.from(bytes), Buffer.alloc(600, 7)]);

describe('a file that is no bill is refused with its format and what to upload instead', () => {
  it.each<[string, Buffer | string, string]>([
    ['a ZIP archive', beginningWith(0x50, 0x4b, 3, 4), 'byte 1: this is a ZIP archive or an Excel workbook'],
    ['an old workbook', beginningWith(0xd0, 0xcf, 0x11, 0xe0), 'byte 1: this is an Excel workbook'],
    ['Zstandard', beginningWith(0x28, 0xb5, 0x2f, 0xfd), 'byte 1: this is packed with Zstandard'],
    ['bzip2', beginningWith(0x42, 0x5a, 0x68), 'byte 1: this is packed with bzip2'],
    ['xz', beginningWith(0xfd, 0x37, 0x7a, 0x58, 0x5a), 'byte 1: this is packed with xz'],
    ['a bill that is packed twice', gzipSync(gzipSync(BILL)), 'byte 1: this is packed with gzip twice'],
    [
      'a packed Parquet file',
      gzipSync('PAR1....PAR1'),
      'byte 1: this is a Parquet file that is packed with gzip',
    ],
    [
      'a tar archive',
      Buffer.concat([Buffer.from('bill.csv'.padEnd(257, '0')), Buffer.from('ustar')]),
      'byte 1: this is a tar archive',
    ],
    ['a PDF', '%PDF-1.7\n', 'byte 1: this is a PDF'],
    ['a web page', '\ufeff<!DOCTYPE html><html></html>', 'byte 1: this is a web page or an XML document'],
    ['an error in XML', '<?xml version="1.0"?><Error/>', 'byte 1: this is a web page or an XML document'],
    ['what has zero bytes', Buffer.from([9, 7, 0, 0, 5, 0, 0]), 'byte 1: this is no text'],
    ['brotli', brotliCompressSync(BILL.repeat(9)), 'the text is not UTF-8; save it as UTF-8'],
    [
      'UTF-16',
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(BILL, 'utf16le')]),
      'byte 1: the text is UTF-16; save it as UTF-8',
    ],
    [
      'UTF-16 without a mark',
      Buffer.from(BILL, 'utf16le').swap16(),
      'byte 1: the text is UTF-16; save it as UTF-8',
    ],
    ['a Parquet file that is cut', 'PAR1', 'byte 4: the Parquet file is cut or damaged (too short)'],
    ['semicolons', BILL.replaceAll(',', ';'), 'line 1, column 1: the cells are separated by semicolons'],
    ['tabs', BILL.replaceAll(',', '\t'), 'line 1, column 1: the cells are separated by tabs'],
    ['bars', BILL.replaceAll(',', '|'), 'line 1, column 1: the cells are separated by bars'],
    ['a named separator', `sep=,\n${BILL}`, 'line 1, column 1: the first line names a separator'],
    ['a header alone', HEADER, 'line 1, column 1: a plain CSV without a single charge'],
    ['nothing', '', 'the file is empty'],
    ['nothing that is packed', gzipSync(''), 'the file is empty'],
    ['empty lines', '\n\n \n', 'line 1, column 1: the file has no header line'],
    ['a JSON text', '"hello"', 'byte 1: this is a JSON text, which holds no charges'],
    ['a JSON number', ' 42\n', 'byte 1: this is a JSON number, which holds no charges'],
    ['JSON without a value', 'null', 'byte 1: this is a JSON null, which holds no charges'],
    ['a JSON true', 'true', 'byte 1: this is a JSON true, which holds no charges'],
    [
      'records without one field',
      '[{"date":"2026-01-31","model":"m","quantity":1,"amount_usd":1}]',
      'line 1, column 2: the field token_class is missing; a plain CSV has date, model, token_class',
    ],
    ['an error in JSON', '{"error":{"message":"no"}}', 'the page has no array "data"'],
  ])('%s', async (_name, content, told) => {
    await refused(content).toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringContaining(told),
    });
  });

  const PLAIN = 'records with the fields date, model, token_class, quantity, amount_usd';
  it.each<[Provider, string]>([
    [
      'azure_openai',
      `an answer of Azure's Cost Management query, an Azure cost details export, a FOCUS export or ${PLAIN}`,
    ],
    ['google', `a Google Cloud billing export, a FOCUS export or ${PLAIN}`],
    ['mistral', `a usage report of Mistral, a FOCUS export or ${PLAIN}`],
    ['cohere', `a FOCUS export or ${PLAIN}`],
  ])(
    'a JSON file that is no bill, uploaded as one of %s, is refused with the supported bills',
    async (provider, wanted) => {
      for (const content of ['{"error":{"code":"429"}}', '[{"name":"trueup","version":"1"}]', '{}', '[{}]'])
        await expect(readBill(content, { provider }), content).rejects.toMatchObject({
          code: 'invalid_billing_file',
          message: expect.stringMatching(/^line 1, column [12]: this JSON file is no bill that is read/),
        });
      await expect(readBill('{"error":{}}', { provider })).rejects.toThrow(
        `line 1, column 1: this JSON file is no bill that is read as one of ${provider}; give ${wanted}`,
      );
    },
  );

  it('a JSON file of a named format, with the fields that it misses', async () => {
    await expect(
      readBill('{"error":{}}', { provider: 'google', format: 'google_billing_export' }),
    ).rejects.toThrow(/^line 1, column 1: the fields .* are missing.*; a Google Cloud billing export has /);
  });

  it('nor is a text in another encoding read as other letters', async () => {
    const latin = Buffer.from(`${BILL}2026-01-02,sol-é,input,1,1\n`, 'latin1');
    await refused(latin).toThrow('line 3, column 1: the text is not UTF-8; save it as UTF-8');
    const own = `${BILL}2026-01-02,sol-\ufffd,input,1,1\n`;
    expect((await read(own)).rows[1]?.model).toBe('sol-\ufffd');
  });
});

describe('a line that cannot be meant so is refused with its place', () => {
  const decimal = 'line 2, column 5: amount_usd must be a decimal number';
  it.each<[name: string, told: string, content: string]>([
    ['an amount beyond every number', decimal, withAmount('1e400')],
    ['thousands with commas', decimal, withAmount('"1,234.56"')],
    ['a decimal comma', 'line 2, column 6: the line has 6 cells, the header has 5', withAmount('1,5')],
    ['a currency sign', decimal, withAmount('$5')],
    ['brackets for a negative amount', decimal, withAmount('(5.00)')],
    ['no number', decimal, withAmount('NaN')],
    ['an amount of billions', 'line 2, column 1: an amount is too large for', withAmount('1000000001')],
    ['a credit of billions', 'line 2, column 1: an amount is too large for', withAmount('-1e12')],
    ['too many tokens', 'line 2, column 1: the quantity is too large for a charge', withQuantity('1.1e14')],
    [
      'the year 9999',
      'line 2, column 1: the day 9999-12-31 is none',
      BILL.replace('2026-01-01', '9999-12-31'),
    ],
    [
      'the year 1970',
      'line 2, column 1: the day 1970-01-01 is none',
      BILL.replace('2026-01-01', '1970-01-01'),
    ],
    ['two files in one', 'line 3, column 1: date must be a day such as 2026-01-31, not "date"', BILL + BILL],
    [
      'a line without an end',
      'line 3, column 1: not CSV: a record is longer than',
      BILL + 'x'.repeat(1_100_000),
    ],
  ])('%s', async (_name, told, content) => {
    await refused(content).toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringContaining(told),
    });
  });

  it.each([
    ['1E-7', 100_000n],
    ['-0', 0n],
    ['-0.0', 0n],
    ['+5', 5_000_000_000_000n],
    ['.5', 500_000_000_000n],
    ['1e-400', 0n],
    ['0.0000000000005', 0n],
    ['0.0000000000015', 2n],
    ['1e9', 1_000_000_000_000_000_000_000n],
  ])('but an amount may be written %s', async (text, pico) => {
    expect((await read(withAmount(text))).rows[0]).toMatchObject({
      amountPico: pico,
      chargeCategory: 'usage',
    });
  });
});

describe('JSON lines of a table', () => {
  const record = {
    billing_account_id: '0123',
    service: { description: 'Vertex AI' },
    sku: { description: 'Gemini 2.5 Flash GA Text Input - Predictions' },
    usage_start_time: '2026-09-01 07:00:00 UTC',
    cost: 0.1,
    currency: 'USD',
    usage: { amount: 1_000, unit: 'count' },
    labels: [{ key: 'team', value: 'a' }],
    credits: [],
  };

  it.each([
    ['lines', `${JSON.stringify(record)}\n\n${JSON.stringify(record)}\n`],
    ['an array', JSON.stringify([record, record])],
    ['an array over many lines', JSON.stringify([record, record], null, 2)],
    ['objects over many lines', `${JSON.stringify(record, null, 2)}\n${JSON.stringify(record, null, 2)}`],
  ])('may come as %s', async (_name, text) => {
    const { rows, summary } = await readBill(text, { provider: 'google' });
    expect(summary.format).toBe('google_billing_export');
    expect(rows.map(({ amountPico, day }) => [amountPico, day])).toEqual([
      [100_000_000_000n, '2026-09-01'],
      [100_000_000_000n, '2026-09-01'],
    ]);
  });

  it('that hold something else than objects are refused with the place', async () => {
    const google = (text: string) => expect(readBill(text, { provider: 'google' })).rejects;
    await google(`[${JSON.stringify(record)},\n[5]]`).toThrow('line 2, column 1: an object is expected here');
    await google(`${JSON.stringify(record)}\n5`).toThrow('line 2, column 1: an object is expected here');
    await google(`[${JSON.stringify(record)}`).toThrow('the file ends in the middle');
  });
});

describe('a bill of a time that no bill is of is refused, in every format', () => {
  const json = JSON.stringify;
  const written = (day: string): readonly (readonly [provider: Provider, content: string])[] => {
    const record = { service: { description: 'Vertex AI' }, sku: { description: 'Gemini x' }, cost: 1 };
    const cur =
      'line_item_line_item_type,line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost';
    const group = { Keys: ['Usage'], Metrics: { UnblendedCost: { Amount: '1', Unit: 'USD' } } };
    const entry = {
      ...{ billing_metric: 'm', billing_group: 'input', event_type: 'api_tokens' },
      ...{ timestamp: day, value: 1, value_paid: 1 },
    };
    const price = { event_type: 'api_tokens', billing_metric: 'm', billing_group: 'input', price: '1' };
    const [year, month] = day.split('-').map(Number);
    return [
      ['google', json({ ...record, usage_start_time: `${day} 00:00:00 UTC` })],
      ['xai', json({ invoices: [{ createTime: day, lines: [{ description: 'grok-4', amount: '1' }] }] })],
      ['xai', json({ coreInvoice: { lines: [{ amount: '1' }] }, billingCycle: { year, month } })],
      [
        'aws_bedrock',
        json({
          GroupDefinitions: [{ Key: 'RECORD_TYPE' }],
          ResultsByTime: [{ TimePeriod: { Start: day, End: nextDay(day) }, Groups: [group] }],
        }),
      ],
      ['aws_bedrock', `${cur}\nUsage,${day}T23:00:00Z,AmazonBedrock,x,1,1\n`],
      ['aws_bedrock', `${cur}\nUsage,${day}T23:00:00Z,AmazonEC2,x,1,1\n`],
      [
        'azure_openai',
        json({
          properties: {
            columns: [{ name: 'Cost' }, { name: 'UsageDate' }, { name: 'Meter' }],
            rows: [[1, day.replaceAll('-', ''), 'x']],
          },
        }),
      ],
      [
        'azure_openai',
        `date,meterCategory,meterName,quantity,costInBillingCurrency\n${day},Cognitive Services,x,1,1\n`,
      ],
      [
        'google',
        `BilledCost,BillingAccountId,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargeDescription,ServiceName,ProviderName\n1,a,USD,Usage,${day}T00:00:00Z,x,Vertex AI,Google\n`,
      ],
      ['mistral', json({ completion: { a: [entry] }, prices: [price], currency: 'USD' })],
      [
        'anthropic',
        json({
          data: [
            {
              ...{ starting_at: `${day}T00:00:00Z`, ending_at: `${day}T23:00:00Z` },
              results: [{ amount: '1', cost_type: 'tokens', currency: 'USD', description: 'x' }],
            },
          ],
        }),
      ],
      ['mistral', BILL.replace('2026-01-01', day)],
    ];
  };
  const nextDay = (day: string) => `${day.slice(0, 8)}${String(Number(day.slice(8)) + 1).padStart(2, '0')}`;

  it.each([
    '0001-01-01',
    '0000-12-30',
    '1899-12-30',
    '1999-12-30',
    '9999-12-30',
    '10000-01-01',
    '20260-09-01',
  ])('%s', async (day) => {
    for (const [provider, content] of written(day))
      await expect(readBill(content, { provider }), content).rejects.toMatchObject({
        code: 'invalid_billing_file',
      });
  });

  it('and the same bills of our days are read', async () => {
    for (const [provider, content] of written('2026-09-01'))
      expect((await readBill(content, { provider })).summary.covered.length, content).toBeGreaterThan(0);
  });

  it('nor may a bucket cover more than a month', async () => {
    const bucket = (start: number, end: number) =>
      `{"data":[{"start_time":${start},"end_time":${end},"results":[{"object":"organization.costs.result","amount":{"value":1},"line_item":"x"}]}]}`;
    await refused(bucket(1_730_419_200, 9_730_505_600)).toThrow(
      'the bucket is longer than a month; ask for buckets of a day',
    );
  });
});
