import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../support/api.js';
import { importBill } from '../support/bills.js';
import { sumNamed, totalsPlanted } from '../support/plantedBills/billTotals.js';
import { PLANTED_BILLS } from '../support/plantedBills/plantedBills.js';
import { startWorkingApi } from '../support/workingApi.js';

/** Generated bills of every format, uploaded, kept in chunks and read by the worker. */

let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi();
});

afterAll(() => api?.close());

describe('a generated bill that is imported', () => {
  it.each(PLANTED_BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: stores the planted rows, lists the omitted ones, and the same file again changes nothing',
    async (_name, bill) => {
      const org = await api.addOrganization();
      const fields = { provider: bill.provider };
      const done = await importBill(api, bill.bytes, fields, org.adminKey);
      expect(done).toMatchObject({ status: 'succeeded', format: bill.format });
      const again = await importBill(api, bill.bytes, fields, org.adminKey);
      expect(again.import_id).toBe(done.import_id);
      const { rows } = await api.database.superuser.query(
        `select charge_category || ' ' || currency as name, sum(original_amount)::text as amount
         from billing_rows where org_id = $1 group by 1`,
        [org.orgId],
      );
      const planted = totalsPlanted(bill);
      expect(sumNamed(rows)).toEqual(planted.kept);
      expect(
        done.left_out.map((one: Record<string, string>) => `${one.charge_category} ${one.currency}`).sort(),
      ).toEqual(Object.keys(planted.leftOut));
    },
  );
});
