import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { recomputeWeights } from '../../../usecases/reconciliation/recomputeWeights.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { type ClaimToStore, storeClaim } from '../../support/claims.js';
import { claimsOf } from '../support/claims.js';
import { day } from '../support/financial.js';
import { readBody } from '../support/requests.js';

const WEIGHTS = '/api/v1/reconciliation/weights';
const KIND = 'cache_read_rate_mismatch';
const NOW = 1_792_500_000_000_000n;
const WATERFALL = [
  { signal: 'time', level: 'same_bucket', bits: 3 },
  { signal: 'model', level: 'alias', bits: 3 },
];

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

const read = (org: TestOrganization, query = ''): Promise<Json> =>
  readBody(api, `${WEIGHTS}${query}`, org.adminKey);
const of = (body: Json, kind: string) => body.detectors.find((one: Json) => one.kind === kind);

const claimed = (org: TestOrganization, given: Partial<ClaimToStore> = {}, kind = KIND) =>
  storeClaim(org.orgDb, {
    disputes: [{ cents: 5_000, kind: kind as typeof KIND, probability: 0.97, waterfall: WATERFALL }],
    ...given,
  });

const tierOf = async (org: TestOrganization, id: string) =>
  (
    await org.orgDb.rows<{ confidence_tier: string; version: number }>(
      'select confidence_tier, version from claims where org_id = $1 and id = $2',
      [org.orgId, id],
    )
  )[0];

