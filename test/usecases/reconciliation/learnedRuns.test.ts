import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBillReport } from '../../../bin/bills/billReport.js';
import { makeReconciliation } from '../../../bin/commands/reconcile.js';
import { currentWeights } from '../../../db/reconciliation/weightSets.js';
import { recomputeWeights } from '../../../usecases/reconciliation/recomputeWeights.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { storeClaim } from '../../support/claims.js';
import { aBilledOrganization, dayAt, gapRunsOf, type Runs } from '../../support/incrementalRuns.js';

const KIND = 'cache_read_rate_mismatch';
const NOW = 1_792_500_000_000_000n;

let api: TestApi;
let runs: Runs;

beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
});
afterAll(() => api?.close());

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

/** The finding of the kind that the organization's bill shows. */
async function found(org: TestOrganization): Promise<Json> {
  const { body } = await api.get(`/api/v1/financial/findings?kind=${KIND}`, org.adminKey);
  expect(body.findings.filter((one: Json) => one.status === 'open')).toHaveLength(1);
  return body.findings.find((one: Json) => one.status === 'open');
}

async function refuse(org: TestOrganization, count: number): Promise<void> {
  for (let claim = 0; claim < count; claim += 1)
    await storeClaim(org.orgDb, { status: 'denied', disputes: [{ cents: 5_000, kind: KIND }] });
}

/** Days of claims whose findings no bill shows: a run would remove those findings. */
const WRONG = [dayAt(1), dayAt(2), dayAt(3)];

describe('a run after claims have ended', () => {
  it('explains everything again by what was learned, and nothing where nothing was', async () => {
    const org = await aBilledOrganization(api, WRONG);
    const first = await runs.run(org);
    expect(first.units).toBeGreaterThan(0);
    const before = await found(org);
    expect(before).toMatchObject({ confidence: 'HIGH', weight_set: 'default-1' });
    expect((await runs.run(org)).units).toBe(0);

    await refuse(org, 10);
    // Weights are not computed yet, so nothing changes.
    expect((await runs.run(org)).units).toBe(0);
    expect(await recomputeWeights(org.orgDb, NOW)).toMatchObject({ version: 1, isNew: true });
    expect((await runs.run(org)).units).toBe(first.units);
    const after = await found(org);
    expect(after).toMatchObject({ id: before.id, confidence: 'LOW', weight_set: 'learned-1' });
    expect(after.confidence_score).toBeLessThan(0.64);
    expect(after.impact_usd).toBe(before.impact_usd);

    expect(await recomputeWeights(org.orgDb, NOW)).toEqual({ version: 1, isNew: false, rescored: [] });
    expect((await runs.run(org)).units).toBe(0);
    expect(await found(org)).toEqual(after);
  });

  it('has the result of a reconciliation from the command line with the same weights', async () => {
    const org = await aBilledOrganization(api, WRONG);
    await refuse(org, 10);
    await recomputeWeights(org.orgDb, NOW);
    await runs.run(org);
    const range = { provider: 'openai', fromDay: null, toDay: null, nowMicros: NOW } as const;
    const report = (await readBillReport(org.orgDb, range, makeReconciliation)).json() as Json;
    const { confidence_score: score } = await found(org);
    const said = report.findings.find((one: Json) => one.kind === KIND);
    expect(report).toMatchObject({ weight_set: 'learned-1' });
    expect(said).toMatchObject({ confidence: 'LOW', confidence_score: score });
  });

  it('of another organization is judged as it was', async () => {
    const [taught, other] = [await aBilledOrganization(api, WRONG), await aBilledOrganization(api, WRONG)];
    await refuse(taught, 10);
    await recomputeWeights(taught.orgDb, NOW);
    await runs.run(other);
    expect(await found(other)).toMatchObject({ confidence: 'HIGH', weight_set: 'default-1' });
    expect((await currentWeights(other.orgDb)).learned).toBeUndefined();
  });
});
