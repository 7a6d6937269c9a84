import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { type FindingToStore, storeFindings } from '../../support/findings.js';
import { anEndpoint } from '../../support/webhooks.js';
import { DISPUTES, day, FINDINGS, financialOf, fnd, resolveDisputes } from '../support/financial.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const financial = financialOf(() => api);

/** A finding of three days is confirmed, and then found in two: the last day by itself. Both, and the dispute. */
async function aSplitFinding(last: FindingToStore = {}) {
  const { org, id } = await financial.orgWith({
    days: [day(10n, '2026-03-10'), day(20n, '2026-03-11'), day(40n, '2026-03-12')],
  });
  const { body: dispute } = await financial.confirm(org, id);
  await org.orgDb.run(`delete from finding_days where org_id = $1 and day = '2026-03-12'`, [org.orgId]);
  await org.orgDb.run(
    `update findings set last_day = '2026-03-11', billed_usd = 2000, expected_usd = 1970, impact_usd = 30, recoverable_usd = 30 where org_id = $1`,
    [org.orgId],
  );
  const [uuid] = await storeFindings(org.orgDb, [{ days: [day(40n, '2026-03-12')], ...last }]);
  return { org, first: id, last: fnd(uuid), dispute };
}

const recoverable = async (org: TestOrganization) =>
  (await api.get('/api/v1/financial/summary', org.adminKey)).body.recoverable_confirmed_usd;

describe('a later finding over days of a dispute', () => {
  it('shows the dispute, and confirming it joins that dispute', async () => {
    const { org, last, dispute } = await aSplitFinding();
    expect((await financial.queue(org)).items).toMatchObject([{ id: last, dispute_id: dispute.id }]);
    const joined = await financial.confirm(org, last, { notes: 'the same' });
    expect([joined.status, joined.body.id]).toEqual([200, dispute.id]);
    expect((await financial.queue(org)).items).toEqual([]);
    expect((await api.get(`${FINDINGS}/${last}`, org.adminKey)).body).toMatchObject({
      status: 'confirmed',
      decision_reason: 'the same',
      dispute_id: dispute.id,
    });
    expect((await api.get(DISPUTES, org.adminKey)).body.count).toBe(1);
    expect((await financial.confirm(org, last)).status).toBe(200);
    expect(await financial.actionsOf(org)).toEqual(['finding.confirmed', 'finding.confirmed']);
  });

  it('cannot be dismissed before the dispute is resolved, which keeps its dollars in the summary until then', async () => {
    const { org, last, dispute } = await aSplitFinding();
    const refused = await financial.dismiss(org, last);
    expect([refused.status, refused.body.code]).toEqual([409, 'already_decided']);
    expect(refused.body.detail).toContain(dispute.id);
    expect(await recoverable(org)).toBe(70);
    await resolveDisputes(org);
    expect(await recoverable(org)).toBe(0);
    expect((await financial.dismiss(org, last)).status).toBe(200);
  });

  it('joins none where the provider charged too little now', async () => {
    const { org, last } = await aSplitFinding({ direction: 'undercharge', days: [day(-40n, '2026-03-12')] });
    const { status, body } = await financial.confirm(org, last);
    expect([status, body.code]).toEqual([409, 'nothing_to_dispute']);
  });
});

describe('a decision on a finding whose days the provider may restate again', () => {
  it('stays in the queue under its status, and a repeat answers the dispute that there is', async () => {
    const { org, id } = await financial.orgWith({});
    const { body: dispute } = await financial.confirm(org, id);
    await org.orgDb.run('update findings set provisional = true where org_id = $1', [org.orgId]);
    expect((await financial.queue(org, 'status=confirmed')).items).toMatchObject([{ id }]);
    const again = await financial.confirm(org, id);
    expect([again.status, again.body.id]).toEqual([200, dispute.id]);
  });

  it('is reverted only once they are final', async () => {
    const { org, id } = await financial.orgWith({});
    await financial.dismiss(org, id, 'first reason');
    await org.orgDb.run('update findings set provisional = true where org_id = $1', [org.orgId]);
    const again = await financial.dismiss(org, id, 'another');
    expect([again.status, again.body.decision_reason]).toEqual([200, 'first reason']);
    const confirmed = await financial.confirm(org, id, { reopen: true });
    expect([confirmed.status, confirmed.body.code]).toEqual([409, 'not_for_review']);
  });
});

describe('twenty people at once', () => {
  it('who confirm and dismiss one item leave one decision, one audit row, and one dispute and message at most', async () => {
    const { org, id } = await financial.orgWith({});
    await anEndpoint(org, 'https://receiver.example/', ['dispute.opened']);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        at % 2 === 0 ? financial.confirm(org, id) : financial.dismiss(org, id),
      ),
    );
    const isConfirmed = answers.some(({ status }) => status === 201);
    const { status } = (await api.get(`${FINDINGS}/${id}`, org.adminKey)).body;
    expect(status).toBe(isConfirmed ? 'confirmed' : 'dismissed');
    expect(await financial.actionsOf(org)).toEqual([`finding.${status}`]);
    for (const [at, answer] of answers.entries()) {
      const isOfWinner = (at % 2 === 0) === isConfirmed;
      expect([200, 201].includes(answer.status), `${at}: ${answer.status}`).toBe(isOfWinner);
    }
    const { rows } = await api.database.superuser.query(
      `select (select count(*)::int from disputes where org_id = $1) as disputes,
         (select count(*)::int from webhook_messages where org_id = $1 and type = 'dispute.opened') as messages`,
      [org.orgId],
    );
    expect(rows).toEqual([{ disputes: isConfirmed ? 1 : 0, messages: isConfirmed ? 1 : 0 }]);
  });
});
