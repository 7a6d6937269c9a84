import { describe, expect, it } from 'vitest';
import { totalsPlanted, totalsRead } from '../../support/plantedBills/billTotals.js';
import { PLANTED_BILLS } from '../../support/plantedBills/plantedBills.js';
import { REAL_BILLS } from '../../support/plantedBills/realBills.js';
import { readBill } from '../../support/readBill.js';

describe('a generated bill with planted oddities', () => {
  it.each(PLANTED_BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: what is kept and what is left out are what was planted, by category and currency, to the last digit',
    async (_name, bill) => {
      expect(await totalsRead(bill)).toEqual(totalsPlanted(bill));
    },
  );
});

describe('a real export', () => {
  it.each(REAL_BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: everything is of other services, and is left out line by line',
    async (_name, bill) => {
      const { kept, leftOut, all } = await totalsRead(bill);
      expect(kept).toEqual({});
      expect(leftOut).toEqual(all);
      expect(Object.keys(all).length).toBeGreaterThan(0);
    },
  );

  it('of AWS has one identity for each line', async () => {
    const [bill] = REAL_BILLS;
    const { summary } = await readBill(bill?.bytes ?? '', { provider: 'aws_bedrock' });
    expect(summary.leftOut).toEqual([
      { chargeCategory: 'tax', currency: 'USD', rows: 6, amount: expect.any(BigInt) },
      { chargeCategory: 'usage', currency: 'USD', rows: 500, amount: expect.any(BigInt) },
    ]);
    // Read as charges of models, they would all be kept.
    const asBedrock = (bill?.bytes ?? Buffer.alloc(0))
      .toString('utf8')
      .replaceAll(/\b(?:AmazonS3|awskms|AWSQueueService|AmazonSNS|AWSGlue)\b/g, 'AmazonBedrock');
    expect((await readBill(asBedrock, { provider: 'aws_bedrock' })).rows.length).toBeGreaterThan(450);
  });
});
