import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anEvent, ingest, send } from '../api/support/requests.js';
import type { TestApi, TestOrganization } from '../support/api.js';
import { importBill, runGaps } from '../support/bills.js';
import { startWorkingApi } from '../support/workingApi.js';

const MODEL = 'gpt-5.6-sol';
const TOKENS = 100_000;
const SOURCE = { document: 'Order form 7' };
const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
const DAY = dayAgo(6);

let api: TestApi;
beforeAll(async () => {
  api = await startWorkingApi();
});
afterAll(() => api?.close());

interface BillLine {
  amount: string;
  account?: string;
  apiKey?: string;
  day?: string;
}

/** A bill as a saved page of OpenAI's costs, a bucket for each day. */
function billOf(lines: readonly BillLine[]): string {
  const days = [...new Set(lines.map((line) => line.day ?? DAY))].sort();
  const data = days.map((day) => {
    const start = Date.parse(day) / 1_000;
    const results = lines
      .filter((line) => (line.day ?? DAY) === day)
      .map((line) => ({
        object: 'organization.costs.result',
        amount: { value: line.amount, currency: 'usd' },
        line_item: `${MODEL}, input`,
        organization_id: line.account ?? 'acct-a',
        api_key_id: line.apiKey ?? null,
        quantity: TOKENS,
        quantity_unit: 'tokens',
      }));
    return { object: 'bucket', start_time: start, end_time: start + 86_400, results };
  });
  return JSON.stringify({ object: 'page', data, has_more: false, next_page: null });
}

const bill = (org: TestOrganization, lines: readonly BillLine[]) =>
  importBill(api, billOf(lines), { provider: 'openai' }, org.adminKey);

const call = (org: TestOrganization, over: object = {}) =>
  ingest(
    api,
    [
      anEvent({
        timestamp: `${DAY}T10:00:00Z`,
        provider: 'openai',
        model: MODEL,
        input_tokens: TOKENS,
        output_tokens: 0,
        cache_read: 0,
        cache_creation: 0,
        session_id: `s-${Math.random()}`,
        ...over,
      }),
    ],
    org.ingestKey,
  );

const contract = (org: TestOrganization, percent: number, over: object = {}) =>
  api.post(
    '/api/v1/pricing/contract-rates',
    {
      provider: 'openai',
      model: '*',
      discount_percent: percent,
      effective_from: '2026-01-01',
      source: SOURCE,
      ...over,
    },
    org.adminKey,
  );

const putKeys = (org: TestOrganization, items: object[], key = org.adminKey) =>
  send(
    { baseUrl: api.baseUrl, adminKey: key },
    {
      method: 'PUT',
      path: '/api/v1/provider-keys',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ items }),
    },
  );
const aKey = (over: object = {}) => ({
  provider: 'openai',
  provider_key_id: 'key_1',
  name: 'backend',
  status: 'active',
  ...over,
});

const run = (org: TestOrganization) => runGaps(api, '?period=30d', undefined, org.adminKey);
const gaps = async (org: TestOrganization) =>
  (await api.get('/api/v1/reconciliation/gap-explorer?period=30d', org.adminKey)).body.gaps;

async function bucketsOf(org: TestOrganization) {
  const { rows } = await api.database.superuser.query(
    `select provider_account_id as account, match_status as status, rate_usd::float8 as rate, volume_usd::float8 as volume,
       own_pricing_usd::float8 as own, expected_cost_usd::float8 as expected
     from gap_buckets b where org_id = $1 and width = 'day' and run_id = (select id from gap_runs where org_id = $1 order by created_at desc limit 1)
     order by 1`,
    [org.orgId],
  );
  return rows;
}

