import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../db/client.js';
import { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, ingest, send } from '../support/requests.js';

const CONTRACT = '/api/v1/pricing/contract-rates';
const OVERRIDES = '/api/v1/pricing/overrides';
const SOURCE = { document: 'Order form 7', clause: '3.2', url: 'https://example.com/order-7.pdf' };
const MODEL = 'gpt-5.6-sol';
const DAY = '2026-09-10';
const at = (day: string) => `${day}T12:00:00Z`;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const discount = (over: object = {}) => ({
  provider: 'openai',
  model: '*',
  discount_percent: '12.5',
  effective_from: '2026-01-01',
  source: SOURCE,
  ...over,
});
const override = (over: object = {}) => ({
  provider: 'openai',
  model: MODEL,
  rates: { input: 3, output: '21.5' },
  effective_from: '2026-01-01',
  ...over,
});

async function enter(org: TestOrganization, path: string, body: object) {
  const answer = await api.post(path, body, org.adminKey);
  expect(answer.body).toMatchObject({ id: expect.any(String) });
  expect(answer.status).toBe(201);
  return answer.body;
}

const remove = (org: { adminKey: string }, path: string) =>
  send({ baseUrl: api.baseUrl, adminKey: org.adminKey }, { method: 'DELETE', path });

/** The cost of a call of 100,000 tokens in and out for the organization, with its calculation. */
async function costOf(org: TestOrganization, event: object = {}) {
  const sessionId = `s-${Math.random()}`;
  await ingest(
    api,
    [
      anEvent({
        timestamp: at(DAY),
        provider: 'openai',
        model: MODEL,
        input_tokens: 100_000,
        output_tokens: 100_000,
        cache_read: 0,
        cache_creation: 0,
        session_id: sessionId,
        ...event,
      }),
    ],
    org.ingestKey,
  );
  const { body } = await api.get(`/api/v1/events?session_id=${sessionId}`, org.adminKey);
  const found = body.events.find((one: { session_id: string }) => one.session_id === sessionId);
  return (await api.get(`/api/v1/events/${found.id}/cost`, org.adminKey)).body;
}

