import { describe, expect, it } from 'vitest';
import { readBill } from '../../support/readBill.js';

const XAI = { provider: 'xai' } as const;

const preview = (over: object = {}) => ({
  coreInvoice: {
    lines: [
      { description: 'grok-4-0709', unitType: 'Prompt text tokens', numUnits: '1000000', amount: '300' },
      {
        description: 'grok-4-0709',
        unitType: 'Cached prompt text tokens',
        numUnits: '500000',
        amount: '37.5',
      },
      { description: 'grok-4-0709', unitType: 'Completion text tokens', numUnits: '200000', amount: 300 },
      { description: 'Live search', unitType: 'Search sources', numUnits: '40', amount: '100' },
    ],
    amountBeforeVat: '737.5',
    vatCost: '147.5',
    defaultCreditsIssued: '-200',
    prepaidCredits: { val: '-16847' },
    prepaidCreditsUsed: { val: '-11666' },
  },
  effectiveSpendingLimit: '20000',
  billingCycle: { year: 2026, month: 9 },
  ...over,
});

describe('xAI’s invoices', () => {
  it('the open month’s preview: cents, by model and class, of the month and of no day', async () => {
    const { rows, summary } = await readBill(JSON.stringify(preview()), XAI);
    expect(summary.format).toBe('xai_invoices');
    expect(
      rows.map(({ chargeCategory, model, tokenClass, amountPico, lineItem }) => [
        chargeCategory,
        model,
        tokenClass,
        amountPico,
        lineItem,
      ]),
    ).toEqual([
      ['usage', 'grok-4-0709', 'input', 3_000_000_000_000n, 'grok-4-0709, Prompt text tokens'],
      ['usage', 'grok-4-0709', 'cache_read', 375_000_000_000n, 'grok-4-0709, Cached prompt text tokens'],
      ['usage', 'grok-4-0709', 'output', 3_000_000_000_000n, 'grok-4-0709, Completion text tokens'],
      ['usage', null, 'other', 1_000_000_000_000n, 'Live search, Search sources'],
      ['tax', null, 'other', 1_475_000_000_000n, 'VAT'],
      ['credit', null, 'other', -2_000_000_000_000n, 'default credits'],
    ]);
    expect(new Set(rows.map(({ day, report }) => `${day} ${report}`))).toEqual(new Set(['2026-09-01 month']));
    expect(summary.unparsed).toEqual([
      { label: 'Live search, Search sources', rows: 1, amountPico: 1_000_000_000_000n },
    ]);
  });

  it('a list of invoices, of the month that each names or was made in; subscriptions are purchases', async () => {
    const invoices = [
      { billingCycle: { year: 2026, month: 8 }, ...preview().coreInvoice },
      {
        createTime: '2026-08-14T23:16:02Z',
        invoiceStatus: 'PAID',
        total: 30000,
        lines: [
          { description: 'Subscription for grok.com licences', unitType: 'Grok for Orgs', amount: '30000' },
        ],
      },
      { createTime: '2026-09-04T23:40:51Z', invoiceStatus: 'PENDING' },
    ];
    const { rows } = await readBill(JSON.stringify({ invoices }), XAI);
    expect(rows.at(-1)).toMatchObject({
      day: '2026-08-01',
      chargeCategory: 'purchase',
      amountPico: 300n * 10n ** 12n,
    });
    expect(rows).toHaveLength(7);
  });

  it.each([
    [preview({ billingCycle: { year: 2026, month: 13 } }), 'billingCycle must name the year and month'],
    [preview({ coreInvoice: { lines: [{ amount: 'x' }] } }), 'lines[0].amount must be a number of cents'],
    [{ invoices: [{}] }, 'invoices[0] must have a billingCycle or a createTime'],
  ])('a fault is reported: %o', async (document, sentence) => {
    await expect(readBill(JSON.stringify(document), XAI)).rejects.toThrow(sentence);
  });

  it('several answers, one after the other or in an array', async () => {
    const one = JSON.stringify(preview());
    const other = JSON.stringify(preview({ billingCycle: { year: 2026, month: 8 } }));
    const { rows } = await readBill(`${one}\n${other}`, XAI);
    expect(rows).toHaveLength(12);
    expect((await readBill(`[${one},\n${other}]`, XAI)).rows).toEqual(rows);
    await expect(readBill(`[${one},\n[${other}]]`, XAI)).rejects.toThrow(
      'line 2, column 1: the document is not',
    );
    await expect(readBill(`[${one},\n5]`, XAI)).rejects.toThrow('line 2, column 1: the document is not');
    await expect(readBill(`[${one},\n${other}`, XAI)).rejects.toThrow('the file ends in the middle');
  });

  it('but its usage analytics are no invoice, and are refused', async () => {
    const analytics = {
      timeSeries: [{ dataPoints: [{ timestamp: '2026-09-01T00:00:00Z', values: [1.5] }] }],
      limitReached: true,
    };
    await expect(readBill(JSON.stringify(analytics), XAI)).rejects.toMatchObject({
      code: 'invalid_billing_file',
    });
    await expect(readBill(JSON.stringify(analytics), { ...XAI, format: 'xai_invoices' })).rejects.toThrow(
      'the document is not an answer of xAI about invoices',
    );
  });
});
