import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill, runGaps } from '../../support/bills.js';
import { startWorkingApi } from '../../support/workingApi.js';
import { readBody } from '../support/requests.js';

/** The lists and sums over one month of two accounts' bills, the calls behind most of them, and a run. */

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

let api: TestApi;
let org: TestOrganization;

const MTOK = 1_000_000;
/** The fifth to eighth of the last complete month: no provider restates them any more. */
const [D1, D2, D3, D4] = [5, 6, 7, 8].map(dayOfLastMonth) as [string, string, string, string];
const month = D1.slice(0, 7);

function dayOfLastMonth(day: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, day)).toISOString().slice(0, 10);
}

/** gpt-6-sol costs 2 dollars a million input tokens, claude-opus-5 costs 5. */
const OPENAI = `date,model,line_item,token_class,quantity,amount_usd,api_key
${D1},gpt-6-sol,,input,2000000,4,key_a
${D1},gpt-6-sol,,input,1000000,2,key_b
${D2},gpt-6-sol,,input,4000000,8,key_a
${D3},gpt-6-sol,,input,1000000,2,
`;
const ANTHROPIC = `date,model,token_class,quantity,amount_usd
${D1},claude-opus-5,input,1000000,5
${D4},claude-opus-5,input,2000000,10
`;

/** A fee that no call can show. */
const FEE = JSON.stringify({
  object: 'page',
  data: [
    {
      object: 'bucket',
      start_time: Date.parse(D4) / 1_000,
      end_time: Date.parse(D4) / 1_000 + 86_400,
      results: [
        {
          object: 'organization.costs.result',
          amount: { value: 3, currency: 'usd' },
          line_item: 'web search tool calls',
          project_id: 'proj_1',
        },
      ],
    },
  ],
  has_more: false,
  next_page: null,
});

const CALL_TOKENS = 100_000;

/** Calls that are short enough for ordinary rates. */
const calls = (day: string, tokens: number, more: object = {}) =>
  Array.from({ length: tokens / CALL_TOKENS }, (_, at) =>
    call(day, CALL_TOKENS, { ...more, request_id: `${day}-${JSON.stringify(more)}-${at}` }),
  );

const call = (day: string, tokens: number, more: object = {}) => ({
  provider: 'openai',
  model: 'gpt-6-sol',
  timestamp: `${day}T00:00:00Z`,
  request_id: `${day}-${tokens}-${JSON.stringify(more)}`,
  input_tokens: tokens,
  output_tokens: 0,
  ...more,
});

const get = (path: string, key = org.adminKey): Promise<Json> =>
  readBody(api, `/api/v1/reconciliation/${path}`, key);

const MONTH = `from=${month}-01&to=${dayOfLastMonth(28)}`;

beforeAll(async () => {
  api = await startWorkingApi();
  org = await api.addOrganization();
  const events = [
    ...calls(D1, 2 * MTOK, { provider_key_id: 'key_a' }),
    ...calls(D1, MTOK, { provider_key_id: 'key_b' }),
    ...calls(D2, 3 * MTOK, { provider_key_id: 'key_a' }),
    ...calls(D3, 1.5 * MTOK),
    ...calls(D1, MTOK, { provider: 'anthropic', model: 'claude-opus-5' }),
  ];
  const { body } = await api.post('/api/v1/ingest/events', { events }, org.ingestKey);
  expect(body.accepted).toBe(events.length);
  await importBill(api, OPENAI, { provider: 'openai', account: 'org-1' }, org.adminKey);
  await importBill(api, ANTHROPIC, { provider: 'anthropic', account: 'org-2' }, org.adminKey);
  await importBill(api, FEE, { provider: 'openai', account: 'org-1' }, org.adminKey);
  expect((await runGaps(api, '?period=90d', undefined, org.adminKey)).status).toBe('succeeded');
}, 120_000);

afterAll(() => api?.close());

const FIGURES = [
  'calls',
  'billed_tokens',
  'observed_tokens',
  'covered_tokens',
  'beyond_tokens',
  'billed_usd',
  'explained_usd',
  'not_matched_by_calls_usd',
  'not_observable_usd',
  'not_yet_observed_usd',
  'not_compared_usd',
  'uncounted_usd',
];

