import { describe, expect, it } from 'vitest';
import { decimalFromPico } from '../../../domain/money.js';
import { readBill } from '../../support/readBill.js';

const GOOGLE = { provider: 'google' } as const;

interface Line {
  [name: string]: unknown;
}

/** A row of the export as BigQuery writes it: nested, empty fields left out. */
const aLine = (over: Line = {}): Line => ({
  billing_account_id: '012345-6789AB-CDEF01',
  service: { id: 'C7E2-9256-1C43', description: 'Vertex AI' },
  sku: { id: 'FDAB-647C-5A22', description: 'Gemini 2.5 Flash GA Text Input - Predictions' },
  usage_start_time: '2026-03-08 09:00:00 UTC',
  usage_end_time: '2026-03-08 10:00:00 UTC',
  project: { id: 'chat-prod', number: '42' },
  labels: [{ key: 'team', value: 'a, "b"' }],
  cost: 0.3,
  cost_at_list: 0.36,
  cost_type: 'regular',
  currency: 'USD',
  currency_conversion_rate: 1.0,
  usage: { amount: 1_000_000, unit: 'count', amount_in_pricing_units: 1_000_000, pricing_unit: 'count' },
  credits: [],
  invoice: { month: '202603' },
  ...over,
});

const jsonLines = (lines: readonly Line[]) => `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;

/** The same export as CSV: nested fields under dotted names, arrays as JSON text. */
function csv(lines: readonly Line[], separator: '.' | '_' = '.'): string {
  const flat = lines.map((line) =>
    Object.fromEntries(
      Object.entries(line).flatMap(([name, value]) =>
        Array.isArray(value)
          ? [[name, JSON.stringify(value)]]
          : typeof value === 'object' && value !== null
            ? Object.entries(value).map(([inner, cell]) => [`${name}${separator}${inner}`, String(cell)])
            : [[name, String(value)]],
      ),
    ),
  );
  const columns = [...new Set(flat.flatMap((line) => Object.keys(line)))];
  const quoted = (cell = '') => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return [columns, ...flat.map((line) => columns.map((column) => quoted(line[column])))]
    .map((cells) => cells.join(','))
    .join('\n');
}

describe('Google’s billing export', () => {
  it('is read by its SKU, on the Pacific day, in tokens', async () => {
    const { rows, summary } = await readBill(jsonLines([aLine()]), GOOGLE);
    expect(summary.format).toBe('google_billing_export');
    expect(rows).toEqual([
      expect.objectContaining({
        account: '012345-6789AB-CDEF01',
        day: '2026-03-08',
        report: '',
        chargeCategory: 'usage',
        lineItem: 'Gemini 2.5 Flash GA Text Input - Predictions',
        model: 'gemini-2.5-flash',
        tokenClass: 'input',
        project: 'chat-prod',
        quantity: 1_000_000n * 10n ** 12n,
        quantityUnit: 'tokens',
        amountPico: 300_000_000_000n,
        listPico: 360_000_000_000n,
        netPico: 300_000_000_000n,
      }),
    ]);
  });

  it.each(['.', '_'] as const)(
    'as CSV with %s between the names yields the same rows as JSON lines',
    async (separator) => {
      const lines = [
        aLine({ credits: [{ name: 'Free Trial', amount: -0.1234567890123, type: 'PROMOTION' }] }),
        aLine({ cost: 0.0000015, usage_start_time: '2026-03-09 06:00:00 UTC' }),
      ];
      expect((await readBill(csv(lines, separator), GOOGLE)).rows).toEqual(
        (await readBill(jsonLines(lines), GOOGLE)).rows,
      );
    },
  );

  it('keeps credits apart from use: netted into it a day would look free', async () => {
    const { rows } = await readBill(
      jsonLines([
        aLine({
          credits: [
            { name: 'Free Trial', amount: -0.2, type: 'PROMOTION' },
            { full_name: 'Sustained discount', amount: -0.1, type: 'DISCOUNT' },
          ],
        }),
      ]),
      GOOGLE,
    );
    expect(
      rows.map(({ chargeCategory, lineItem, amountPico, netPico }) => [
        chargeCategory,
        lineItem,
        amountPico,
        netPico,
      ]),
    ).toEqual([
      ['usage', 'Gemini 2.5 Flash GA Text Input - Predictions', 300_000_000_000n, 0n],
      ['credit', 'Free Trial', -200_000_000_000n, null],
      ['credit', 'Sustained discount', -100_000_000_000n, null],
    ]);
  });

  it('taxes, adjustments, rounding and negative lines are no use', async () => {
    const { rows } = await readBill(
      jsonLines([
        aLine({ cost_type: 'tax' }),
        aLine({ cost_type: 'adjustment' }),
        aLine({ cost_type: 'rounding_error', cost: 0.000001 }),
        aLine({ cost: -0.3 }),
        aLine({ adjustment_info: { id: 'a-1', mode: 'PARTIAL_CORRECTION' } }),
        aLine({ cost: 0 }),
      ]),
      GOOGLE,
    );
    expect(rows.map(({ chargeCategory }) => chargeCategory)).toEqual([
      'tax',
      'adjustment',
      'adjustment',
      'adjustment',
      'adjustment',
      'usage',
    ]);
  });

  it('machines of Vertex AI and other services are left out with their credits, and no digit is lost', async () => {
    const lines = [
      aLine(),
      aLine({
        service: { description: 'Compute Engine' },
        sku: { description: 'N1 Core' },
        cost: 12.3456789,
        credits: [{ name: 'x', amount: -2.3456789 }],
      }),
      aLine({ sku: { description: 'Custom Model Training N1 Core in Iowa' }, cost: 7 }),
      aLine({
        service: { description: 'Invoice' },
        sku: { description: 'Tax' },
        cost: 1.9,
        cost_type: 'tax',
      }),
      aLine({ sku: { description: 'Gemini 2.5 Flash Live Audio Output - Predictions' }, cost: 0.5 }),
    ];
    const { rows, summary } = await readBill(jsonLines(lines), GOOGLE);
    expect(rows.map(({ tokenClass }) => tokenClass)).toEqual(['input', 'other']);
    expect(summary.unparsed).toEqual([
      { label: 'Gemini 2.5 Flash Live Audio Output - Predictions', rows: 1, amountPico: 500_000_000_000n },
    ]);
    expect(summary.leftOut).toEqual([
      { chargeCategory: 'credit', currency: 'USD', rows: 1, amount: -2_345_678_900_000n },
      { chargeCategory: 'tax', currency: 'USD', rows: 1, amount: 1_900_000_000_000n },
      { chargeCategory: 'usage', currency: 'USD', rows: 2, amount: 19_345_678_900_000n },
    ]);
  });

  it('usage in other units is no token, whatever the name of the SKU', async () => {
    const { rows } = await readBill(
      jsonLines([aLine({ usage: { amount: 4_000, unit: 'characters' } })]),
      GOOGLE,
    );
    expect(rows[0]).toMatchObject({ tokenClass: 'other', model: null, quantityUnit: 'characters' });
  });

  it('is converted by its own rate, which is in the currency for a dollar, before any rate of the request', async () => {
    const bill = jsonLines([aLine({ currency: 'EUR', currency_conversion_rate: 0.8, cost: 2 })]);
    const { rows } = await readBill(bill, { ...GOOGLE, fxRate: '99' });
    expect(rows[0]).toMatchObject({
      amountPico: 2_500_000_000_000n,
      currency: 'EUR',
      originalAmount: 2_000_000_000_000n,
    });
    const { currency_conversion_rate: _, ...withoutRate } = aLine({ currency: 'EUR', cost: 2 });
    expect((await readBill(jsonLines([withoutRate]), { ...GOOGLE, fxRate: '1.1' })).rows[0]?.amountPico).toBe(
      2_200_000_000_000n,
    );
    expect((await readBill(jsonLines([withoutRate]), GOOGLE)).rows[0]?.amountPico).toBeNull();
  });

  it.each([
    [{ usage_start_time: 'yesterday' }, 'usage_start_time must be a time'],
    [{ cost: 'free' }, 'cost must be a decimal number'],
    [{ invoice: { month: '2026-13' } }, 'invoice.month must be a month'],
    [{ credits: 'none' }, 'credits must be a JSON array'],
    [{ credits: [{ name: 'x' }] }, 'a credit must have an amount'],
    [{ currency: 'EUR', currency_conversion_rate: 0 }, 'must be above zero'],
  ])('a fault is reported with its line: %o', async (over, sentence) => {
    const error = await readBill(jsonLines([aLine(), aLine(over)]), GOOGLE).catch((thrown) => thrown);
    expect(error).toMatchObject({
      code: 'invalid_billing_file',
      message: expect.stringMatching(/^line 2, /),
    });
    expect(error.message).toContain(sentence);
  });
});

/** Every hour of a Pacific month, from its own midnight on, one line for each. */
function hoursOf(fromUtc: string, toUtc: string, month: string): { lines: Line[]; cents: number } {
  const lines: Line[] = [];
  let cents = 0;
  for (let at = Date.parse(fromUtc); at < Date.parse(toUtc); at += 3_600_000) {
    const iso = (millis: number) => `${new Date(millis).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    const cost = (at / 3_600_000) % 97;
    cents += cost;
    lines.push(
      aLine({
        usage_start_time: iso(at),
        usage_end_time: iso(at + 3_600_000),
        cost: cost / 100,
        invoice: { month },
      }),
    );
  }
  return { lines, cents };
}

