import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { aFindingDay, storeFindings } from '../../support/findings.js';
import { day, FINDINGS, financialOf, fnd, QUEUE, resolveDisputes, USD } from '../support/financial.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const { confirm, dismiss, queue, orgWith, actionsOf } = financialOf(() => api);

describe('to dismiss an item', () => {
  it('closes it with a reason; a repeat changes nothing and keeps the first reason', async () => {
    const { org, id } = await orgWith({});
    const first = await dismiss(org, id, 'agreed by phone');
    expect([first.status, first.body.status, first.body.decision_reason]).toEqual([
      200,
      'dismissed',
      'agreed by phone',
    ]);
    const again = await dismiss(org, id, 'another reason');
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await actionsOf(org)).toEqual(['finding.dismissed']);
  });

  it('asks for a reason of 1 to 4,000 characters', async () => {
    const { org, id } = await orgWith({});
    for (const body of [
      {},
      { reason: '' },
      { reason: '   ' },
      { reason: 'x'.repeat(4_001) },
      { reason: 1 },
    ]) {
      const answer = await api.post(`${QUEUE}/${id}/dismiss`, body, org.adminKey);
      expect([answer.status, answer.body.errors[0].field]).toEqual([400, 'reason']);
    }
    expect((await dismiss(org, id, 'x'.repeat(4_000))).status).toBe(200);
  });

  it('can be reverted by confirming with reopen, and not by mistake', async () => {
    const { org, id } = await orgWith({});
    await dismiss(org, id);
    const refused = await confirm(org, id);
    expect([refused.status, refused.body.code]).toEqual([409, 'already_decided']);
    expect(refused.body.detail).toContain('reopen');
    expect((await confirm(org, id, { reopen: true })).status).toBe(201);
    expect(await actionsOf(org)).toEqual(['finding.confirmed', 'finding.dismissed']);
  });

  it('is refused while a dispute is about it', async () => {
    const { org, id } = await orgWith({});
    const { body: dispute } = await confirm(org, id);
    const refused = await dismiss(org, id);
    expect([refused.status, refused.body.code]).toEqual([409, 'already_decided']);
    expect(refused.body.detail).toContain(dispute.id);
    await resolveDisputes(org);
    expect((await dismiss(org, id)).body.status).toBe('dismissed');
  });

  it('is possible of an undercharge, which then nets nothing', async () => {
    const { org, ids } = await orgWith({ days: [day(10n)] }, { direction: 'undercharge', days: [day(-4n)] });
    const recoverable = async () =>
      (await api.get('/api/v1/financial/summary', org.adminKey)).body.recoverable_confirmed_usd;
    expect(await recoverable()).toBe(6);
    expect((await dismiss(org, ids[1] ?? '')).status).toBe(200);
    expect(await recoverable()).toBe(10);
  });
});

describe('a finding', () => {
  it('is read with its days, its computation and its evidence', async () => {
    const { org, id } = await orgWith({
      days: [
        aFindingDay('2026-03-10', 10n * USD, {
          ratePico: 7n * USD,
          volumePico: 4n * USD,
          ownPricingPico: -USD,
        }),
        aFindingDay('2026-03-11', 5n),
      ],
      missing: ['closed_period'],
    });
    const { body } = await api.get(`${FINDINGS}/${id}`, org.adminKey);
    expect(body).toMatchObject({
      id,
      impact_usd_exact: '10.000000000005',
      parts: { rate_usd_exact: '7.000000000005', volume_usd_exact: '4', own_pricing_usd_exact: '-1' },
      days: [{ day: '2026-03-10', rate_usd_exact: '7', confidence_score: 0.9 }, { day: '2026-03-11' }],
      lines: [
        {
          token_class: 'cache_read',
          billed_quantity: '1000000000',
          observed_quantity: '1000000000',
          billed_usd_per_mtok: 2,
          expected_usd_per_mtok: 1,
        },
      ],
      waterfall: [{ signal: 'prior', level: 'kind', bits: -3 }],
      missing_gates: ['closed_period'],
      next_best: { kind: 'list_rate_mismatch', odds: 40 },
      in_review_queue: true,
      dispute_id: null,
    });
  });

  it('is found by each filter, and those that have a day in a window by its bounds', async () => {
    const { org, ids } = await orgWith(
      {
        provider: 'openai',
        accountId: 'a',
        model: 'm',
        days: [day(9n, '2026-03-01'), day(9n, '2026-03-05')],
      },
      { provider: 'anthropic', kind: 'unexplained', grade: 'LOW', days: [day(8n, '2026-03-09')] },
      { blame: 'own', kind: 'client_metering_error', days: [day(7n, '2026-03-20')], status: 'dismissed' },
      { direction: 'undercharge', days: [day(-6n, '2026-03-31')] },
    );
    const found = async (query: string) =>
      (await api.get(`${FINDINGS}?${query}`, org.adminKey)).body.findings.map(({ id }: { id: string }) =>
        ids.indexOf(id),
      );
    expect(await found('')).toEqual([0, 1, 2, 3]);
    expect(await found('provider=anthropic')).toEqual([1]);
    expect(await found('provider_account_id=a&model=m')).toEqual([0]);
    expect(await found('kind=unexplained&confidence=low')).toEqual([1]);
    expect(await found('blame=own&status=dismissed')).toEqual([2]);
    expect(await found('direction=undercharge')).toEqual([3]);
    expect(await found('from=2026-03-05&to=2026-03-09')).toEqual([0, 1]);
    expect(await found('from=2026-03-06&to=2026-03-08')).toEqual([]);
    expect((await api.get(`${FINDINGS}?from=2026-03-09&to=2026-03-08`, org.adminKey)).body.code).toBe(
      'invalid_range',
    );
    for (const wrong of ['kind=nothing', 'confidence=sure', 'blame=x', 'status=x', 'direction=up'])
      expect((await api.get(`${FINDINGS}?${wrong}`, org.adminKey)).status, wrong).toBe(400);
    const first = (await api.get(`${FINDINGS}?limit=3`, org.adminKey)).body;
    expect(await found(`limit=3&cursor=${first.next_cursor}`)).toEqual([3]);
  });

  it('that is gone stays where it can be read, and so does its dispute', async () => {
    const org = await api.addOrganization();
    const [id = ''] = await storeFindings(org.orgDb, [{}]);
    const { body: dispute } = await confirm(org, fnd(id));
    await org.orgDb.run(`update findings set status = 'gone' where org_id = $1`, [org.orgId]);
    expect((await queue(org, 'status=gone')).items).toMatchObject([{ id: fnd(id), dispute_id: dispute.id }]);
    const again = await confirm(org, fnd(id));
    expect([again.status, again.body.still_found]).toEqual([200, false]);
    expect((await api.get('/api/v1/financial/summary', org.adminKey)).body.recoverable_confirmed_usd).toBe(0);
  });
});
