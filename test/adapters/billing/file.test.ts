import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BillingFileOptions,
  type BillingFileSummary,
  readBillingFile,
  type TaggedRow,
} from '../../../adapters/billing/file.js';
import { decimalFromPico } from '../../../domain/money.js';

const OPTIONS: BillingFileOptions = {
  provider: 'openai',
  format: undefined,
  fxRate: undefined,
  skip: new Set(),
};

async function read(
  text: string | Buffer,
  overrides: Partial<BillingFileOptions> = {},
  chunkBytes = 7,
): Promise<{ rows: TaggedRow[]; summary: BillingFileSummary }> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  }
  const reader = readBillingFile(chunks(), { ...OPTIONS, ...overrides });
  const rows: TaggedRow[] = [];
  for (;;) {
    const next = await reader.next();
    if (next.done) return { rows, summary: next.value };
    rows.push(...next.value);
  }
}

const costs = (value: string, extra = '', start = 1730419200) =>
  `{"object":"page","data":[{"object":"bucket","start_time":${start},"end_time":${start + 86400},"results":[
  {"object":"organization.costs.result","amount":{"value":${value},"currency":"usd"},"line_item":"gpt-5.5-2026-04-23, cached input",
   "project_id":"proj_abc","api_key_id":"key_abc","quantity":10000,"quantity_unit":"tokens"}${extra}]}],"has_more":false,"next_page":null}`;

