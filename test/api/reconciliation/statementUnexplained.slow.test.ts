import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { picoFromDecimal } from '../../../domain/money.js';
import { GRADES } from '../../../domain/reconciliation/matching/cells.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aFindingDay, storeFindings } from '../../support/findings.js';
import { expectSameUnexplained } from '../../support/sameUnexplained.js';
import { day, financialOf, resolveDisputes, USD } from '../support/financial.js';

const SEED = testSeed();
const RUNS = Number(process.env.TEST_RUNS ?? 25);
const MONTHS = ['2026-02', '2026-03'];

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const financial = financialOf(() => api);

const unexplained = { kind: 'unexplained' as const, grade: 'UNVERIFIED' as const };

/** The amounts of the statement's verification section in its CSV, by line, of all providers. */
async function verificationOf(org: TestOrganization, period: string) {
  const path = `/api/v1/reconciliation/statement?period=${period}&format=csv`;
  const { body } = await api.get(path, org.adminKey);
  const rows = (body as string)
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','));
  const ofTotal = rows.filter(
    ([, , provider, , section]) => provider === '(all)' && section === 'verification',
  );
  return ofTotal.map(([, , , , , line = '', kind, amount = '']) => ({
    line,
    kind,
    pico: picoFromDecimal(amount) as bigint,
  }));
}

describe('the unexplained dollars of a statement', () => {
  it('are those of the financial summary of the same month, and never those that findings explain', async () => {
    const { org } = await financial.orgWith(
      { days: [day(12n)] },
      { ...unexplained, critical: true, days: [day(150n)] },
      { ...unexplained, days: [day(3n)], accountId: 'acc-2' },
      { ...unexplained, days: [day(5n)], accountId: '' },
      { ...unexplained, days: [day(7n, '2026-02-28'), day(9n, '2026-03-01')] },
      { ...unexplained, provisional: true, days: [day(40n)] },
      { ...unexplained, direction: 'undercharge', days: [day(-20n)] },
    );
    const march = await expectSameUnexplained(api, '2026-03', org.adminKey);
    expect(march.total).toMatchObject({ unexplained_usd: 167, in_findings_usd: 12 });
    const february = await expectSameUnexplained(api, '2026-02', org.adminKey);
    expect(february.total.unexplained_usd).toBe(7);
  });

  it('leave out what a person dismissed, and days of disputes that are resolved', async () => {
    const { org, ids } = await financial.orgWith(
      { ...unexplained, days: [day(10n)], model: 'a' },
      { ...unexplained, days: [day(20n)], model: 'b' },
      { ...unexplained, days: [day(40n)], model: 'c' },
    );
    await financial.dismiss(org, ids[0] ?? '');
    await financial.confirm(org, ids[1] ?? '');
    await resolveDisputes(org);
    const { total } = await expectSameUnexplained(api, '2026-03', org.adminKey);
    expect(total.unexplained_usd).toBe(40);
  });

  it('equal the summary and foot, whatever was found', async () => {
    const drawn = fc.record({
      provider: fc.constantFrom('openai', 'anthropic'),
      accountId: fc.constantFrom('', 'acc-1', 'acc-2'),
      kind: fc.constantFrom('cache_read_rate_mismatch' as const, 'unexplained' as const),
      isUnder: fc.boolean(),
      grade: fc.constantFrom(...GRADES),
      status: fc.constantFrom('open' as const, 'confirmed' as const, 'dismissed' as const, 'gone' as const),
      provisional: fc.boolean(),
      critical: fc.boolean(),
      sizes: fc.array(fc.bigInt({ min: 1n, max: 20n * USD }), { minLength: 1, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(drawn, { maxLength: 12 }), async (given) => {
        const org = await api.addOrganization();
        await storeFindings(
          org.orgDb,
          given.map(({ isUnder, sizes, ...rest }, at) => ({
            ...rest,
            model: `m-${at}`,
            direction: isUnder ? ('undercharge' as const) : ('overcharge' as const),
            // Over the end of a month.
            days: sizes.map((size, on) =>
              aFindingDay(on < 2 ? `2026-02-${27 + on}` : `2026-03-0${on - 1}`, isUnder ? -size : size),
            ),
          })),
        );
        for (const month of MONTHS) {
          await expectSameUnexplained(api, month, org.adminKey);
          const lines = await verificationOf(org, month);
          const amountOf = (name: string) => lines.find(({ line }) => line === name)?.pico ?? 0n;
          expect(amountOf('not_matched_by_calls_usd')).toBe(
            amountOf('explained_by_findings_usd') + amountOf('unexplained_usd'),
          );
          const items = lines.filter(({ kind }) => kind === 'item').reduce((sum, { pico }) => sum + pico, 0n);
          expect(items).toBe(amountOf('billed_usage_usd'));
        }
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });
});