describe('a gap run of an organization with a contract', () => {
  it('shows a bill at list price as a rate above what was agreed', async () => {
    const org = await api.addOrganization();
    await contract(org, 10);
    await call(org);
    await bill(org, [{ amount: '0.4' }]);
    const { result } = await run(org);
    expect(result.rate_mismatches).toEqual([
      expect.objectContaining({
        billed_rate_per_mtok: 4,
        list_rate_per_mtok: 3.6,
        excess_usd_exact: '0.04',
        price_source: 'contract',
        agreement: 'contract',
        disputed: false,
      }),
    ]);
    const [bucket] = await bucketsOf(org);
    expect(bucket).toMatchObject({ expected: 0.36, rate: 0.04, volume: 0, own: 0 });
  });

  it('finds nothing in a bill at the contract price, where another organization’s is below the list', async () => {
    const [agreed, other] = [await api.addOrganization(), await api.addOrganization()];
    await contract(agreed, 10);
    for (const org of [agreed, other]) {
      await call(org);
      await bill(org, [{ amount: '0.36' }]);
    }
    expect((await run(agreed)).result.rate_mismatches).toEqual([]);
    expect((await gaps(agreed)).filter((gap: { flagged: boolean }) => gap.flagged)).toEqual([]);
    expect(await bucketsOf(agreed)).toEqual([expect.objectContaining({ status: 'matched', rate: 0 })]);
    await run(other);
    expect(await bucketsOf(other)).toEqual([expect.objectContaining({ expected: 0.4, rate: -0.04 })]);
  });

  it('judges each day by what held on it, also where the entry came after the calls', async () => {
    const org = await api.addOrganization();
    const before = dayAgo(7);
    await call(org);
    await call(org, { timestamp: `${before}T10:00:00Z` });
    await bill(org, [{ amount: '0.2' }, { amount: '0.4', day: before }]);
    await contract(org, 50, { effective_from: DAY });
    expect((await run(org)).result.rate_mismatches).toEqual([]);
  });
});

describe('provider keys', () => {
  it('assign their account to calls that name only the key, however late they are entered', async () => {
    const org = await api.addOrganization();
    await call(org, { _service: { provider_key_id: 'key_1' } });
    await call(org, { _service: { provider_key_id: 'key_2', provider_account_id: 'acct-b' } });
    await bill(org, [{ amount: '0.4' }, { amount: '0.4', account: 'acct-b' }]);
    await run(org);
    expect((await bucketsOf(org)).map(({ account }) => account)).toEqual(['']);
    await putKeys(org, [
      aKey({ provider_account_id: 'acct-a' }),
      aKey({ provider_key_id: 'key_2', provider_account_id: 'acct-a' }),
    ]);
    await run(org);
    expect(await bucketsOf(org)).toEqual([
      expect.objectContaining({ account: 'acct-a', status: 'matched' }),
      // The account of the call takes precedence over that of its key.
      expect.objectContaining({ account: 'acct-b', status: 'matched' }),
    ]);
  });

  it('that are billed and in no entry and no call are shown, and those billed after they were revoked', async () => {
    const org = await api.addOrganization();
    await call(org, { _service: { provider_key_id: 'seen' } });
    await putKeys(org, [
      aKey({ provider_key_id: 'entered' }),
      aKey({ provider_key_id: 'gone', status: 'revoked', revoked_at: `${dayAgo(7)}T12:00:00Z` }),
    ]);
    await bill(org, [
      { amount: '0.4', apiKey: 'seen' },
      { amount: '0.5', apiKey: 'entered' },
      { amount: '0.7', apiKey: 'stranger' },
      { amount: '0.25', apiKey: 'stranger', day: dayAgo(8) },
      { amount: '1.5', apiKey: 'gone', day: dayAgo(7) },
      { amount: '0.1', apiKey: 'gone' },
    ]);
    const expected = [
      {
        provider_key_id: 'stranger',
        reason: 'unknown',
        first_day: dayAgo(8),
        last_day: DAY,
        billed_usd: 0.95,
      },
      {
        provider_key_id: 'gone',
        reason: 'billed_after_revocation',
        first_day: DAY,
        last_day: DAY,
        billed_usd: 0.1,
      },
    ].map((key) => ({ provider: 'openai', provider_account_id: 'acct-a', ...key }));
    const { body } = await api.get('/api/v1/provider-keys', org.adminKey);
    expect(body).toMatchObject({ count: 2, unknown: expected, unknown_count: 2 });
    expect((await api.get(`/api/v1/provider-keys?until=${dayAgo(8)}`, org.adminKey)).body.unknown).toEqual([
      expect.objectContaining({ provider_key_id: 'stranger', billed_usd: 0.25 }),
    ]);
    expect((await run(org)).result).toMatchObject({ suspect_keys: expected, suspect_key_count: 2 });
    // A newer copy of the same day that no longer names the key takes its place.
    await bill(org, [
      { amount: '0.7' },
      { amount: '1.5', apiKey: 'gone', day: dayAgo(7) },
      { amount: '0.25', day: dayAgo(8) },
    ]);
    expect((await api.get('/api/v1/provider-keys', org.adminKey)).body.unknown).toEqual([]);
  });
});