describe('POST /api/v1/pricing/contract-rates', () => {
  it('enters a discount and returns it with its proof, to the digit', async () => {
    const org = await api.addOrganization();
    const entry = await enter(
      org,
      CONTRACT,
      discount({ discount_percent: '7.123456789012', effective_to: '2027-01-01' }),
    );
    expect(entry).toMatchObject({
      id: expect.stringMatching(/^ctr_[0-9a-f]{32}$/),
      provider: 'openai',
      model: '*',
      covers: 'all',
      discount_percent: 7.123456789012,
      rates: null,
      effective_from: '2026-01-01',
      effective_to: '2027-01-01',
      source: SOURCE,
      ended_at: null,
      ends_on: '2027-01-01',
    });
    const { rows } = await api.database.superuser.query(
      'select discount_percent::text as percent from own_prices where org_id = $1',
      [org.orgId],
    );
    expect(rows).toEqual([{ percent: '7.123456789012' }]);
  });

  it.each([
    ['an unknown field', discount({ percent: 5 }), 'percent'],
    ['an unknown provider', discount({ provider: 'acme' }), 'provider'],
    ['no model', discount({ model: undefined }), 'model'],
    ['neither discount nor rates', discount({ discount_percent: undefined }), 'discount_percent'],
    ['both', discount({ model: MODEL, rates: { input: 1 } }), 'discount_percent'],
    ['rates for all models', discount({ discount_percent: undefined, rates: { input: 1 } }), 'rates'],
    ['no rate at all', discount({ model: MODEL, discount_percent: undefined, rates: {} }), 'rates'],
    ['a discount of nothing', discount({ discount_percent: 0 }), 'discount_percent'],
    ['a discount of everything', discount({ discount_percent: 100 }), 'discount_percent'],
    ['a discount with 13 decimals', discount({ discount_percent: '1.1234567890123' }), 'discount_percent'],
    [
      'a negative rate',
      discount({ model: MODEL, discount_percent: undefined, rates: { input: -1 } }),
      'rates.input',
    ],
    [
      'a rate that is no number',
      discount({ model: MODEL, discount_percent: undefined, rates: { output: '2 USD' } }),
      'rates.output',
    ],
    [
      'an unknown class',
      discount({ model: MODEL, discount_percent: undefined, rates: { audio: 1 } }),
      'rates',
    ],
    ['no beginning', discount({ effective_from: undefined }), 'effective_from'],
    ['a beginning with a time', discount({ effective_from: '2026-01-01T00:00:00Z' }), 'effective_from'],
    ['a day that is none', discount({ effective_from: '2026-02-30' }), 'effective_from'],
    ['an end that is no later', discount({ effective_to: '2026-01-01' }), 'effective_to'],
    ['no source', discount({ source: undefined }), 'source'],
    ['a source without a document', discount({ source: { clause: '1' } }), 'source.document'],
    [
      'an address that is none',
      discount({ source: { document: 'x', url: 'javascript:alert(1)' } }),
      'source.url',
    ],
    ['a discount on a model that has no price', discount({ model: 'gtp-5' }), 'model'],
    [
      'one rate for a model that has no price',
      discount({ model: 'gtp-5', discount_percent: undefined, rates: { input: 1 } }),
      'rates',
    ],
  ])('refuses %s', async (_, body, field) => {
    const answer = await api.post(CONTRACT, body);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('invalid_body');
    expect(answer.body.errors.map((issue: { field: string }) => issue.field)).toContain(field);
  });

  it('needs an admin, reading needs pricing:read', async () => {
    const member = await api.addKey(api.orgId, 'member');
    expect((await api.post(CONTRACT, discount(), member)).status).toBe(403);
    expect((await api.get(CONTRACT, member)).status).toBe(200);
    expect((await api.get(CONTRACT, api.ingestKey)).status).toBe(403);
  });
});

describe('an organization with a contract', () => {
  it('is charged by it on ingest from the next call on, another organization by its own', async () => {
    const [a, b, c] = [await api.addOrganization(), await api.addOrganization(), await api.addOrganization()];
    await enter(a, CONTRACT, discount({ discount_percent: 10 }));
    await enter(
      b,
      CONTRACT,
      discount({ model: MODEL, discount_percent: undefined, rates: { input: '1.1' } }),
    );
    expect((await costOf(a)).cost_usd).toBe(2.16);
    expect((await costOf(b)).cost_usd).toBe(2.11);
    expect((await costOf(c)).cost_usd).toBe(2.4);
  });

  it('sees list and contract in the sum of a call: which entry, its proof, each rate before and after', async () => {
    const org = await api.addOrganization();
    await enter(org, OVERRIDES, override());
    const entry = await enter(org, CONTRACT, discount());
    const cost = await costOf(org);
    expect(cost).toMatchObject({
      cost_usd: 2.14375,
      repriced: false,
      price: { id: entry.id, source: 'contract', agreement: 'contract', disputed: false },
      list: { total: '2.45' },
      computed: { total: '2.14375' },
    });
    expect(cost.own_prices).toEqual([
      expect.objectContaining({
        kind: 'override',
        source: null,
        rates: [
          { token_class: 'input', before_usd_per_mtok: 4, usd_per_mtok: 3 },
          { token_class: 'output', before_usd_per_mtok: 20, usd_per_mtok: 21.5 },
        ],
      }),
      {
        kind: 'contract',
        id: entry.id,
        model: '*',
        discount_percent: 12.5,
        effective_from: '2026-01-01',
        effective_to: null,
        source: SOURCE,
        rates: [
          { token_class: 'input', before_usd_per_mtok: 3, usd_per_mtok: 2.625 },
          { token_class: 'output', before_usd_per_mtok: 21.5, usd_per_mtok: 18.8125 },
        ],
      },
    ]);
    expect(cost.computed.lines.map((line: { sources: string[] }) => line.sources)).toEqual([
      ['contract'],
      ['contract'],
    ]);
  });

  it('leaves the public list and the records of other organizations unchanged', async () => {
    const org = await api.addOrganization();
    await enter(org, CONTRACT, discount({ discount_percent: 50 }));
    const { body } = await api.get(`/api/v1/pricing?provider=openai&model=${MODEL}&at=${DAY}`, org.adminKey);
    expect(body.records[0].in_per_mtok).toBe(4);
    const table = (await (await fetch(`${api.baseUrl}/api/v1/pricing/table`)).json()) as {
      pricing: Record<string, { in_per_mtok: number }>;
    };
    expect(table.pricing[MODEL]?.in_per_mtok).toBe(4);
  });

  it('is charged exactly from the first day of an entry to the day before its end', async () => {
    const org = await api.addOrganization();
    await enter(
      org,
      CONTRACT,
      discount({ discount_percent: 50, effective_from: '2026-09-10', effective_to: '2026-09-12' }),
    );
    const costs = [];
    for (const time of [
      '2026-09-09T23:59:59.999999Z',
      '2026-09-10T00:00:00Z',
      '2026-09-11T23:59:59.999999Z',
      '2026-09-12T00:00:00Z',
    ])
      costs.push((await costOf(org, { timestamp: time })).cost_usd);
    expect(costs).toEqual([2.4, 1.2, 1.2, 2.4]);
  });
});

