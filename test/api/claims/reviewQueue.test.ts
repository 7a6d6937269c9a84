import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { storeFindings } from '../../support/findings.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { storeAlerts } from '../support/alerts.js';
import { day, FINDINGS, financialOf, QUEUE } from '../support/financial.js';

const SEED = testSeed();
const RUNS = propertyRuns(6);

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const { confirm, dismiss, queue, orgWith } = financialOf(() => api);

const idsOf = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id);

describe('the review queue', () => {
  it('shows an item with what a person needs to decide, under the names of the interface', async () => {
    const { org, id } = await orgWith({});
    const { body } = await api.get(QUEUE, org.adminKey);
    expect(body).toMatchObject({
      count: 1,
      offset: 0,
      has_more: false,
      next_cursor: null,
      total_items: 1,
      total_impact_usd: 12.345,
    });
    expect(body.items).toEqual([
      {
        id,
        kind: 'cache_read_rate_mismatch',
        direction: 'overcharge',
        provider: 'openai',
        provider_account_id: 'acc-1',
        model: 'gpt-4o',
        period_start: '2026-03-10',
        period_end: '2026-03-10',
        impact_usd: 12.345,
        impact_usd_exact: '12.345',
        confidence: 'HIGH',
        confidence_score: 0.97,
        severity: 'medium',
        reason: 'Cached input was charged at the full rate. The bill is $12.34 too much on 2026-03-10.',
        advice: ['Ask the provider for the rate of its price list.'],
        evidence_refs: [
          `${FINDINGS}/${id}`,
          '/api/v1/reconciliation/matches?provider=openai&from=2026-03-10&to=2026-03-10',
          expect.stringMatching(/^\/api\/v1\/reconciliation\/gap-explorer\/runs\/run_[0-9a-f]{32}$/),
        ],
        dispute_id: null,
        status: 'open',
        decided_at: null,
        decided_by: null,
        decision_reason: null,
        created_at: expect.any(String),
      },
    ]);
  });

  it('holds mistakes of the provider of every grade and what nothing explains; no provisional days, and no days without a mistake of the provider', async () => {
    const { org, ids } = await orgWith(
      { grade: 'HIGH', days: [day(9n)] },
      { grade: 'MEDIUM', days: [day(8n)] },
      { grade: 'LOW', days: [day(7n)] },
      { grade: 'UNVERIFIED', days: [day(6n)] },
      { kind: 'unexplained', grade: 'UNVERIFIED', days: [day(5n)] },
      { provisional: true, days: [day(4n)] },
      { kind: 'client_metering_error', blame: 'own', days: [day(3n)] },
      { kind: 'timing_shift', blame: 'none', days: [day(2n)] },
      { direction: 'undercharge', days: [day(-1n)] },
    );
    expect(idsOf(await queue(org))).toEqual(ids.slice(0, 5));
    expect(await queue(org)).toMatchObject({ total_items: 5, total_impact_usd: 35 });
    const under = await queue(org, 'direction=undercharge');
    expect(under).toMatchObject({ items: [{ id: ids[8], impact_usd: 1 }], total_impact_usd: 1 });
    const { body } = await api.get(`${FINDINGS}?blame=own`, org.adminKey);
    expect(body.findings).toMatchObject([{ id: ids[6], blame: 'own', in_review_queue: false }]);
  });

  it('contains what its filters match, and totals the same items', async () => {
    const { org, ids } = await orgWith(
      { provider: 'openai', days: [day(30n)] },
      { provider: 'anthropic', days: [day(20n)] },
      { provider: 'anthropic', days: [day(10n)] },
    );
    expect(idsOf(await queue(org, 'provider=anthropic'))).toEqual([ids[1], ids[2]]);
    expect(await queue(org, 'min_impact_usd=20&limit=1')).toMatchObject({
      items: [{ id: ids[0] }],
      has_more: true,
      total_items: 2,
      total_impact_usd: 50,
    });
    expect(idsOf(await queue(org, 'min_impact_usd=20.000000000001'))).toEqual([ids[0]]);
    await dismiss(org, ids[1] ?? '');
    expect(idsOf(await queue(org))).toEqual([ids[0], ids[2]]);
    expect(idsOf(await queue(org, 'status=dismissed'))).toEqual([ids[1]]);
    for (const wrong of ['status=closed', 'min_impact_usd=-1', 'min_impact_usd=x', 'cursor=x', 'limit=0'])
      expect((await api.get(`${QUEUE}?${wrong}`, org.adminKey)).status, wrong).toBe(400);
  });

  it('is ordered by dollars and then by id, and its pages, by offset as by cursor, leave nothing out and show nothing twice', async () => {
    const amount = fc.integer({ min: 1, max: 4 });
    const drawn = fc.record({
      findings: fc.array(amount, { maxLength: 12 }),
      policies: fc.uniqueArray(
        fc.constantFrom('approved_models', 'banned_patterns', 'key_environment_check'),
        {},
      ),
      costs: fc.array(amount, { minLength: 3, maxLength: 3 }),
      limit: fc.integer({ min: 1, max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(drawn, async ({ findings, policies, costs, limit }) => {
        const org = await api.addOrganization();
        await storeFindings(
          org.orgDb,
          findings.map((usd) => ({ days: [day(BigInt(usd))] })),
        );
        for (const [at, policy] of policies.entries())
          await storeAlerts(api, org.orgId, [
            { policyType: policy, policyId: at + 1, costUsd: String(costs[at]) },
          ]);
        const whole = (await queue(org, 'limit=1000')).items as { id: string; impact_usd: number }[];
        expect(whole).toHaveLength(findings.length + policies.length);
        const sorted = [...whole].sort((a, b) => b.impact_usd - a.impact_usd || (a.id < b.id ? -1 : 1));
        expect(whole).toEqual(sorted);
        const byOffset: unknown[] = [];
        for (let offset = 0; offset <= whole.length; offset += limit)
          byOffset.push(...(await queue(org, `limit=${limit}&offset=${offset}`)).items);
        expect(byOffset).toEqual(whole);
        const byCursor: unknown[] = [];
        for (let cursor: string | null = ''; cursor !== null; ) {
          const page = await queue(org, `limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`);
          byCursor.push(...page.items);
          cursor = page.next_cursor;
        }
        expect(byCursor).toEqual(whole);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it('has an item for each policy with open alerts, which is closed by acknowledging them', async () => {
    const org = await api.addOrganization();
    await storeAlerts(api, org.orgId, [
      { policyType: 'approved_models', policyId: 7, costUsd: '1.5', severity: 'medium' },
      { policyType: 'approved_models', policyId: 7, costUsd: null, severity: 'high' },
    ]);
    const { items } = await queue(org);
    expect(items).toMatchObject([
      {
        id: 'pol_7',
        kind: 'policy',
        impact_usd: 1.5,
        severity: 'high',
        confidence: null,
        status: 'open',
        reason:
          '2 calls have broken the policy approved_models, and nobody has acknowledged it; the cost of 1 of them is unknown.',
        evidence_refs: ['/api/v1/alerts?kind=policy&policy_type=approved_models&status=open'],
      },
    ]);
    for (const answer of [await confirm(org, 'pol_7'), await dismiss(org, 'pol_7')]) {
      expect([answer.status, answer.body.code]).toEqual([409, 'decided_elsewhere']);
      expect(answer.body.detail).toContain('/acknowledge');
    }
    const { body } = await api.get(items[0].evidence_refs[0], org.adminKey);
    for (const alert of body.alerts)
      await api.post(`/api/v1/alerts/${alert.id}/acknowledge`, {}, org.adminKey);
    expect(await queue(org)).toMatchObject({ items: [], total_items: 0, total_impact_usd: 0 });
    expect((await confirm(org, 'pol_7')).status).toBe(404);
  });
});
