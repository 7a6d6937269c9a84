import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { microsFromDate } from '../../../domain/period.js';
import { GRADES } from '../../../domain/reconciliation/matching/cells.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aFindingDay, type FindingToStore, storeFindings } from '../../support/findings.js';
import { storeModeledResult } from '../../support/modeledResult.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { day, financialOf, resolveDisputes, USD } from '../support/financial.js';
import { anEvent, ingest } from '../support/requests.js';

const SUMMARY = '/api/v1/financial/summary';
const SEED = testSeed();
const RUNS = propertyRuns(6);
const CENT = USD / 100n;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const financial = financialOf(() => api);

const read = async (org: TestOrganization, query = '') =>
  (await api.get(`${SUMMARY}?${query}`, org.adminKey)).body;

const SIX = [
  'recoverable_confirmed_usd',
  'recoverable_review_usd',
  'prevented_usd',
  'preventable_modeled_usd',
  'unexplained_critical_usd',
  'unexplained_review_usd',
] as const;

/** Cents of a number on the wire. */
const centsOf = (usd: number) => Math.round(usd * 100);

describe('the financial summary', () => {
  it('of an organization without data is zeros, and states that nothing was modeled', async () => {
    const org = await api.addOrganization();
    expect(await read(org)).toEqual({
      ...Object.fromEntries(SIX.map((name) => [name, 0])),
      total_financial_opportunity_usd: 0,
      from: null,
      to: null,
      preventable_modeled_as_of: null,
      breakdown: [],
      not_counted: {
        provisional_usd_exact: '0',
        unverified_usd_exact: '0',
        not_claimable_usd_exact: '0',
        unexplained_undercharged_usd_exact: '0',
      },
    });
  });

  it('shows what is confirmed, to be reviewed, prevented, modeled and unexplained, and their sum', async () => {
    const { org } = await financial.orgWith(
      { days: [aFindingDay('2026-03-10', 12_345_678_901_234n)] },
      { grade: 'MEDIUM', days: [day(7n)] },
      { grade: 'LOW', days: [aFindingDay('2026-02-10', 1_999_999_999_999n)] },
      { direction: 'undercharge', days: [day(-2n)] },
      { kind: 'unexplained', grade: 'UNVERIFIED', critical: true, days: [day(150n)] },
      { kind: 'unexplained', grade: 'UNVERIFIED', days: [day(3n)] },
      { provisional: true, days: [day(50n)] },
      { grade: 'UNVERIFIED', days: [day(60n)] },
      { kind: 'client_metering_error', blame: 'own', days: [day(70n)] },
    );
    const rule = { type: 'token_ceiling', name: 'r', config: { max_tokens: 1_000 } };
    await api.post('/api/v1/enforcement-rules', rule, org.adminKey);
    await storeModeledResult(org.orgDb);
    await ingest(api, [anEvent({ status: 'blocked', prevented_usd: 0.255 })], org.ingestKey);
    const summary = await read(org);
    expect(summary).toMatchObject({
      recoverable_confirmed_usd: 10.34,
      recoverable_review_usd: 8.99,
      prevented_usd: 0.26,
      preventable_modeled_usd: 1,
      unexplained_critical_usd: 150,
      unexplained_review_usd: 3,
      total_financial_opportunity_usd: 173.59,
      preventable_modeled_as_of: expect.stringMatching(/Z$/),
      not_counted: { provisional_usd_exact: '50', unverified_usd_exact: '60' },
    });
    expect(summary.breakdown).toEqual([
      {
        provider: 'openai',
        provider_account_id: 'acc-1',
        month: '2026-03',
        confirmed_usd_exact: '12.345678901234',
        review_usd_exact: '7',
        undercharged_usd_exact: '2',
        recoverable_confirmed_usd: 10.34,
        recoverable_review_usd: 7,
        unexplained_critical_usd: 150,
        unexplained_review_usd: 3,
      },
      {
        provider: 'openai',
        provider_account_id: 'acc-1',
        month: '2026-02',
        confirmed_usd_exact: '0',
        review_usd_exact: '1.999999999999',
        undercharged_usd_exact: '0',
        recoverable_confirmed_usd: 0,
        recoverable_review_usd: 1.99,
        unexplained_critical_usd: 0,
        unexplained_review_usd: 0,
      },
    ]);
    const enforcement = (await api.get('/api/v1/enforcement/savings', org.adminKey)).body;
    expect([summary.prevented_usd, summary.preventable_modeled_usd]).toEqual([
      enforcement.prevented_usd,
      enforcement.preventable_modeled_usd,
    ]);
  });

  it('counts days of a window, both bounds included, and of a finding that spans it the days inside', async () => {
    const { org } = await financial.orgWith({
      days: [day(1n, '2026-02-28'), day(2n, '2026-03-01'), day(4n, '2026-03-02'), day(8n, '2026-03-03')],
    });
    const confirmed = async (query: string) => (await read(org, query)).recoverable_confirmed_usd;
    expect(await confirmed('')).toBe(15);
    expect(await confirmed('from=2026-03-01&to=2026-03-02')).toBe(6);
    expect(await confirmed('from=2026-03-02')).toBe(12);
    expect(await confirmed('to=2026-02-28')).toBe(1);
    expect(await confirmed('from=2026-03-03T23:00:00Z&to=2026-03-03T23:30:00Z')).toBe(8);
    expect(await read(org, 'from=2026-03-01&to=2026-03-02')).toMatchObject({
      from: '2026-03-01T00:00:00Z',
      to: '2026-03-02T23:59:59.999999Z',
    });
    const wrong = await api.get(`${SUMMARY}?from=2026-03-02&to=2026-03-01`, org.adminKey);
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_range']);
  });

  it('takes what was modeled of exactly the period that is asked for', async () => {
    const org = await api.addOrganization();
    await api.post(
      '/api/v1/enforcement-rules',
      { type: 'token_ceiling', name: 'r', config: { max_tokens: 1 } },
      org.adminKey,
    );
    await storeModeledResult(org.orgDb);
    expect((await read(org)).preventable_modeled_usd).toBe(1);
    const today = new Date(Number(microsFromDate(new Date()) / 1_000n)).toISOString().slice(0, 10);
    for (const query of [`from=2020-01-01&to=${today}`, 'from=2020-01-01', `to=${today}`])
      expect(await read(org, query)).toMatchObject({
        preventable_modeled_usd: 0,
        preventable_modeled_as_of: null,
      });
  });

  it('counts what a person confirmed until its dispute is resolved, and nothing that a person dismissed', async () => {
    const { org, ids } = await financial.orgWith(
      { grade: 'LOW', days: [day(5n)] },
      { kind: 'list_rate_mismatch', days: [day(9n)] },
    );
    const numbers = async () => {
      const { recoverable_confirmed_usd, recoverable_review_usd } = await read(org);
      return [recoverable_confirmed_usd, recoverable_review_usd];
    };
    expect(await numbers()).toEqual([9, 5]);
    await financial.confirm(org, ids[0] ?? '');
    expect(await numbers()).toEqual([14, 0]);
    await financial.dismiss(org, ids[1] ?? '');
    expect(await numbers()).toEqual([5, 0]);
    await resolveDisputes(org);
    expect(await numbers()).toEqual([0, 0]);
  });

  it('equals a plain reckoning over the days of whatever findings, windows and resolved disputes there are, and adds up', async () => {
    const drawn = fc.record({
      provider: fc.constantFrom('openai', 'anthropic'),
      accountId: fc.constantFrom('', 'acc-1'),
      kind: fc.constantFrom('cache_read_rate_mismatch' as const, 'unexplained' as const),
      isUnder: fc.boolean(),
      grade: fc.constantFrom(...GRADES),
      status: fc.constantFrom('open' as const, 'confirmed' as const, 'dismissed' as const, 'gone' as const),
      claimable: fc.boolean(),
      provisional: fc.boolean(),
      critical: fc.boolean(),
      sizes: fc.array(fc.bigInt({ min: 1n, max: 20n * USD }), { minLength: 1, maxLength: 4 }),
      /** Index of the day whose dispute was resolved; null: there was no dispute. */
      settledDay: fc.option(fc.nat({ max: 3 })),
    });
    const bound = fc.option(fc.constantFrom('2026-02-27', '2026-02-28', '2026-03-02', '2026-03-03'), {
      nil: undefined,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(drawn, { maxLength: 15 }), bound, bound, async (given, one, other) => {
        const org = await api.addOrganization();
        const [from, to] =
          one !== undefined && other !== undefined && one > other ? [other, one] : [one, other];
        const found = given.map(({ isUnder, sizes, claimable, ...rest }, at) => ({
          ...rest,
          model: `m-${at}`,
          claimable: claimable && rest.kind !== 'unexplained',
          direction: isUnder ? ('undercharge' as const) : ('overcharge' as const),
          // Over the end of a month.
          days: sizes.map((size, day) =>
            aFindingDay(`2026-0${day < 2 ? 2 : 3}-${day < 2 ? 27 + day : `0${day}`}`, isUnder ? -size : size),
          ),
        }));
        const ids = await storeFindings(org.orgDb, found);
        const settled = found.map(({ days, settledDay }) => days[settledDay ?? days.length]?.day);
        for (const [at, id] of ids.entries()) await settle(org, id, settled[at]);
        const query = Object.entries({ from, to }).flatMap(([name, day]) => (day ? [`${name}=${day}`] : []));
        const summary = await read(org, query.join('&'));
        const counted = found.map((finding, at) => ({
          ...finding,
          days: finding.days.filter(
            ({ day: on }) => on !== settled[at] && (!from || on >= from) && (!to || on <= to),
          ),
        }));
        expect(summary).toMatchObject(plainReckoning(counted));
        const sum = SIX.reduce((total, name) => total + centsOf(summary[name]), 0);
        expect(centsOf(summary.total_financial_opportunity_usd)).toBe(sum);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });
});

/** A dispute over a day of a finding that was resolved; none without a day. */
async function settle({ orgDb, orgId }: TestOrganization, findingId: string, on: string | undefined) {
  if (on === undefined) return;
  await orgDb.run(
    `with opened as (
       insert into disputes (org_id, id, finding_id, provider, provider_account_id, model, kind, period_start, period_end, amount_cents,
         provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, opened_by, status, resolution, resolved_at, resolved_by)
       select org_id, gen_random_uuid(), id, provider, provider_account_id, model, kind, $3::date, $3::date, 1, 1, 1, 'LOW', '', '{}', 'test',
         'resolved', 'other', now(), 'test' from findings where org_id = $1 and id = $2 returning *)
     insert into dispute_days (org_id, dispute_id, day, provider, provider_account_id, model, kind, variant, billed_usd, expected_usd,
       impact_usd, rate_usd, volume_usd, own_pricing_usd, live)
     select $1, o.id, $3::date, o.provider, o.provider_account_id, o.model, o.kind, 'full_rate', 1, 1, 0, 0, 0, 0, false from opened o`,
    [orgId, findingId, on],
  );
}

/** The four numbers of findings, day by day and without any sum that is shared. */
function plainReckoning(
  findings: readonly (FindingToStore & { days: readonly { day: string; impactPico: bigint }[] })[],
) {
  const months = new Map<
    string,
    { confirmed: bigint; review: bigint; under: bigint; critical: bigint; other: bigint }
  >();
  for (const finding of findings) {
    if (finding.status === 'dismissed' || finding.status === 'gone' || finding.provisional) continue;
    for (const { day: on, impactPico } of finding.days) {
      const key = `${finding.provider} ${finding.accountId} ${on.slice(0, 7)}`;
      const month = months.get(key) ?? { confirmed: 0n, review: 0n, under: 0n, critical: 0n, other: 0n };
      months.set(key, month);
      if (finding.kind === 'unexplained') {
        if (impactPico < 0n) continue;
        if (finding.critical) month.critical += impactPico;
        else month.other += impactPico;
        continue;
      }
      if (finding.grade === 'UNVERIFIED') continue;
      if (impactPico < 0n) month.under -= impactPico;
      else if (finding.status === 'confirmed') month.confirmed += impactPico;
      else if (finding.claimable && finding.grade === 'HIGH') month.confirmed += impactPico;
      else if (finding.claimable) month.review += impactPico;
    }
  }
  let [confirmed, review, critical, other] = [0n, 0n, 0n, 0n];
  for (const month of months.values()) {
    const net = month.confirmed - month.under;
    if (net > 0n) confirmed += net / CENT;
    const rest = net < 0n ? month.review + net : month.review;
    if (rest > 0n) review += rest / CENT;
    critical += halfEven(month.critical);
    other += halfEven(month.other);
  }
  return {
    recoverable_confirmed_usd: Number(confirmed) / 100,
    recoverable_review_usd: Number(review) / 100,
    unexplained_critical_usd: Number(critical) / 100,
    unexplained_review_usd: Number(other) / 100,
  };
}

/** Cents, a half to the even cent. */
function halfEven(pico: bigint): bigint {
  const [cents, rest] = [pico / CENT, pico % CENT];
  const isUp = rest * 2n > CENT || (rest * 2n === CENT && cents % 2n === 1n);
  return cents + (isUp ? 1n : 0n);
}