describe('POST /api/v1/pricing/overrides', () => {
  it('prices a model that is in no list', async () => {
    const org = await api.addOrganization();
    expect((await costOf(org, { model: 'in-house-7b' })).cost_source).toBe('unpriced');
    const entry = await enter(org, OVERRIDES, override({ model: 'in-house-7b' }));
    expect(entry).toMatchObject({ id: expect.stringMatching(/^ovr_/), covers: 'new', source: null });
    expect(await costOf(org, { model: 'in-house-7b' })).toMatchObject({
      cost_usd: 2.45,
      price: { agreement: 'override', source: 'override' },
      list: null,
    });
    await enter(org, CONTRACT, discount({ model: 'in-house-7b', discount_percent: 50 }));
    expect((await costOf(org, { model: 'in-house-7b' })).cost_usd).toBe(1.225);
  });

  it('prices calls of another tier or length by rates of their own, and shows them', async () => {
    const org = await api.addOrganization();
    const long = { context_over_tokens: 150_000, rates: { input: 6, output: 43 } };
    const priority = { service_tier: 'priority', rates: { input: '7.5', output: 50, cache_read: 1 } };
    const entry = await enter(org, OVERRIDES, override({ tiers: [long, priority] }));
    const none = { cache_read: null, cache_write_5m: null, cache_write_1h: null };
    expect(entry.tiers).toEqual([
      { service_tier: null, batch: false, ...long, rates: { ...none, ...long.rates } },
      {
        context_over_tokens: null,
        batch: false,
        service_tier: 'priority',
        rates: { ...none, input: 7.5, output: 50, cache_read: 1 },
      },
    ]);
    expect((await costOf(org)).cost_usd).toBe(2.45);
    expect((await costOf(org, { service_tier: 'priority' })).cost_usd).toBe(5.75);
    expect((await costOf(org, { input_tokens: 200_000, output_tokens: 0 })).cost_usd).toBe(1.2);
  });

  it.each([
    ['a tier of ordinary calls', { rates: { input: 1, output: 1 } }, 'tiers.0'],
    ['a tier without an output rate', { batch: true, rates: { input: 1 } }, 'tiers.0.rates.output'],
    [
      'batch of a service tier',
      { batch: true, service_tier: 'flex', rates: { input: 1, output: 1 } },
      'tiers.0.service_tier',
    ],
  ])('refuses %s', async (_, tier, field) => {
    const answer = await api.post(OVERRIDES, override({ tiers: [tier] }));
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map((issue: { field: string }) => issue.field)).toEqual([field]);
  });

  it('refuses a tier that is named twice', async () => {
    const tier = { batch: true, rates: { input: 1, output: 1 } };
    const answer = await api.post(OVERRIDES, override({ tiers: [tier, tier] }));
    expect([answer.status, answer.body.errors[0].field]).toEqual([400, 'tiers']);
  });

  it.each([
    ['a discount', override({ rates: undefined, discount_percent: 5 }), 'discount_percent'],
    ['all models', override({ model: '*' }), 'model'],
  ])('refuses %s', async (_, body, field) => {
    const answer = await api.post(OVERRIDES, body);
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map((issue: { field: string }) => issue.field)).toContain(field);
  });
});