describe('OpenAI cost pages', () => {
  it('yield each result as a row with its amount to the last digit', async () => {
    const { rows, summary } = await read(costs('0.06'));
    expect(rows).toHaveLength(1);
    expect(rows[0]?.row).toMatchObject({
      feed: 'cost',
      day: '2024-11-01',
      model: 'gpt-5.5-2026-04-23',
      tokenClass: 'cache_read',
      project: 'proj_abc',
      apiKey: 'key_abc',
      amountPico: 60_000_000_000n,
      quantity: 10_000n * 10n ** 12n,
      quantityUnit: 'tokens',
      chargeCategory: 'usage',
    });
    expect(summary.format).toBe('openai_pages');
    expect(summary.covered).toEqual([{ day: '2024-11-01', feed: 'cost', report: '', account: null }]);
  });

  it.each([
    ['1e-7', '0.0000001'],
    ['"0.0408070500000000"', '0.04080705'],
    ['0.30000000000000004', '0.3'],
    ['123456789.123456789012', '123456789.123456789012'],
    ['-3.25', '-3.25'],
  ])('read the amount %s exactly', async (written, decimal) => {
    const { rows } = await read(costs(written));
    expect(decimalFromPico(rows[0]?.row.amountPico ?? 0n)).toBe(decimal);
  });

  it('turn thousands of tokens into tokens and keep other units beside the class', async () => {
    const thousand = await read(costs('1').replace('"tokens"', '"1000_tokens"').replace('10000', '10.5'));
    expect(thousand.rows[0]?.row).toMatchObject({ quantity: 10_500n * 10n ** 12n, quantityUnit: 'tokens' });
    const images = await read(costs('1').replace('"tokens"', '"images"'));
    expect(images.rows[0]?.row).toMatchObject({ tokenClass: 'other', quantityUnit: 'images' });
  });

  it('put a negative amount on a line of usage apart from usage', async () => {
    const { rows } = await read(costs('-3.25'));
    expect(rows[0]?.row.chargeCategory).toBe('adjustment');
  });

  it('take the account from the content where it is named', async () => {
    const { rows, summary } = await read(
      costs('1').replace('"project_id"', '"organization_id":"org-7","project_id"'),
    );
    expect(rows[0]?.row.account).toBe('org-7');
    expect(summary.covered[0]?.account).toBe('org-7');
  });

  it('list an unknown label, with its sum', async () => {
    const odd =
      ',{"object":"organization.costs.result","amount":{"value":2.5,"currency":"usd"},"line_item":"Quantum flux"}';
    const { rows, summary } = await read(costs('1', odd + odd));
    expect(rows[1]?.row).toMatchObject({
      model: null,
      tokenClass: 'other',
      chargeCategory: 'usage',
      lineItem: 'Quantum flux',
    });
    expect(summary.unparsed).toEqual([{ label: 'Quantum flux', rows: 2, amountPico: 5_000_000_000_000n }]);
  });

  it('cover a day that bills nothing', async () => {
    const empty = '{"object":"bucket","start_time":1730505600,"end_time":1730592000,"results":[]},';
    const { summary } = await read(costs('1').replace('"data":[', `"data":[${empty}`));
    expect(summary.covered.map((day) => day.day).sort()).toEqual(['2024-11-01', '2024-11-02']);
  });

  it('come as one page, as an array of pages, one after the other, or as lines', async () => {
    const [first, second] = [costs('1'), costs('2', '', 1730505600)];
    for (const text of [
      `[${first},${second}]`,
      `${first}${second}`,
      `${first}\n${second}\n`,
      `\ufeff ${first} ${second}`,
    ]) {
      const { rows } = await read(text);
      expect(rows.map(({ row }) => row.amountPico)).toEqual([10n ** 12n, 2n * 10n ** 12n]);
    }
  });

  it('are read the same however the bytes are cut', async () => {
    const text = `[${costs('0.1')},${costs('0.2', '', 1730505600)}]`;
    const whole = await read(text, {}, 1_000_000);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 400 }), async (size) => {
        expect(await read(text, {}, size)).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  it('use the later of two copies of a day, and a second reading leaves the earlier out', async () => {
    const text = `${costs('1')}${costs('2')}`;
    const first = await read(text);
    expect([...first.summary.superseded]).toEqual([1]);
    const second = await read(text, { skip: first.summary.superseded });
    expect(second.rows.map(({ row }) => row.amountPico)).toEqual([2n * 10n ** 12n]);
  });

  it('may name a bucket’s times after its results', async () => {
    const text =
      '{"data":[{"results":[{"object":"organization.costs.result","amount":{"value":1,"currency":"usd"},"line_item":"gpt-4o, input"}],"end_time":1730505600,"start_time":1730419200}]}';
    const { rows } = await read(text);
    expect(rows[0]?.row.day).toBe('2024-11-01');
  });

  it('in another currency are converted by the rate of the request, and kept in it without one', async () => {
    const euro = costs('2').replace('"usd"', '"eur"');
    const kept = await read(euro);
    expect(kept.rows[0]?.row).toMatchObject({ amountPico: null, currency: 'EUR' });
    expect(kept.summary.unconverted).toEqual([{ currency: 'EUR', rows: 1, amount: 2n * 10n ** 12n }]);
    const { rows } = await read(euro, { fxRate: { scaled: 1_080_000_000_000n } });
    expect(rows[0]?.row).toMatchObject({
      amountPico: 2_160_000_000_000n,
      currency: 'EUR',
      originalAmount: 2n * 10n ** 12n,
    });
    await expect(read(costs('2').replace('"usd"', '"euros"'))).rejects.toThrow(
      'amount.currency must be three letters such as EUR',
    );
  });
});

describe('OpenAI usage pages', () => {
  const usage = (fields: string) =>
    `{"object":"page","data":[{"object":"bucket","start_time":1730419200,"end_time":1730422800,"results":[{"object":"organization.usage.completions.result",${fields}}]}]}`;

  it('yield disjoint classes from inclusive input', async () => {
    const { rows } = await read(
      usage(
        '"input_tokens":5000,"input_cached_tokens":1800,"input_cache_write_tokens":200,"input_uncached_tokens":3000,"output_tokens":1000,"input_audio_tokens":300,"output_audio_tokens":100,"num_model_requests":5,"project_id":"p","model":"gpt-4o-mini-2024-07-18","batch":true,"service_tier":"default"',
      ),
    );
    const byClass = Object.fromEntries(
      rows.map(({ row }) => [row.tokenClass, (row.quantity ?? 0n) / 10n ** 12n]),
    );
    expect(byClass).toEqual({
      input: 2700n,
      cache_read: 1800n,
      cache_write_5m: 200n,
      output: 900n,
      input_audio: 300n,
      output_audio: 100n,
      requests: 5n,
    });
    expect(rows[0]?.row).toMatchObject({
      feed: 'usage',
      report: 'completions',
      isBatch: true,
      serviceTier: 'standard',
      amountPico: null,
    });
  });

  it('whose parts exceed the whole are refused with their place', async () => {
    await expect(read(usage('"input_tokens":100,"input_cached_tokens":200'))).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringMatching(/^line 1, column \d+: the token counts do not add up/),
    });
  });

  it('keep every digit of a count, more than a double has', async () => {
    const { rows } = await read(usage('"input_tokens":90071992547409.931234,"model":"m"'));
    expect(rows[0]?.row.quantity).toBe(90_071_992_547_409_931_234n * 10n ** 6n);
  });
});

