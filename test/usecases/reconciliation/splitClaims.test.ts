import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findUuid } from '../../../domain/ids.js';
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
const DAYS = [0, 1, 2, 3, 4, 5].map(dayAt);
const CLAIMED = [dayAt(1), dayAt(2), dayAt(3), dayAt(4)] as const;

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

let api: TestApi;
let runs: Runs;
beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
}, 60_000);
afterAll(() => api?.close());

const financial = financialOf(() => api);

const move = (org: TestOrganization, claim: Json, to: Parameters<typeof aCommand>[1]) =>
  org.orgDb.transaction((inside) =>
    recordClaimMove(inside, aCommand({ id: findUuid('clm', claim.id) ?? '', version: claim.version }, to)),
  );

/** A filed claim over four days with one mistake. */
async function aFiledClaim(): Promise<{ org: TestOrganization; dispute: Json; claim: Json }> {
  const org = await aBilledOrganization(api, CLAIMED);
  await runs.run(org);
  const { items } = await financial.queue(org);
  expect(items.map(({ kind, period_start, period_end }: Json) => [kind, period_start, period_end])).toEqual([
    ['cache_read_rate_mismatch', CLAIMED[0], CLAIMED[3]],
  ]);
  const { body: dispute } = await financial.confirm(org, items[0].id, { notes: 'as agreed' });
  const { body: draft } = await claimsOf(() => api).create(org, [dispute.id]);
  await move(org, draft, 'submitted_to_provider');
  return { org, dispute, claim: await claimsOf(() => api).get(org, draft.id) };
}

let rank = 30;
/** The bill of all days comes again, wrong on some, at twice the rates on others, and is compared. */
async function restate(
  org: TestOrganization,
  { wrong, dearer = [] }: { wrong: readonly string[]; dearer?: readonly string[] },
): Promise<void> {
  rank += 2;
  const bill = { account: ACCOUNT, wrong };
  await addBill(api, org.orgId, { ...bill, days: DAYS, rank });
  if (dearer.length > 0)
    await addBill(api, org.orgId, { ...bill, days: dearer, rank: rank + 1, rateTimes: 2 });
  await runs.run(org);
}

/** Published overcharges, by first day and kind. */
async function publishedOf(org: TestOrganization): Promise<Json[]> {
  const { findings } = (await api.get('/api/v1/financial/findings?limit=100', org.adminKey)).body;
  return findings
    .filter(({ status }: Json) => status !== 'gone')
    .sort((a: Json, b: Json) => (a.period_start < b.period_start ? -1 : 1));
}

const spanOf = ({ period_start, period_end }: Json) => [period_start, period_end];
const queueOf = async (org: TestOrganization): Promise<Json[]> => (await financial.queue(org)).items;

describe('a claimed finding whose middle is restated', () => {
  it('stays decided in both parts, and no day of it is in the queue again, whatever runs later', async () => {
    const { org, dispute, claim } = await aFiledClaim();
    await restate(org, { wrong: [CLAIMED[0], CLAIMED[3]] });
    const parts = await publishedOf(org);
    expect(parts.map(spanOf)).toEqual([
      [CLAIMED[0], CLAIMED[0]],
      [CLAIMED[3], CLAIMED[3]],
    ]);
    expect(parts.map(({ id }) => id)).toContain(dispute.finding_id);
    for (const part of parts)
      expect(part).toMatchObject({
        ...{ status: 'confirmed', dispute_id: dispute.id, decision_reason: 'as agreed' },
        decided_by: dispute.opened_by,
      });
    expect(await queueOf(org)).toEqual([]);
    const other = parts.find(({ id }) => id !== dispute.finding_id);
    const again = await financial.confirm(org, other.id);
    expect([again.status, again.body.id]).toEqual([200, dispute.id]);

    await runs.runFully(org);
    expect(await publishedOf(org)).toEqual(parts);
    await move(org, claim, 'credit_issued');
    await restate(org, { wrong: [CLAIMED[0], CLAIMED[1], CLAIMED[3]] });
    expect((await publishedOf(org)).map(spanOf)).toEqual([
      [CLAIMED[0], CLAIMED[1]],
      [CLAIMED[3], CLAIMED[3]],
    ]);
    expect(await queueOf(org)).toEqual([]);
  });

  it('is decided again as a whole when it is found as a whole again', async () => {
    const { org, dispute } = await aFiledClaim();
    const before = await publishedOf(org);
    await restate(org, { wrong: [CLAIMED[0], CLAIMED[3]] });
    await restate(org, { wrong: CLAIMED });
    const [whole, ...others] = await publishedOf(org);
    expect(others).toEqual([]);
    expect(whole).toMatchObject({
      id: dispute.finding_id,
      status: 'confirmed',
      impact_usd: before[0].impact_usd,
    });
  });
});