describe('DELETE /api/v1/pricing/contract-rates/{id}', () => {
  it('ends an entry today: what was before keeps its price, and the history stays', async () => {
    const org = await api.addOrganization();
    const entry = await enter(org, CONTRACT, discount({ discount_percent: 50 }));
    expect((await remove(org, `${CONTRACT}/${entry.id}`)).status).toBe(204);
    const { body } = await api.get(`${CONTRACT}/${entry.id}`, org.adminKey);
    expect(body).toMatchObject({
      id: entry.id,
      effective_to: null,
      ends_on: new Date().toISOString().slice(0, 10),
    });
    expect((await costOf(org)).cost_usd).toBe(1.2);
    expect((await costOf(org, { timestamp: new Date().toISOString() })).own_prices).toEqual([]);
    expect((await api.get(CONTRACT, org.adminKey)).body.contract_rates).toEqual([body]);
  });

  it('from its first day on takes an entry back altogether, and the entry under it holds again', async () => {
    const org = await api.addOrganization();
    await enter(org, CONTRACT, discount({ discount_percent: 25 }));
    const slip = await enter(org, CONTRACT, discount({ discount_percent: 99 }));
    expect((await costOf(org)).cost_usd).toBe(0.024);
    await remove(org, `${CONTRACT}/${slip.id}?from=2026-01-01`);
    expect((await costOf(org)).cost_usd).toBe(1.8);
    const again = await remove(org, `${CONTRACT}/${slip.id}`);
    expect([again.status, again.body.code]).toEqual([404, 'not_found']);
    expect((await api.get(`${CONTRACT}/${slip.id}`, org.adminKey)).body.ends_on).toBe('2026-01-01');
  });

  it('of an entry that ends on a later day moves its end to an earlier one', async () => {
    const org = await api.addOrganization();
    const { id } = await enter(org, CONTRACT, discount());
    for (const [from, status, end] of [
      ['2027-06-01', 204, '2027-06-01'],
      ['2027-06-01', 404, '2027-06-01'],
      ['2027-07-01', 404, '2027-06-01'],
      ['2027-02-01', 204, '2027-02-01'],
    ] as const) {
      expect((await remove(org, `${CONTRACT}/${id}?from=${from}`)).status, from).toBe(status);
      expect((await api.get(`${CONTRACT}/${id}`, org.adminKey)).body.ends_on).toBe(end);
    }
  });

  it('finds nothing of another organization’s entries, nor of the other kind', async () => {
    const [a, b] = [await api.addOrganization(), await api.addOrganization()];
    const entry = await enter(a, CONTRACT, discount());
    expect((await remove(b, `${CONTRACT}/${entry.id}`)).status).toBe(404);
    expect((await remove(a, `${OVERRIDES}/${entry.id}`)).status).toBe(404);
    expect((await remove(a, `${CONTRACT}/ctr_1`)).status).toBe(404);
    expect((await api.get(`${CONTRACT}/${entry.id}`, b.adminKey)).status).toBe(404);
    expect((await api.get(`${OVERRIDES}/${entry.id}`, a.adminKey)).status).toBe(404);
    expect((await api.get(CONTRACT, b.adminKey)).body).toEqual({
      contract_rates: [],
      count: 0,
      offset: 0,
      has_more: false,
    });
  });
});