describe('the learned weights', () => {
  it('are the shipped weights for an organization without outcomes', async () => {
    const org = await api.addOrganization();
    const body = await read(org);
    expect(body).toMatchObject({
      ...{ version: 'default-1', base: 'default-1', made_at: null, learned_outcomes: 0, outcome_count: 0 },
      ...{ rivals: [], rescored_drafts: [], outcomes: [], count: 0, offset: 0, has_more: false },
      thresholds: { high: 0.95, medium: 0.8, low: 0.5, default: { high: 0.95, medium: 0.8, low: 0.5 } },
      calibrator: { outcomes: 0, method: 'platt', slope: 1, shift: 0, points: [], providers: [] },
    });
    expect(body.detectors).toHaveLength(25);
    expect(of(body, KIND)).toEqual({
      ...{ kind: KIND, outcomes: 0, credited: 0, failed: 0, precision: 0.9, odds_factor: 1, cap: null },
      prior: { a: 9, b: 1, precision: 0.9 },
    });
    expect(body.levels.length).toBeGreaterThan(30);
    for (const { bits, bits_before, credited, denied } of body.levels)
      expect([bits, credited, denied]).toEqual([bits_before, 0, 0]);
    expect(await recomputeWeights(org.orgDb, NOW)).toEqual({ version: null, isNew: false, rescored: [] });
    expect(await read(org)).toEqual(body);
  });

  it('are shown beside the shipped ones, with the outcomes that they were learned from', async () => {
    const org = await api.addOrganization();
    const ids: string[] = [];
    for (let claim = 0; claim < 6; claim += 1) ids.push((await claimed(org, { status: 'denied' })).id);
    const credited = await claimed(org, { status: 'credit_issued' });
    expect(await read(org)).toMatchObject({ version: 'default-1', learned_outcomes: 0, outcome_count: 7 });
    await recomputeWeights(org.orgDb, NOW);
    const body = await read(org);
    expect(body).toMatchObject({
      ...{ version: 'learned-1', base: 'default-1', learned_outcomes: 7, outcome_count: 7, count: 7 },
      made_at: '2026-10-20T12:40:00Z',
    });
    const detector = of(body, KIND);
    expect(detector).toMatchObject({ outcomes: 7, prior: { a: 9, b: 1, precision: 0.9 } });
    expect(detector.precision).toBe(10 / 17);
    expect(detector.odds_factor).toBeCloseTo(10 / 7 / 9, 12);
    expect(detector.cap.toFixed(2)).toBe('0.77');
    expect(of(body, 'duplicate_charge')).toMatchObject({ outcomes: 0, odds_factor: 1, cap: null });
    const level = body.levels.find((one: Json) => one.signal === 'model' && one.level === 'alias');
    expect(level.credited).toBe(1);
    expect(level.denied).toBeGreaterThan(0);
    expect(body.outcomes.map((one: Json) => one.claim_id).sort()).toEqual(
      [...ids, credited.id].map((id) => publicId('clm', id)).sort(),
    );
    expect(body.outcomes.find((one: Json) => one.claim_id === publicId('clm', credited.id))).toMatchObject({
      ...{ claimed_type: KIND, provider: 'openai', status: 'credit_issued', violation_type: null },
      ...{ claimed_cents: 5_000, fraction: 1, probability: 0.97 },
      levels: { time: 'same_bucket', model: 'alias' },
    });
  });

  it('get a new version with another outcome, and none without', async () => {
    const org = await api.addOrganization();
    await claimed(org, { status: 'denied' });
    expect(await recomputeWeights(org.orgDb, NOW)).toMatchObject({ version: 1, isNew: true });
    const first = await read(org);
    expect(await recomputeWeights(org.orgDb, NOW + 1_000_000n)).toMatchObject({ version: 1, isNew: false });
    expect(await read(org)).toEqual(first);
    await claimed(org, { status: 'partial' });
    expect(await recomputeWeights(org.orgDb, NOW)).toMatchObject({ version: 2, isNew: true });
    expect(await read(org)).toMatchObject({ version: 'learned-2', learned_outcomes: 2 });
    const stored = await org.orgDb.rows('select version from weight_sets where org_id = $1 order by 1', [
      org.orgId,
    ]);
    expect(stored).toEqual([{ version: 1 }, { version: 2 }]);
  });

  it('are one version however many recomputes run at once, and no version is ever changed', async () => {
    const org = await api.addOrganization();
    for (let claim = 0; claim < 3; claim += 1) await claimed(org, { status: 'denied' });
    const attempts = await Promise.allSettled(
      Array.from({ length: 4 }, () => recomputeWeights(org.orgDb, NOW)),
    );
    // Who comes second is refused by the table, and finds it done when it comes again.
    expect(attempts.filter((one) => one.status === 'fulfilled' && one.value.isNew)).toHaveLength(1);
    expect(await recomputeWeights(org.orgDb, NOW)).toMatchObject({ version: 1, isNew: false });
    for (const change of ['update weight_sets set version = 2', 'delete from weight_sets'])
      await expect(org.orgDb.run(`${change} where org_id = $1`, [org.orgId])).rejects.toThrow(
        'permission denied',
      );
  });

  it('list the kinds that denials named instead, for the provider that denied', async () => {
    const org = await api.addOrganization();
    const { id } = await claimed(org, { status: 'denied' });
    await api.database.superuser.query(
      `update claim_outcomes set violation_type = 'unobserved_usage' where org_id = $1 and claim_id = $2`,
      [org.orgId, id],
    );
    await recomputeWeights(org.orgDb, NOW);
    expect((await read(org)).rivals).toEqual([
      { provider: 'openai', kind: 'unobserved_usage', denials: 1, prior_before: 0.01, prior: 0.02 },
    ]);
  });

  it('list their outcomes page by page, the newest first', async () => {
    const org = await api.addOrganization();
    for (let claim = 0; claim < 5; claim += 1) await claimed(org, { status: 'denied' });
    const all = (await read(org)).outcomes;
    const pages = [
      await read(org, '?limit=2'),
      await read(org, '?limit=2&offset=2'),
      await read(org, '?limit=2&offset=4'),
    ];
    expect(pages.flatMap((page) => page.outcomes)).toEqual(all);
    expect(pages.map((page) => page.has_more)).toEqual([true, true, false]);
    const times = all.map((one: Json) => one.at);
    expect(times).toEqual([...times].sort().reverse());
  });

  it('are hidden from keys that only send calls, and from other organizations', async () => {
    const [org, other] = [await api.addOrganization(), await api.addOrganization()];
    await claimed(org, { status: 'denied' });
    await recomputeWeights(org.orgDb, NOW);
    expect(await read(other)).toMatchObject({ version: 'default-1', outcome_count: 0 });
    expect((await api.get(WEIGHTS, org.ingestKey)).status).toBe(403);
  });
});