describe('Anthropic pages', () => {
  const anthropic = { provider: 'anthropic' as const };
  const page = (result: string) =>
    `{"data":[{"starting_at":"2025-08-01T00:00:00Z","ending_at":"2025-08-02T00:00:00Z","results":[${result}]}],"has_more":true,"next_page":"page_x"}`;

  it('convert amounts in cents to dollars', async () => {
    const { rows } = await read(
      page(
        '{"amount":"123.78912","currency":"USD","cost_type":"tokens","description":"Claude Opus 5 Usage - Input Tokens","model":"claude-opus-5","token_type":"uncached_input_tokens","service_tier":"batch","context_window":"200k-1M","inference_geo":"us","workspace_id":"wrkspc_1"}',
      ),
      anthropic,
    );
    expect(rows[0]?.row).toMatchObject({
      amountPico: 1_237_891_200_000n,
      model: 'claude-opus-5',
      tokenClass: 'input',
      isBatch: true,
      longContext: true,
      region: 'us',
      project: 'wrkspc_1',
      observable: true,
    });
  });

  it('refuse an amount that is a number, which would be dollars of another tool', async () => {
    await expect(read(page('{"amount":123.78,"currency":"USD"}'), anthropic)).rejects.toMatchObject({
      code: 'invalid_billing_file',
    });
  });

  it.each(['web_search', 'code_execution', 'session_usage'])(
    'declare %s as a charge that no call shows',
    async (type) => {
      const { rows, summary } = await read(
        page(`{"amount":"10","currency":"USD","cost_type":"${type}","description":"Fee"}`),
        anthropic,
      );
      expect(rows[0]?.row).toMatchObject({ observable: false, tokenClass: 'other', chargeCategory: 'usage' });
      expect(summary.unparsed).toEqual([]);
    },
  );

  it('not grouped by description are kept as other and listed', async () => {
    const { rows, summary } = await read(
      page(
        '{"amount":"10","currency":"USD","cost_type":null,"description":null,"model":null,"token_type":null}',
      ),
      anthropic,
    );
    expect(rows[0]?.row).toMatchObject({ model: null, tokenClass: 'other', observable: true });
    expect(summary.unparsed).toHaveLength(1);
  });

  it('yield usage by class, with both lifetimes of a cache write', async () => {
    const { rows, summary } = await read(
      page(
        '{"uncached_input_tokens":1500,"cache_creation":{"ephemeral_1h_input_tokens":1000,"ephemeral_5m_input_tokens":500},"cache_read_input_tokens":200,"output_tokens":500,"server_tool_use":{"web_search_requests":10},"api_key_id":"k","model":"claude-opus-4-6","service_tier":"standard","context_window":"0-200k","inference_geo":"global","workspace_id":null}',
      ),
      anthropic,
    );
    const byClass = Object.fromEntries(
      rows.map(({ row }) => [row.tokenClass, (row.quantity ?? 0n) / 10n ** 12n]),
    );
    expect(byClass).toEqual({
      input: 1500n,
      cache_read: 200n,
      cache_write_5m: 500n,
      cache_write_1h: 1000n,
      output: 500n,
      other: 10n,
    });
    expect(summary.covered[0]).toMatchObject({ feed: 'usage', report: 'messages' });
  });

  it('uploaded as another provider’s are refused', async () => {
    await expect(read(page('{"amount":"10","currency":"USD"}'))).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringContaining('this is a page of anthropic'),
    });
  });
});