describe('GET /api/v1/pricing/contract-rates', () => {
  it('lists the latest first, by provider, model and day, page by page', async () => {
    const org = await api.addOrganization();
    const first = await enter(org, CONTRACT, discount({ effective_to: '2026-02-01' }));
    const second = await enter(org, CONTRACT, discount({ model: MODEL }));
    const third = await enter(org, CONTRACT, discount({ provider: 'anthropic' }));
    const ids = async (query: string) =>
      (await api.get(`${CONTRACT}${query}`, org.adminKey)).body.contract_rates.map(
        (one: { id: string }) => one.id,
      );
    expect(await ids('')).toEqual([third.id, second.id, first.id]);
    expect(await ids('?provider=openai')).toEqual([second.id, first.id]);
    expect(await ids('?at=2026-02-01&provider=openai')).toEqual([second.id]);
    expect(await ids(`?model=${MODEL}`)).toEqual([second.id]);
    expect(await ids('?limit=1&offset=1')).toEqual([second.id]);
  });
});

describe('the prices that a process holds', () => {
  const open = (nowMs: () => number) =>
    PriceBookHolder.open(api.database.database, { nowMs, onFailure: () => undefined });

  it('are the list itself for an organization without own prices', async () => {
    const holder = await open(() => 0);
    expect(await holder.of(api.orgId)).toBe(holder.current());
    expect(await holder.freshOf(api.orgId)).toBe(holder.current());
  });

  it('follow another process within seconds, and at once where it is asked for', async () => {
    const org = await api.addOrganization();
    let now = 0;
    const [holder, prompt] = [await open(() => now), await open(() => now)];
    await enter(org, CONTRACT, discount());
    expect(await holder.of(org.orgId)).toBe(holder.current());
    expect(await prompt.freshOf(org.orgId)).not.toBe(prompt.current());
    now = 5_000;
    await holder.of(org.orgId);
    await holder.settle();
    const own = await holder.of(org.orgId);
    expect(own).not.toBe(holder.current());
    expect(own.list).toBe(holder.current());
    expect(own.version).not.toBe(holder.current().version);
    expect(await holder.of(org.orgId)).toBe(own);
  });

  it('are those of now for the first call after a pause, however the process learns of it', async () => {
    const org = await api.addOrganization();
    let now = 0;
    const [holder, ingesting] = [await open(() => now), await open(() => now)];
    await enter(org, CONTRACT, discount());
    now = 3_600_000;
    expect(await holder.of(org.orgId)).not.toBe(holder.current());
    // Ingest requests the list first.
    const list = ingesting.current();
    expect(await ingesting.of(org.orgId)).not.toBe(list);
    expect(ingesting.current()).toBe(list);
  });

  it('stay in use after a pause when the database is away', async () => {
    let now = 0;
    const away = openDatabase({
      url: api.database.url,
      poolMax: 1,
      applicationName: 'test',
      statementTimeoutMs: 1_000,
    });
    const holder = await PriceBookHolder.open(away, { nowMs: () => now, onFailure: () => undefined });
    const list = holder.current();
    await away.close();
    now = 3_600_000;
    expect(await holder.of(api.orgId)).toBe(list);
  });
});

describe('the dearest price that is taken', () => {
  it('still lets a call of the most tokens that there can be be stored', async () => {
    const org = await api.addOrganization();
    const dearest = (input: number) => ({ model: 'made-of-gold', rates: { input, output: 100_000 } });
    const refused = await api.post(OVERRIDES, override(dearest(100_001)), org.adminKey);
    expect([refused.status, refused.body.errors[0].field]).toEqual([400, 'rates.input']);
    await enter(org, OVERRIDES, override(dearest(100_000)));
    const most = 1_000_000_000_000;
    const counts = { input_tokens: most, output_tokens: most, cache_read: most, cache_creation: most };
    const { cost_usd } = await costOf(org, { model: 'made-of-gold', ...counts });
    expect(cost_usd).toBe(400_000_000_000);
  });
});
