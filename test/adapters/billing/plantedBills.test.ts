import { describe, expect, it } from 'vitest';
import { totalsPlanted, totalsRead } from '../../support/plantedBills/billTotals.js';
import { PLANTED_BILLS } from '../../support/plantedBills/plantedBills.js';

describe('a generated bill with planted oddities', () => {
  it.each(PLANTED_BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: what is kept and what is left out are what was planted, by category and currency, to the last digit',
    async (_name, bill) => {
      expect(await totalsRead(bill)).toEqual(totalsPlanted(bill));
    },
  );
});