describe('a Pacific month', () => {
  it.each([
    ['2026-03-01T08:00:00Z', '2026-04-01T07:00:00Z', '202603', 743],
    ['2026-11-01T07:00:00Z', '2026-12-01T08:00:00Z', '202611', 721],
    ['2028-02-01T08:00:00Z', '2028-03-01T08:00:00Z', '202802', 696],
  ])(
    'from %s to %s is whole to the cent, and no day of it is another month’s',
    async (from, to, month, hours) => {
      const { lines, cents } = hoursOf(from, to, month);
      expect(lines).toHaveLength(hours);
      const { rows, summary } = await readBill(jsonLines(lines), GOOGLE);
      const inMonth = `${month.slice(0, 4)}-${month.slice(4)}`;
      expect(new Set(rows.map(({ day, report }) => `${day.slice(0, 7)} ${report}`))).toEqual(
        new Set([`${inMonth} `]),
      );
      expect(decimalFromPico(rows.reduce((sum, { amountPico }) => sum + (amountPico ?? 0n), 0n))).toBe(
        String(cents / 100),
      );
      expect(new Set(summary.covered.map(({ day }) => day)).size).toBe(
        new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(4)), 0)).getUTCDate(),
      );
    },
  );

  it('use that appears on a later invoice is kept separate from the day’s own', async () => {
    const { rows } = await readBill(
      jsonLines([
        aLine(),
        aLine({ invoice: { month: '202604' } }),
        aLine({ usage_start_time: '2026-04-01 06:30:00 UTC', invoice: { month: '202603' } }),
      ]),
      GOOGLE,
    );
    expect(rows.map(({ day, report }) => [day, report])).toEqual([
      ['2026-03-08', ''],
      ['2026-03-08', 'invoice 202604'],
      ['2026-03-31', ''],
    ]);
  });
});