describe('drafts of claims', () => {
  it('get the tier that follows from what was learned; what was sent keeps its own', async () => {
    const org = await api.addOrganization();
    const draft = await claimed(org);
    const other = await claimed(org, {}, 'region_uplift_misapplied');
    const sent = await claimed(org, { status: 'submitted_to_provider' });
    for (let claim = 0; claim < 10; claim += 1) await claimed(org, { status: 'denied' });
    const rescored = [{ claimId: draft.id, from: 'HIGH', to: 'LOW', belowLow: false }];
    expect(await recomputeWeights(org.orgDb, NOW)).toEqual({ version: 1, isNew: true, rescored });
    // The version that commands name stays until a person requests another.
    expect(await tierOf(org, draft.id)).toEqual({ confidence_tier: 'LOW', version: draft.version });
    expect(await tierOf(org, other.id)).toMatchObject({ confidence_tier: 'HIGH' });
    expect(await tierOf(org, sent.id)).toMatchObject({ confidence_tier: 'HIGH' });
    expect((await read(org)).rescored_drafts).toEqual([
      { claim_id: publicId('clm', draft.id), from: 'HIGH', to: 'LOW', below_low: false },
    ]);
    expect((await recomputeWeights(org.orgDb, NOW)).rescored).toEqual([]);
  });

  it('that are worth less than LOW stay LOW, and the answer states it', async () => {
    const org = await api.addOrganization();
    const draft = await claimed(org);
    for (let claim = 0; claim < 30; claim += 1) await claimed(org, { status: 'denied' });
    expect((await recomputeWeights(org.orgDb, NOW)).rescored).toEqual([
      { claimId: draft.id, from: 'HIGH', to: 'LOW', belowLow: true },
    ]);
    expect(await tierOf(org, draft.id)).toMatchObject({ confidence_tier: 'LOW' });
  });

  it('that are made later have the tier that their disputes have by then, on paper too', async () => {
    const claims = claimsOf(() => api);
    const sure = { probability: 0.97, grade: 'HIGH' as const };
    const { org, disputes } = await claims.orgWithDisputes(
      { ...sure, days: [day(10n)], kind: KIND },
      { ...sure, days: [day(20n, '2026-03-12')], kind: 'region_uplift_misapplied', model: 'o3' },
    );
    for (let claim = 0; claim < 10; claim += 1) await claimed(org, { status: 'denied' });
    await recomputeWeights(org.orgDb, NOW);
    const [doubted = '', trusted = ''] = disputes;
    const { body } = await claims.create(org, [doubted]);
    expect(body).toMatchObject({ status: 'draft', confidence_tier: 'LOW' });
    expect(body.evidence.claim.confidence_tier).toBe('LOW');
    expect((await claims.create(org, [trusted])).body).toMatchObject({ confidence_tier: 'HIGH' });
    expect((await recomputeWeights(org.orgDb, NOW)).rescored).toEqual([]);
  });

  it('have the tier of the least sure of their disputes', async () => {
    const org = await api.addOrganization();
    const dispute = { cents: 5_000, probability: 0.97, waterfall: WATERFALL };
    const draft = await claimed(org, {
      disputes: [
        { ...dispute, kind: 'region_uplift_misapplied' },
        { ...dispute, kind: KIND },
      ],
    });
    for (let claim = 0; claim < 4; claim += 1) await claimed(org, { status: 'denied' });
    await recomputeWeights(org.orgDb, NOW);
    expect(await tierOf(org, draft.id)).toMatchObject({ confidence_tier: 'MEDIUM' });
  });

  it('are left alone by a recompute that fails', async () => {
    const org = await api.addOrganization();
    const draft = await claimed(org);
    for (let claim = 0; claim < 10; claim += 1) await claimed(org, { status: 'denied' });
    await expect(
      org.orgDb.transaction(async (inside) => {
        await recomputeWeights(inside, NOW);
        throw new Error('the connection broke');
      }),
    ).rejects.toThrow('the connection broke');
    expect(await tierOf(org, draft.id)).toMatchObject({ confidence_tier: 'HIGH' });
    expect(await read(org)).toMatchObject({ version: 'default-1', learned_outcomes: 0, outcome_count: 10 });
  });
});