describe('a claimed day that is restated to something else', () => {
  it('is held by its dispute under every name until that is resolved, and is open then', async () => {
    const { org, dispute } = await aFiledClaim();
    await restate(org, { wrong: [CLAIMED[0], CLAIMED[3]], dearer: [CLAIMED[1], CLAIMED[2]] });
    const renamed = (await publishedOf(org)).find(({ kind }) => kind !== dispute.kind);
    expect(spanOf(renamed)).toEqual([CLAIMED[1], CLAIMED[2]]);
    expect(renamed).toMatchObject({ status: 'confirmed', dispute_id: dispute.id });
    expect(await queueOf(org)).toEqual([]);
    const refused = await financial.confirm(org, renamed.id);
    expect([refused.status, refused.body.code]).toEqual([409, 'already_disputed']);
    await runs.runFully(org);
    expect(await queueOf(org)).toEqual([]);

    const [claim] = await claimsOf(() => api).list(org);
    await move(org, claim, 'denied');
    const open = {
      id: renamed.id,
      status: 'open',
      decided_at: null,
      decided_by: null,
      decision_reason: null,
    };
    expect(await queueOf(org)).toMatchObject([open]);
    await runs.runFully(org);
    expect(await queueOf(org)).toMatchObject([open]);
    expect((await financial.confirm(org, renamed.id)).status).toBe(201);
  });

  it('is removed, not marked gone, when it has no decision and is no longer found', async () => {
    const { org, dispute } = await aFiledClaim();
    await restate(org, { wrong: [CLAIMED[0], CLAIMED[3]], dearer: [CLAIMED[1], CLAIMED[2]] });
    expect((await publishedOf(org)).map(({ kind }) => kind)).toContainEqual(
      expect.not.stringMatching(dispute.kind),
    );
    await restate(org, { wrong: CLAIMED });
    const { findings } = (await api.get('/api/v1/financial/findings?limit=100', org.adminKey)).body;
    expect(findings.map(({ kind }: Json) => kind)).not.toContainEqual(
      expect.not.stringMatching(dispute.kind),
    );
    expect(await queueOf(org)).toEqual([]);
  });
});

describe('days beside a claimed finding that a restatement makes wrong too', () => {
  it('are open by themselves with their own amount, and the claimed days stay decided', async () => {
    const { org, dispute } = await aFiledClaim();
    const claimed = (await publishedOf(org))[0];
    await restate(org, { wrong: DAYS });
    const [item, ...others] = await queueOf(org);
    expect(others).toEqual([]);
    expect(spanOf(item)).toEqual([DAYS[0], DAYS[5]]);
    expect(item).toMatchObject({ impact_usd: 45, dispute_id: null, kind: dispute.kind });
    expect(item.reason).toContain('The bill is $45.00 too much on 2 days from');
    const { days } = (await api.get(`/api/v1/financial/findings/${item.id}`, org.adminKey)).body;
    expect(days.map(({ day }: Json) => day)).toEqual([DAYS[0], DAYS[5]]);
    const still = (await publishedOf(org)).find(({ id }) => id === dispute.finding_id);
    expect(still).toMatchObject({ status: 'confirmed', impact_usd: claimed.impact_usd });
    expect(spanOf(still)).toEqual(spanOf(claimed));
    const opened = await financial.confirm(org, item.id);
    expect([opened.status, opened.body.amount_cents]).toEqual([201, 4_500]);
    await runs.runFully(org);
    expect((await publishedOf(org)).map(({ id, status }) => [id, status]).toSorted()).toEqual(
      [
        [dispute.finding_id, 'confirmed'],
        [item.id, 'confirmed'],
      ].toSorted(),
    );
  });
});