describe('PUT /api/v1/provider-keys', () => {
  it('enters new keys, changes those that are there and leaves the rest; the same again changes nothing', async () => {
    const org = await api.addOrganization();
    const first = await putKeys(org, [
      aKey({ project: 'p', team_id: 't', active_from: '2026-01-01' }),
      aKey({ provider_key_id: 'key_2' }),
    ]);
    expect(first.status).toBe(200);
    expect(first.body.items[0]).toEqual({
      provider: 'openai',
      provider_account_id: null,
      provider_key_id: 'key_1',
      name: 'backend',
      project: 'p',
      team_id: 't',
      status: 'active',
      active_from: '2026-01-01T00:00:00Z',
      revoked_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const revoked = aKey({ status: 'revoked', revoked_at: '2026-02-01T00:00:00Z' });
    await putKeys(org, [revoked]);
    const again = await putKeys(org, [revoked]);
    expect(again.body).toMatchObject({ count: 1, items: [{ status: 'revoked', project: null }] });
    const { body } = await api.get('/api/v1/provider-keys', org.adminKey);
    expect(
      body.items.map((key: { provider_key_id: string; status: string }) => [key.provider_key_id, key.status]),
    ).toEqual([
      ['key_1', 'revoked'],
      ['key_2', 'active'],
    ]);
    const { rows } = await api.database.superuser.query(
      `select item->>'status' as status from provider_key_changes where org_id = $1 and provider_key_id = 'key_1' order by id`,
      [org.orgId],
    );
    expect(rows.map(({ status }) => status)).toEqual(['active', 'revoked']);
  });

  it.each([
    ['an unknown field', [aKey({ secret: 'sk-1' })], 'items.0.secret'],
    ['an unknown provider', [aKey({ provider: 'acme' })], 'items.0.provider'],
    ['no id', [aKey({ provider_key_id: ' ' })], 'items.0.provider_key_id'],
    ['an unknown status', [aKey({ status: 'lost' })], 'items.0.status'],
    ['a revoked key without its time', [aKey({ status: 'revoked' })], 'items.0.revoked_at'],
    ['an active key with such a time', [aKey({ revoked_at: '2026-01-01' })], 'items.0.revoked_at'],
    [
      'an end before the beginning',
      [aKey({ status: 'revoked', active_from: '2026-02-01', revoked_at: '2026-01-01' })],
      'items.0.revoked_at',
    ],
    ['a key given twice', [aKey(), aKey()], 'items.1.provider_key_id'],
  ])('refuses %s', async (_, items, field) => {
    const { status, body } = await putKeys(api, items);
    expect(status).toBe(400);
    expect(body.errors.map((issue: { field: string }) => issue.field)).toContain(field);
  });

  it('needs an admin, and shows nothing of another organization', async () => {
    const member = await api.addKey(api.orgId, 'member');
    expect((await putKeys(api, [aKey()], member)).status).toBe(403);
    expect((await putKeys(api, [aKey()])).status).toBe(200);
    const other = await api.addOrganization();
    expect((await api.get('/api/v1/provider-keys', other.adminKey)).body.items).toEqual([]);
  });
});
