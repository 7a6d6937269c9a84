import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../../db/billing/billCoverage.js';
import { listBilledTotals } from '../../../db/billing/billingRows.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { scopesOverlap } from '../../../domain/billing/connections.js';
import { startTestApi, type TestApi } from '../../support/api.js';

const DAY = '2026-09-01';
const ALL = { provider: null, fromDay: '2026-08-01', toDay: '2026-10-01' };
const DOLLAR = 1_000_000_000_000n;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

/** One copy of the day's bill. */
interface Copy {
  /** 10 plain file, 20 saved page, 30 API. */
  rank: number;
  /** '' for the whole account. */
  scope: string;
  /** Minutes after midnight at which it was fetched. */
  toldAt: number;
  superseded: boolean;
  dollars: number;
  category: 'usage' | 'credit';
}

const scope = (parts: readonly string[]) =>
  [...parts]
    .sort()
    .map((part) => `project:${part}`)
    .join(',');

async function store(orgDb: OrgDb, copies: readonly Copy[]): Promise<string[]> {
  const ids: string[] = [];
  const connection = randomUUID();
  await api.database.superuser.query(
    `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, backfill_from)
     values ($1, $2, 'openai', 'x', 'active', 'org-1', '2026-08-01')`,
    [orgDb.orgId, connection],
  );
  for (const copy of copies) {
    const id = randomUUID();
    ids.push(id);
    await api.database.superuser.query(
      `insert into billing_sources (org_id, id, kind, connection_id, provider, filename, sha256, size_bytes, status, format)
       values ($1, $2::uuid, case when $3::int = 30 then 'api' else 'file' end, case when $3::int = 30 then $4::uuid end, 'openai', 'x',
         replace($2::uuid::text || $2::uuid::text, '-', ''), 1, 'succeeded', 'openai_pages')`,
      [orgDb.orgId, id, copy.rank, connection],
    );
    await api.database.superuser.query(
      `insert into billing_days (org_id, provider, provider_account_id, day, feed, report, charge_category, source_id, source_rank,
         source_fetched_at, row_count, amount_usd, scope, superseded_at)
       values ($1, 'openai', 'org-1', $2::text::date, 'cost', '', $3, $4, $5, $2::text::timestamptz + make_interval(mins => $6), 1, $7, $8,
         case when $9 then now() end)`,
      [
        orgDb.orgId,
        DAY,
        copy.category,
        id,
        copy.rank,
        copy.toldAt,
        copy.dollars,
        copy.scope,
        copy.superseded,
      ],
    );
  }
  return ids;
}

/** The rule in words, over copies in the order in which they would count. */
function expectedDollars(copies: readonly Copy[]): number | undefined {
  const ranked = copies
    .filter(({ superseded }) => !superseded)
    .sort((a, b) => b.rank - a.rank || b.toldAt - a.toldAt);
  const [best] = ranked;
  if (!best) return undefined;
  if (best.scope === '') return best.dollars;
  const counted: Copy[] = [];
  for (const copy of ranked)
    if (copy.scope !== '' && counted.every((other) => !scopesOverlap(other.scope, copy.scope)))
      counted.push(copy);
  return counted.reduce((sum, { dollars }) => sum + dollars, 0);
}

const aCopy = fc.record({
  rank: fc.constantFrom(10, 20, 30, 30),
  parts: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 }),
  superseded: fc.boolean(),
  dollars: fc.integer({ min: 1, max: 1_000 }),
  category: fc.constantFrom('usage' as const, 'credit' as const),
});

describe('of the copies of a day', () => {
  it('whatever their mix and the order in which they came, each category sums to exactly one copy', {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(aCopy, { maxLength: 9 }),
        fc.infiniteStream(fc.nat()),
        async (drawn, order) => {
          const copies = drawn.map(
            (copy, at): Copy => ({
              ...copy,
              scope: copy.rank === 30 ? scope(copy.parts) : '',
              toldAt: at + 1,
              superseded: copy.superseded && copy.rank === 30,
            }),
          );
          const { orgDb } = await api.addOrganization();
          const shuffled = copies
            .map((copy) => ({ copy, key: order.next().value as number }))
            .sort((x, y) => x.key - y.key)
            .map(({ copy }) => copy);
          await store(orgDb, shuffled);
          const totals = await listBilledTotals(orgDb, ALL);
          for (const category of ['usage', 'credit'] as const) {
            const found = totals.find((total) => total.chargeCategory === category)?.amountPico;
            const expected = expectedDollars(copies.filter((copy) => copy.category === category));
            expect(found).toBe(expected === undefined ? undefined : BigInt(expected) * DOLLAR);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('an earlier amount of the same connection is no difference, a different amount in a file is one', async () => {
    const { orgDb } = await api.addOrganization();
    const copy = (rank: number, toldAt: number, dollars: number, more: Partial<Copy> = {}): Copy => ({
      rank,
      toldAt,
      dollars,
      scope: '',
      superseded: false,
      category: 'usage',
      ...more,
    });
    const [, current, file] = await store(orgDb, [
      copy(30, 1, 5, { superseded: true }),
      copy(30, 2, 6),
      copy(20, 3, 7),
      copy(10, 4, 6),
      copy(30, 5, 2, { scope: 'project:a', superseded: true }),
    ]);
    expect(await listSourceDifferences(orgDb, { ...ALL, limit: 10 })).toMatchObject([
      { countedSourceId: current, countedKind: 'api', otherSourceId: file, otherKind: 'file' },
    ]);
  });
});