describe('a plain CSV', () => {
  const csv = 'date,model,token_class,quantity,amount_usd,service_tier,project\n';

  it('yields rows for any provider', async () => {
    const { rows, summary } = await read(
      `${csv}2026-01-31,mistral-large,input,1000,0.5,batch,p1\n2026-01-31,mistral-large,output,,"1.25",,\n`,
      {
        provider: 'mistral',
      },
    );
    expect(summary.format).toBe('plain_csv');
    expect(rows[0]?.row).toMatchObject({
      day: '2026-01-31',
      isBatch: true,
      quantity: 1000n * 10n ** 12n,
      amountPico: 500_000_000_000n,
      project: 'p1',
    });
    expect(rows[1]?.row).toMatchObject({
      isBatch: null,
      quantity: null,
      amountPico: 1_250_000_000_000n,
      project: null,
    });
  });

  it.each([
    ['audio_input', 'input_audio'],
    ['audio_output', 'output_audio'],
    ['Audio_Output', 'output_audio'],
    ['input_audio', 'input_audio'],
    ['output_audio', 'output_audio'],
  ])('accepts the token class %s as %s', async (written, tokenClass) => {
    const { rows } = await read(`${csv}2026-01-31,gpt-audio,${written},1000,0.5,,\n`);
    expect(rows.map(({ row }) => row)).toMatchObject([
      { tokenClass, quantity: 1000n * 10n ** 12n, lineItem: `gpt-audio, ${tokenClass}` },
    ]);
  });

  it.each([
    ['2026-02-30,m,input,1,1,,', 2, 1, 'date must be'],
    ['2026-01-31,m,inputs,1,1,,', 2, 3, 'token_class must be'],
    ['2026-01-31,m,constructor,1,1,,', 2, 3, 'token_class must be'],
    ['2026-01-31,m,input,x,1,,', 2, 4, 'quantity must be'],
    ['2026-01-31,m,input,1,NaN,,', 2, 5, 'amount_usd must be'],
    ['2026-01-31,m,input,1,1', 2, 6, 'the line has 5 cells'],
  ])('with a bad cell (%s) names line and column', async (line, lineNo, column, reason) => {
    await expect(read(`${csv}${line}\n`)).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringContaining(`line ${lineNo}, column ${column}: ${reason}`),
    });
  });

  it('without a column that it must have names it', async () => {
    await expect(read('date,model,quantity,amount_usd\n')).rejects.toMatchObject({
      message: expect.stringContaining('the column token_class is missing'),
    });
  });

  it('with an open quote is refused, not read to its end', async () => {
    await expect(read(`${csv}2026-01-31,"m,input,1,1,,\n`)).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringMatching(/^line \d+, column \d+: not CSV/),
    });
  });
});

describe('a file that cannot be read', () => {
  it.each([
    ['{"data":[{]}', 1, 11],
    ['{"data":\n [\n  {"start_time": 12 "x":1}]}', 3, 21],
    ['{"data":[],}', 1, 12],
    ['{"data":[{"start_time":01}]}', 1, 24],
    ['{"data":[{"start_time":tru}]}', 1, 24],
    ['{"a":"\u0001"}', 1, 6],
    ['{"data":[', 1, 10],
    ['{"data" []}', 1, 9],
    ['{"x":1}', 1, 7],
    ['{"data":[{"results":[]}]}', 1, 10],
    ['{"data":[{"start_time":2,"end_time":1,"results":[]}]}', 1, 10],
    ['{"data":[1]}', 1, 10],
    ['{"data":[{"start_time":1,"end_time":2,"results":[{"object":"thing"}]}]}', 1, 50],
  ])('%j names line %i and column %i', async (text, line, column) => {
    await expect(read(text, { format: 'openai_pages' })).rejects.toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringContaining(`line ${line}, column ${column}:`),
    });
  });

  it('is refused when it is empty, and when it holds no result', async () => {
    await expect(read('')).rejects.toMatchObject({ code: 'invalid_billing_file' });
    await expect(read('{"data":[]}')).rejects.toMatchObject({ code: 'invalid_billing_file' });
  });

  it('never ends in anything but a fault of its own, whatever its bytes', async () => {
    const valid = costs('0.06');
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: valid.length - 1 }),
        fc.integer({ min: 0, max: 255 }),
        async (place, byte) => {
          const bytes = Buffer.from(valid);
          bytes[place] = byte;
          const outcome = await read(bytes, { format: 'openai_pages' }, 64).then(
            () => 'read',
            (error: unknown) => (error as { code?: string }).code,
          );
          expect(['read', 'invalid_billing_file']).toContain(outcome);
        },
      ),
      { numRuns: 300 },
    );
  });
});
