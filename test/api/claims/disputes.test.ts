import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listFindingsOfAccount, writeFindings } from '../../../db/reconciliation/findings.js';
import { publicId } from '../../../domain/ids.js';
import { startTestApi, type TestAnswer, type TestApi } from '../../support/api.js';
import { until } from '../../support/engine.js';
import { aFindingDay, type FindingToStore, storeFindings, storeRun } from '../../support/findings.js';
import { anEndpoint } from '../../support/webhooks.js';
import { DISPUTES, day, FINDINGS, financialOf, fnd, resolveDisputes } from '../support/financial.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const { confirm, dismiss, queue, orgWith, actionsOf } = financialOf(() => api);

describe('to confirm an item', () => {
  it('opens a dispute over its days, in whole cents rounded down, and a repeat answers the same one', async () => {
    const { org, id } = await orgWith({
      days: [aFindingDay('2026-03-10', 1_009_999_999_999n), aFindingDay('2026-03-12', 2_000_000_000_000n)],
    });
    const first = await confirm(org, id, { notes: 'seen in the console too' });
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      id: expect.stringMatching(/^dsp_[0-9a-f]{32}$/),
      org_id: publicId('org', org.orgId),
      claim_id: null,
      finding_id: id,
      provider: 'openai',
      provider_account_id: 'acc-1',
      model: 'gpt-4o',
      period_start: '2026-03-10',
      period_end: '2026-03-12',
      kind: 'cache_read_rate_mismatch',
      status: 'open',
      amount_cents: 300,
      provider_cost_usd: 2000,
      our_cost_usd: 1996.990000000001,
      confidence_tier: 'HIGH',
      reason:
        'Cached input was charged at the full rate. The bill is $3.00 too much on 2 days from 2026-03-10 to 2026-03-12.',
      resolution: null,
      notes: 'seen in the console too',
      opened_at: expect.any(String),
      opened_by: expect.stringMatching(/^key_/),
      resolved_at: null,
      resolved_by: null,
      still_found: true,
      evidence_refs: [
        `${FINDINGS}/${id}`,
        '/api/v1/reconciliation/matches?provider=openai&from=2026-03-10&to=2026-03-12',
        expect.stringMatching(/runs\/run_/),
      ],
    });
    const again = await confirm(org, id);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect((await queue(org)).items).toEqual([]);
    expect((await queue(org, 'status=confirmed')).items).toMatchObject([
      { id, dispute_id: first.body.id, status: 'confirmed', decision_reason: 'seen in the console too' },
    ]);
    expect(await actionsOf(org)).toEqual(['finding.confirmed']);
    expect((await api.get(DISPUTES, org.adminKey)).body).toMatchObject({
      disputes: [first.body],
      count: 1,
      has_more: false,
    });
  });

  it('of several people at once opens one dispute', async () => {
    const { org, id } = await orgWith({});
    const answers = await Promise.all(Array.from({ length: 6 }, () => confirm(org, id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(await actionsOf(org)).toEqual(['finding.confirmed']);
  });

  it('while another person dismisses it ends as one of the two', async () => {
    const { org, id } = await orgWith({});
    const [confirmed, dismissed] = await Promise.all([confirm(org, id), dismiss(org, id)]);
    expect([confirmed.status, dismissed.status].sort()).toEqual(
      confirmed.status === 201 ? [201, 409] : [200, 409],
    );
    const { body } = await api.get(`${FINDINGS}/${id}`, org.adminKey);
    expect(body.status).toBe(confirmed.status === 201 ? 'confirmed' : 'dismissed');
    expect((await actionsOf(org)).length).toBe(1);
  });

  it('keeps the days as they were, whatever later runs find', async () => {
    const { org, id } = await orgWith({ days: [day(10n), day(20n, '2026-03-11')] });
    const { body: opened } = await confirm(org, id);
    const before = (await api.get(`${DISPUTES}/${opened.id}`, org.adminKey)).body;
    expect(before.days).toEqual([
      {
        day: '2026-03-10',
        provider_cost_usd_exact: '1000',
        our_cost_usd_exact: '990',
        impact_usd_exact: '10',
        rate_usd_exact: '10',
        volume_usd_exact: '0',
        own_pricing_usd_exact: '0',
      },
      expect.objectContaining({ day: '2026-03-11', impact_usd_exact: '20' }),
    ]);
    expect(before.evidence).toMatchObject({
      lines: [
        {
          token_class: 'cache_read',
          billed_usd_per_mtok: 2,
          expected_usd_per_mtok: 1,
          billed_quantity: '1000000000',
        },
      ],
      next_best: { kind: 'list_rate_mismatch', odds: 40 },
      waterfall: [{ signal: 'prior', level: 'kind', bits: -3 }],
    });
    await org.orgDb.run(
      `update finding_days set impact_usd = 1, rate_usd = 1, expected_usd = billed_usd - 1 where org_id = $1`,
      [org.orgId],
    );
    await org.orgDb.run(
      `update findings set lines = '[]', waterfall = '[]', reason = 'another' where org_id = $1`,
      [org.orgId],
    );
    expect((await api.get(`${DISPUTES}/${opened.id}`, org.adminKey)).body).toEqual(before);
  });

  it('again, when later runs have found more days of it, opens another dispute over those alone', async () => {
    const { org, id } = await orgWith({ days: [day(10n)] });
    const first = await confirm(org, id);
    await org.orgDb.run(
      `insert into finding_days select org_id, finding_id, '2026-03-11', billed_usd, billed_usd - 4, 4, 4, 0, 0, probability
       from finding_days where org_id = $1`,
      [org.orgId],
    );
    const second = await confirm(org, id);
    expect(second.status).toBe(201);
    expect(second.body).toMatchObject({
      amount_cents: 400,
      period_start: '2026-03-11',
      period_end: '2026-03-11',
      reason: 'Cached input was charged at the full rate. The bill is $4.00 too much on 2026-03-11.',
    });
    expect(second.body.id).not.toBe(first.body.id);
    expect((await confirm(org, id)).body).toEqual(second.body);
  });

  it('stays one dispute when later runs describe the same finding in another way', async () => {
    const { org, id } = await orgWith({});
    const { body: first } = await confirm(org, id);
    await org.orgDb.run(`update findings set variant = 'another' where org_id = $1`, [org.orgId]);
    const again = await confirm(org, id);
    expect([again.status, again.body.id]).toEqual([200, first.id]);
  });

  it('stays one dispute when the account without a name gets its name', async () => {
    const { org, id } = await orgWith({ accountId: 'default' });
    const { body: first } = await confirm(org, id);
    await org.orgDb.run(`update findings set provider_account_id = 'acc-9' where org_id = $1`, [org.orgId]);
    const again = await confirm(org, id);
    expect([again.status, again.body.id]).toEqual([200, first.id]);
    await resolveDisputes(org);
    const { body } = await api.get('/api/v1/financial/summary', org.adminKey);
    expect(body.recoverable_confirmed_usd).toBe(0);
  });

  it('waits for a run that publishes, and then sees what the run has left', async () => {
    const { org, ids } = await orgWith({ model: 'm-1' }, { model: 'm-2' });
    const [kept = '', removed = ''] = ids;
    const account = { provider: 'openai', accountId: 'acc-1' };
    let asked: Promise<TestAnswer[]> | undefined;
    await org.orgDb.transaction(async (inside) => {
      const published = await listFindingsOfAccount(inside, account, '2026-03-01');
      asked = Promise.all([confirm(org, kept), confirm(org, removed)]);
      await until(
        'both wait for the run',
        async () => {
          const { rows } = await api.database.superuser.query(
            `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          );
          return rows.length;
        },
        (waiting) => waiting === 2,
      );
      const gone = published.filter(({ model }) => model === 'm-2').map(({ id: uuid }) => uuid);
      await writeFindings(
        inside,
        { gapRunId: await storeRun(inside) },
        { findings: [], removed: gone, gone: [] },
      );
    });
    expect((await asked)?.map(({ status }) => status)).toEqual([201, 404]);
  });

  it('is refused with the reason where there is nothing to claim', async () => {
    const cases: [FindingToStore, string, RegExp][] = [
      [{ direction: 'undercharge', days: [day(-5n)] }, 'nothing_to_dispute', /too little/],
      [{ grade: 'UNVERIFIED' }, 'nothing_to_dispute', /UNVERIFIED/],
      [{ days: [aFindingDay('2026-03-10', 9_999_999_999n)] }, 'nothing_to_dispute', /less than a cent/],
      [{ status: 'gone' }, 'nothing_to_dispute', /no longer find/],
      [{ provisional: true }, 'not_for_review', /restate/],
      [{ kind: 'client_metering_error', blame: 'own' }, 'not_for_review', /no mistake of the provider/],
    ];
    for (const [given, code, sentence] of cases) {
      const { org, id } = await orgWith(given);
      const { status, body } = await confirm(org, id);
      expect([status, body.code], String(sentence)).toEqual([409, code]);
      expect(body.detail).toMatch(sentence);
      expect((await api.get(DISPUTES, org.adminKey)).body.count).toBe(0);
      expect(await actionsOf(org)).toEqual([]);
    }
  });

  it('is possible of what nothing explains, as LOW whatever its grade', async () => {
    const { org, id } = await orgWith({ kind: 'unexplained', grade: 'UNVERIFIED', variant: '' });
    const { status, body } = await confirm(org, id);
    expect([status, body.kind, body.confidence_tier]).toEqual([201, 'unexplained', 'LOW']);
  });

  it('leaves one message dispute.opened, with ids and numbers', async () => {
    const { org, id } = await orgWith({});
    await anEndpoint(org, 'https://receiver.example/', ['dispute.opened']);
    const { body: dispute } = await confirm(org, id);
    await confirm(org, id);
    const messages = await org.orgDb.rows<{ body: string }>(
      'select body from webhook_messages where org_id = $1',
      [org.orgId],
    );
    expect(messages.map(({ body }) => JSON.parse(body))).toEqual([
      {
        type: 'dispute.opened',
        timestamp: dispute.opened_at,
        data: {
          dispute_id: dispute.id,
          finding_id: id,
          kind: 'cache_read_rate_mismatch',
          provider: 'openai',
          confidence_tier: 'HIGH',
          amount_cents: 1234,
          period_start: '2026-03-10',
          period_end: '2026-03-10',
          opened_at: dispute.opened_at,
        },
      },
    ]);
  });
});

describe('the same dollars', () => {
  it('are not disputed a second time under another name, until the first dispute is resolved', async () => {
    const { org, id } = await orgWith({});
    const { body: first } = await confirm(org, id);
    await org.orgDb.run(`update findings set status = 'gone' where org_id = $1`, [org.orgId]);
    const [other = ''] = await storeFindings(org.orgDb, [{ kind: 'list_rate_mismatch' }]);
    const refused = await confirm(org, fnd(other));
    expect([refused.status, refused.body.code]).toEqual([409, 'already_disputed']);
    expect(refused.body.detail).toContain(first.id);
    expect((await api.get(`${DISPUTES}/${first.id}`, org.adminKey)).body).toMatchObject({
      status: 'open',
      still_found: false,
    });
    await resolveDisputes(org);
    expect((await confirm(org, fnd(other))).status).toBe(201);
  });

  it('and other dollars of the same day, of a finding beside it, are distinguished', async () => {
    const { org, ids } = await orgWith({}, { kind: 'list_rate_mismatch' });
    expect((await confirm(org, ids[0] ?? '')).status).toBe(201);
    expect((await confirm(org, ids[1] ?? '')).status).toBe(201);
  });

  it('are in one dispute at most by the schema itself', async () => {
    const { org, id } = await orgWith({});
    await confirm(org, id);
    const copy = (live: boolean) =>
      org.orgDb.transaction(async (inside) => {
        const disputeId = randomUUID();
        await inside.run(
          `insert into disputes select org_id, $2::uuid, finding_id, claim_id, provider, provider_account_id, model, kind, period_start,
             period_end, status, amount_cents, provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, notes, opened_at, opened_by
           from disputes where org_id = $1 limit 1`,
          [inside.orgId, disputeId],
        );
        await inside.run(
          `insert into dispute_days select org_id, $2::uuid, day, provider, provider_account_id, model, kind, variant, billed_usd,
             expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd, $3::boolean
           from dispute_days where org_id = $1`,
          [inside.orgId, disputeId, live],
        );
      });
    await expect(copy(true)).rejects.toThrow(/dispute_days_live/);
    await copy(false);
  });
});
