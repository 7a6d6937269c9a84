import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findClaim } from '../../../db/claims/claims.js';
import { type ClaimStatus, NO_FIELDS } from '../../../domain/claims/lifecycle.js';
import { findUuid } from '../../../domain/ids.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aCommand } from '../../support/claims.js';
import { claimsOf } from '../support/claims.js';
import { day } from '../support/financial.js';
import { send } from '../support/requests.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const claims = claimsOf(() => api);

async function move(org: TestOrganization, id: string, to: ClaimStatus, cents: number | null = null) {
  const claim = await findClaim(org.orgDb, findUuid('clm', id) ?? '');
  if (!claim) throw new Error('there is no such claim');
  const fields = { ...NO_FIELDS, creditIssuedCents: cents };
  await org.orgDb.transaction((inside) => recordClaimMove(inside, aCommand(claim, to, { fields })));
}

const statementOf = async (org: TestOrganization, period: string) =>
  (await api.get(`/api/v1/reconciliation/statement?period=${period}`, org.adminKey)).body;

const askedOf = ({ disputed_usd, credited_usd }: { disputed_usd: number; credited_usd: number }) => [
  disputed_usd,
  credited_usd,
];

describe('the statement of a month', () => {
  it('shows what is disputed of its days, and what claims over them recovered, to the cent over all months', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(30n, '2026-03-30'), day(10n, '2026-04-02')] },
      { days: [day(5n, '2026-03-02')], kind: 'tool_fee_mismatch' },
      { days: [day(8n, '2026-03-03')], accountId: 'acc-2' },
    );
    expect(askedOf((await statementOf(org, '2026-03')).total)).toEqual([43, 0]);
    expect(askedOf((await statementOf(org, '2026-04')).total)).toEqual([10, 0]);
    const { id } = (await claims.create(org, disputes.slice(0, 1))).body;
    await move(org, id, 'submitted_to_provider');
    expect(askedOf((await statementOf(org, '2026-03')).total)).toEqual([43, 0]);
    await move(org, id, 'partial', 3_333);
    const [march, april] = [await statementOf(org, '2026-03'), await statementOf(org, '2026-04')];
    expect(askedOf(march.total)).toEqual([13, 24.9975]);
    expect(askedOf(april.total)).toEqual([0, 8.3325]);
    expect(march.providers.map(askedOf)).toEqual([[13, 24.9975]]);
    expect(
      march.accounts.map(
        (one: { provider_account_id: string; disputed_usd: number; credited_usd: number }) => [
          one.provider_account_id,
          ...askedOf(one),
        ],
      ),
    ).toEqual([
      ['acc-1', 5, 24.9975],
      ['acc-2', 8, 0],
    ]);
    const csv = await send(api, {
      path: '/api/v1/reconciliation/statement?period=2026-03&format=csv',
      key: org.adminKey,
    });
    expect(csv.bytes.toString()).toContain('(all),(all),verification,credited_usd,memo,24.9975,');
  });

  it('counts nothing of what was refused, and nothing of a dispute that was resolved', async () => {
    const { org, disputes } = await claims.orgWithDisputes({}, { kind: 'tool_fee_mismatch' });
    const { id } = (await claims.create(org, disputes.slice(0, 1))).body;
    await move(org, id, 'submitted_to_provider');
    const claim = await findClaim(org.orgDb, findUuid('clm', id) ?? '');
    if (!claim) throw new Error('there is no such claim');
    await org.orgDb.transaction((inside) => recordClaimMove(inside, aCommand(claim, 'denied')));
    await api.post(
      `/api/v1/financial/disputes/${disputes[1]}`,
      { resolution: 'credit_received' },
      org.adminKey,
    );
    expect(askedOf((await statementOf(org, '2026-03')).total)).toEqual([0, 0]);
  });
});