describe('the summary', () => {
  it('is what the matches of its month sum to, since every day of it is compared', async () => {
    const summary = await get('summary');
    const { totals, matches } = await get(`matches?${MONTH}`);
    expect(summary.period).toBe(month);
    expect(totals).toEqual({ matched_usd: summary.matched_usd, unmatched_usd: summary.unmatched_usd });
    expect(totals.matched_usd + totals.unmatched_usd).toBe(34);
    const grades = Object.values(summary.confidence_distribution) as number[];
    expect(grades.reduce((sum, usd) => sum + usd, 0)).toBe(34);
    expect(matches.reduce((sum: number, match: Json) => sum + match.provider_cost_usd, 0)).toBe(34);
  });

  it('counts what is unmatched as UNVERIFIED', async () => {
    const { confidence_distribution, unmatched_usd } = await get('summary');
    expect(Object.keys(confidence_distribution)).toEqual(['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED']);
    expect(confidence_distribution.UNVERIFIED).toBeGreaterThanOrEqual(unmatched_usd);
  });
});

describe('a match', () => {
  it('counts its calls and states what it is', async () => {
    const { matches } = await get(`matches?${MONTH}`);
    const of = (day: string, model: string) =>
      matches.find((match: Json) => match.usage_start.startsWith(day) && match.model.includes(model));
    expect(of(D1, 'gpt-6-sol')).toMatchObject({
      match_status: 'matched',
      event_count: 30,
      quantity: 3 * MTOK,
      unit: 'tokens',
    });
    expect(of(D2, 'gpt-6-sol')).toMatchObject({
      match_status: 'partial',
      delta_usd: 2,
      event_count: 30,
      reasons: ['quantities_differ'],
    });
    expect(of(D4, 'web search')).toMatchObject({
      match_status: 'unmatched',
      confidence_score: null,
      quantity: null,
      unit: null,
      description: 'web search tool calls',
      reasons: ['not_observable'],
    });
    expect(of(D4, 'claude')).toMatchObject({
      match_status: 'unmatched',
      event_count: 0,
      reasons: ['no_calls'],
    });
  });
});

