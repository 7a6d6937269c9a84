import { describe, expect, it } from 'vitest';
import { type LocatedRecord, locateRecords } from '../../../adapters/billing/locateRows.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { placeOfRow, sumOfTerms } from '../../../domain/claims/evidence/placeOfRow.js';
import { PLANTED_BILLS } from '../../support/plantedBills/plantedBills.js';
import { readBill } from '../../support/readBill.js';

/** The places of the numbers of a bill's rows on its pages, in every kind of bill. */

describe('a row of a bill', () => {
  it.each(PLANTED_BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: appears in a record whose numbers come to its amount and quantity, each row in a record of its own',
    async (_name, { bytes, provider, format }) => {
      const { rows } = await readBill(bytes, {
        provider,
        format,
        random: { sizeBytes: bytes.length, read: async (from, to) => bytes.subarray(from, to) },
      });
      const placed: BilledRow[] = [];
      const waiting: BilledRow[] = [];
      const page = { bytes, provider, format, fxRateOn: () => undefined };
      for await (const record of locateRecords(page)) {
        if (record.numbers.size === 0) waiting.push(...record.rows);
        else if (record.rows.length > 0) placed.push(...record.rows.filter((row) => isPlaced(row, record)));
        else {
          const at = waiting.findIndex((row) => isPlaced(row, record));
          if (at >= 0) placed.push(...waiting.splice(at, 1));
        }
      }
      // Claims are about usage in dollars.
      const isClaimed = ({ chargeCategory, currency }: BilledRow) =>
        chargeCategory === 'usage' && currency === 'USD';
      expect(placed.filter(isClaimed).map(textOf).sort()).toEqual(rows.filter(isClaimed).map(textOf).sort());
    },
  );
});

const textOf = (row: BilledRow): string =>
  JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

function isPlaced(row: BilledRow, record: LocatedRecord): boolean {
  const place = placeOfRow(row, record, null);
  if (!place) return false;
  if (place.quantity) expect(sumOfTerms(record.numbers, place.quantity)).toBe(row.quantity);
  if (place.amount) expect(sumOfTerms(record.numbers, place.amount)).toBe(row.originalAmount);
  return true;
}
