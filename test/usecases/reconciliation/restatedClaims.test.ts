import { afterAll, beforeAll, expect, it } from 'vitest';
import { findUuid } from '../../../domain/ids.js';
import { findCredits } from '../../../usecases/claims/findCredits.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { claimsOf } from '../../api/support/claims.js';
import { financialOf } from '../../api/support/financial.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aCommand } from '../../support/claims.js';
import {
  ACCOUNTS,
  aBilledOrganization,
  addBill,
  dayAt,
  gapRunsOf,
  type Runs,
} from '../../support/incrementalRuns.js';

const [ACCOUNT] = ACCOUNTS;
const WRONG = [dayAt(3), dayAt(4), dayAt(5)];
/** 300M cached tokens a day at $0.075 too much. */
const CENTS_A_DAY = 2_250;

let api: TestApi;
let runs: Runs;
beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
}, 60_000);
afterAll(() => api?.close());

/** A claim over the three days, in a status; its public id. */
async function aClaim(org: TestOrganization, isFiled: boolean): Promise<string> {
  await runs.run(org);
  const { items } = await financialOf(() => api).queue(org);
  const [item] = items.filter(({ kind }: { kind: string }) => kind === 'cache_read_rate_mismatch');
  const { body } = await financialOf(() => api).confirm(org, item.id);
  const { status, body: claim } = await claimsOf(() => api).create(org, [body.id]);
  expect([status, claim.total_recoverable_cents]).toEqual([201, 3 * CENTS_A_DAY]);
  if (isFiled)
    await org.orgDb.transaction((inside) =>
      recordClaimMove(
        inside,
        aCommand({ id: findUuid('clm', claim.id) ?? '', version: 1 }, 'submitted_to_provider'),
      ),
    );
  return claim.id;
}

/** The bill of days comes again, right but for the `wrong` ones, and is compared. */
async function restate(org: TestOrganization, rank: number, wrong: readonly string[] = []): Promise<void> {
  await addBill(api, org.orgId, { account: ACCOUNT, days: WRONG, rank, wrong });
  await runs.run(org);
  await findCredits(org.orgDb, { provider: null });
}

const noticesOf = async (org: TestOrganization): Promise<string[]> => {
  const { alerts } = (await api.get('/api/v1/alerts?kind=notice', org.adminKey)).body;
  return alerts.map(({ notice }: { notice: string }) => notice).sort();
};

it('a filed claim whose days are billed at less is stale, and what they fell by is proposed as its answer', async () => {
  const org = await aBilledOrganization(api, WRONG);
  const claims = claimsOf(() => api);
  const id = await aClaim(org, true);
  await findCredits(org.orgDb, { provider: null });
  expect((await claims.get(org, id)).evidence_stale_at).toBeNull();

  await restate(org, 30, WRONG.slice(1));
  const first = await claims.get(org, id);
  expect(first.evidence_stale_at).not.toBeNull();
  expect(first.proposed_credits).toMatchObject([
    { source: 'restatement', status: 'proposed', amount_cents: CENTS_A_DAY, rows: [{ day: WRONG[0] }] },
  ]);
  expect(first.proposed_move).toEqual({ status: 'partial', credit_issued_cents: CENTS_A_DAY });
  expect(await noticesOf(org)).toEqual(['claim_credit_proposed', 'claim_evidence_stale']);

  await findCredits(org.orgDb, { provider: null });
  expect(await claims.get(org, id)).toEqual(first);

  await restate(org, 31);
  const all = await claims.get(org, id);
  expect(all.evidence_stale_at).toBe(first.evidence_stale_at);
  expect(all.evidence_sha256).toBe(first.evidence_sha256);
  expect(all.proposed_credits.map(({ status, amount_cents }: never) => [status, amount_cents])).toEqual([
    ['rejected', CENTS_A_DAY],
    ['proposed', 3 * CENTS_A_DAY],
  ]);
  expect(all.proposed_move).toEqual({ status: 'credit_issued', credit_issued_cents: 3 * CENTS_A_DAY });
  expect(await noticesOf(org)).toEqual([
    'claim_credit_proposed',
    'claim_credit_proposed',
    'claim_evidence_stale',
  ]);

  await restate(org, 32, WRONG);
  const back = await claims.get(org, id);
  expect(back.proposed_move).toBeNull();
});

it('a draft whose days are restated before it is filed is not stale and gets no proposed credit', async () => {
  const org = await aBilledOrganization(api, WRONG);
  const id = await aClaim(org, false);
  await restate(org, 30);
  const draft = await claimsOf(() => api).get(org, id);
  expect([draft.evidence_stale_at, draft.proposed_credits]).toEqual([null, []]);
});