describe('coverage', () => {
  it.each(['provider', 'account', 'model', 'key', 'day'])('by %s sums to its totals', async (group) => {
    const { groups, totals, group_by } = await get(`coverage?group_by=${group}&${MONTH}`);
    expect(group_by).toBe(group);
    for (const name of FIGURES)
      expect(groups.reduce((sum: number, one: Json) => sum + one[name], 0)).toBeCloseTo(totals[name], 9);
    expect(totals.billed_usd).toBe(34);
    expect(totals.days).toBe(4);
    for (const one of [...groups, totals]) {
      expect(one.billed_usd).toBeCloseTo(
        one.explained_usd +
          one.not_matched_by_calls_usd +
          one.not_observable_usd +
          one.not_yet_observed_usd +
          one.not_compared_usd,
        9,
      );
      for (const share of [one.token_share, one.dollar_share])
        expect(share === null || (share >= 0 && share <= 1)).toBe(true);
    }
  });

  it('by provider is the share of tokens and dollars that calls show', async () => {
    const { groups } = await get(`coverage?${MONTH}`);
    expect(groups.map(({ provider }: Json) => provider)).toEqual(['openai', 'anthropic']);
    expect(groups[0]).toMatchObject({
      days: 4,
      calls: 75,
      billed_tokens: 8 * MTOK,
      // The half million that is on no bill lifts no share.
      observed_tokens: 7.5 * MTOK,
      covered_tokens: 7 * MTOK,
      beyond_tokens: 0.5 * MTOK,
      token_share: 0.875,
      billed_usd: 19,
      explained_usd: 14,
      not_matched_by_calls_usd: 2,
      dollar_share: 0.875,
      not_observable_usd: 3,
      not_compared_usd: 0,
    });
    expect(groups[1]).toMatchObject({ token_share: 0.333333, dollar_share: 0.333333, billed_usd: 15 });
  });

  it('by day is newest first, and by account and model names them', async () => {
    const days = (await get(`coverage?group_by=day&${MONTH}`)).groups;
    expect(days.map(({ day }: Json) => day)).toEqual([D4, D3, D2, D1]);
    const accounts = (await get(`coverage?group_by=account&${MONTH}`)).groups;
    expect(accounts.map((one: Json) => [one.provider, one.provider_account_id])).toEqual([
      ['openai', 'org-1'],
      ['anthropic', 'org-2'],
    ]);
    const models = (await get(`coverage?group_by=model&${MONTH}`)).groups;
    expect(models.map(({ model }: Json) => model)).toEqual([
      'gpt-6-sol',
      'claude-opus-5',
      'web search tool calls',
    ]);
    expect(models[2]).toMatchObject({ token_share: null, dollar_share: null, not_observable_usd: 3 });
  });

  it('by key compares what is billed to a key with the calls that name it', async () => {
    const { groups } = await get(`coverage?group_by=key&provider=openai&${MONTH}`);
    const of = (key: string) => groups.find(({ provider_key_id }: Json) => provider_key_id === key);
    expect(of('key_a')).toMatchObject({
      billed_tokens: 6 * MTOK,
      covered_tokens: 5 * MTOK,
      token_share: 0.833333,
      billed_usd: 12,
      explained_usd: 10,
      not_matched_by_calls_usd: 2,
    });
    expect(of('key_b')).toMatchObject({ token_share: 1, dollar_share: 1, billed_usd: 2 });
    // Charges without a key are not compared with keys.
    expect(of('')).toMatchObject({
      token_share: null,
      dollar_share: null,
      not_compared_usd: 2,
      not_observable_usd: 3,
    });
  });

  it('by key has null shares where no call of a provider names a key', async () => {
    const { groups } = await get(`coverage?group_by=key&provider=anthropic&${MONTH}`);
    expect(groups).toHaveLength(1);
    expect(groups[0]).toMatchObject({ token_share: null, dollar_share: null, not_compared_usd: 15 });
  });

  it('narrows by provider, account and days, and is paged', async () => {
    const billed = async (query: string) => (await get(`coverage?${query}`)).totals.billed_usd;
    expect(await billed(`provider=anthropic&${MONTH}`)).toBe(15);
    expect(await billed(`provider_account_id=org-1&${MONTH}`)).toBe(19);
    expect(await billed(`provider=nobody&${MONTH}`)).toBe(0);
    expect(await billed(`from=${D2}&to=${D3}`)).toBe(10);
    const first = await get(`coverage?group_by=day&limit=3&${MONTH}`);
    expect([first.count, first.has_more, first.totals.billed_usd]).toEqual([3, true, 34]);
    const rest = await get(`coverage?group_by=day&limit=3&${MONTH}&offset=3`);
    expect(rest.groups.map(({ day }: Json) => day)).toEqual([D1]);
    expect([rest.offset, rest.has_more]).toEqual([3, false]);
  });

  it.each([
    ['group_by=team', 'invalid_parameter', 'group_by'],
    ['from=2020-01-01&to=2021-06-01', 'invalid_range', 'from'],
    ['from=2021-01-01&to=2020-01-01', 'invalid_range', 'from'],
    ['limit=0', 'invalid_parameter', 'limit'],
    ['offset=x', 'invalid_parameter', 'offset'],
  ])('%s is refused', async (query, code, field) => {
    const { status, body } = await api.get(`/api/v1/reconciliation/coverage?${query}`, org.adminKey);
    expect([status, body.code, body.errors[0].field]).toEqual([400, code, field]);
  });

  it('of another organization is nothing', async () => {
    const other = await api.addOrganization();
    for (const group of ['provider', 'key', 'day']) {
      const { groups, totals } = await get(`coverage?group_by=${group}&${MONTH}`, other.adminKey);
      expect([groups, totals.billed_usd, totals.calls, totals.token_share]).toEqual([[], 0, 0, null]);
    }
  });
});

describe('a day whose bill has changed since it was compared', () => {
  it('is billed and not compared, in no share, until it is compared again', async () => {
    const other = await api.addOrganization();
    const csv = (usd: string) =>
      `date,model,token_class,quantity,amount_usd\n${D1},gpt-6-sol,input,1000000,${usd}\n`;
    await api.post('/api/v1/ingest/events', { events: calls(D1, MTOK) }, other.ingestKey);
    await importBill(api, csv('2'), { provider: 'openai' }, other.adminKey);
    const coverage = async () => (await get(`coverage?group_by=model&${MONTH}`, other.adminKey)).groups;
    expect(await coverage()).toMatchObject([
      { model: null, not_compared_usd: 2, token_share: null, dollar_share: null },
    ]);
    await runGaps(api, '?period=90d', undefined, other.adminKey);
    expect(await coverage()).toMatchObject([{ model: 'gpt-6-sol', explained_usd: 2, token_share: 1 }]);
    await importBill(api, csv('3'), { provider: 'openai' }, other.adminKey);
    expect(await coverage()).toMatchObject([
      { model: null, billed_usd: 3, not_compared_usd: 3, token_share: null },
    ]);
  });
});
