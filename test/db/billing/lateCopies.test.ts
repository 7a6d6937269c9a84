import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../../db/billing/billCoverage.js';
import { listBilledTotals } from '../../../db/billing/billingRows.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { startTestApi, type TestApi } from '../../support/api.js';

const DAY = '2026-08-20';
const ALL = { provider: null, fromDay: '2026-08-01', toDay: '2026-10-01' };
const DOLLAR = 1_000_000_000_000n;
/** A day of August and its late charges in the invoices of the two months after it. */
const LATE: Readonly<Record<string, string>> = {
  'invoice 202609': '2026-09-01',
  'invoice 202610': '2026-10-01',
};
const TOLD = ['2026-08-25', '2026-09-15', '2026-10-15'];

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

/** A copy of the day, or of its late charges in a later invoice. */
interface Copy {
  report: string;
  /** The bill of one period, or a report of a day on any invoice. */
  format: 'aws_cur2' | 'aws_ce_pages';
  rank: number;
  toldOn: string;
  dollars: number;
}

async function store(orgDb: OrgDb, copies: readonly Copy[]): Promise<void> {
  for (const [at, copy] of copies.entries()) {
    const id = randomUUID();
    await api.database.superuser.query(
      `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format)
       values ($1, $2::uuid, 'file', 'aws_bedrock', 'x', replace($2::uuid::text || $2::uuid::text, '-', ''), 1, 'succeeded', $3)`,
      [orgDb.orgId, id, copy.format],
    );
    await api.database.superuser.query(
      `insert into billing_days (org_id, provider, provider_account_id, day, feed, report, charge_category, source_id, source_rank,
         source_fetched_at, row_count, amount_usd)
       values ($1, 'aws_bedrock', '111122223333', $2, 'cost', $3, 'usage', $4, $5, $6::timestamptz + make_interval(mins => $7), 1, $8)`,
      [orgDb.orgId, DAY, copy.report, id, copy.rank, `${copy.toldOn}T00:00:00Z`, at, copy.dollars],
    );
  }
}

/** By rank, then by arrival: the newest of equals wins. */
const best = (copies: readonly Copy[]): Copy | undefined =>
  copies.reduce<Copy | undefined>(
    (found, copy) =>
      !found || copy.rank > found.rank || (copy.rank === found.rank && copy.toldOn >= found.toldOn)
        ? copy
        : found,
    undefined,
  );

const lacks = (own: Copy | undefined, report: string) =>
  !own || own.format === 'aws_cur2' || own.toldOn < (LATE[report] as string);

/** The rule in plain code: the best copy of the day, plus the charges of each later invoice that this copy lacks. */
function expectedDollars(copies: readonly Copy[]): number {
  const own = best(copies.filter(({ report }) => report === ''));
  const late = Object.keys(LATE).flatMap((report) => {
    const found = lacks(own, report) ? best(copies.filter((copy) => copy.report === report)) : undefined;
    return found ? [found] : [];
  });
  return [...(own ? [own] : []), ...late].reduce((sum, { dollars }) => sum + dollars, 0);
}

const anOwn = fc.record({
  report: fc.constant(''),
  format: fc.constantFrom('aws_cur2' as const, 'aws_ce_pages' as const),
  rank: fc.constantFrom(20, 30, 40),
  toldOn: fc.constantFrom(...TOLD),
  dollars: fc.integer({ min: 1, max: 1_000 }),
});
const aLate = fc.record({
  report: fc.constantFrom(...Object.keys(LATE)),
  format: fc.constant('aws_cur2' as const),
  rank: fc.constantFrom(20, 40),
  toldOn: fc.constantFrom(...TOLD),
  dollars: fc.integer({ min: 1, max: 1_000 }),
});

describe('charges of a day on a later invoice', () => {
  it('counts beside the copy of the day that lacks it, and never twice, whatever came when', {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(anOwn, aLate), { minLength: 1, maxLength: 7 }), async (copies) => {
        const { orgDb } = await api.addOrganization();
        await store(orgDb, copies);
        const totals = await listBilledTotals(orgDb, ALL);
        expect(totals.map(({ amountPico }) => amountPico)).toEqual(
          expectedDollars(copies) === 0 ? [] : [BigInt(expectedDollars(copies)) * DOLLAR],
        );
      }),
      { numRuns: 60 },
    );
  });

  it('is no difference between a copy that has it and one together with that invoice', async () => {
    const { orgDb } = await api.addOrganization();
    const copy = (report: string, format: Copy['format'], rank: number, dollars: number): Copy => ({
      report,
      format,
      rank,
      dollars,
      toldOn: '2026-10-15',
    });
    await store(orgDb, [
      copy('', 'aws_cur2', 40, 10),
      copy('invoice 202609', 'aws_cur2', 40, 2),
      copy('', 'aws_ce_pages', 20, 12),
      copy('', 'aws_ce_pages', 20, 11),
    ]);
    const found = await listSourceDifferences(orgDb, { ...ALL, limit: 10 });
    expect(found.map(({ span, countedPico, otherPico }) => [span, countedPico, otherPico])).toEqual([
      ['day', 12n * DOLLAR, 11n * DOLLAR],
    ]);
  });
});
