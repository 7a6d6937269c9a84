import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { matchesEntityTag } from '../../../api/pipeline/answer.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { shippedJson } from '../../domain/pricing/support.js';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

describe('GET /api/v1/pricing/table', () => {
  const table = (headers: Record<string, string> = {}) =>
    fetch(`${api.baseUrl}/api/v1/pricing/table`, { headers });

  it('needs no key and returns four rates for every family', async () => {
    const response = await table();
    expect(response.status).toBe(200);
    const body = (await response.json()) as { version: string; pricing: Record<string, unknown> };
    expect(body.version).toMatch(/^\d{8}T\d{12}Z-[0-9a-f]{8}$/);
    expect(Object.keys(body.pricing).length).toBe(
      new Set(shippedJson().models.map((entry) => entry.canonical_family)).size,
    );
    expect(body.pricing['claude-sonnet-4-5']).toEqual({
      in_per_mtok: 3,
      out_per_mtok: 15,
      cache_read: 0.3,
      cache_creation: 3.75,
      assumed: [],
    });
    expect(body.pricing['gpt-4']).toEqual({
      in_per_mtok: 30,
      out_per_mtok: 60,
      cache_read: 30,
      cache_creation: 30,
      assumed: ['cache_read', 'cache_creation'],
    });
  });

  it('is fetched again only when it changed', async () => {
    const first = await table();
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toBe(`"${((await first.json()) as { version: string }).version}"`);
    expect(first.headers.get('cache-control')).toBe('public, max-age=300, stale-if-error=86400');
    const second = await table({ 'if-none-match': etag });
    expect(second.status).toBe(304);
    expect(second.headers.get('etag')).toBe(etag);
    expect(await second.text()).toBe('');
    expect((await table({ 'if-none-match': '"another"' })).status).toBe(200);
  });

  it('accepts its entity tag in the forms that caches send', () => {
    const etag = '"20261120T080000000000Z-1a2b3c4d"';
    expect(matchesEntityTag(etag, etag)).toBe(true);
    expect(matchesEntityTag(`"x", W/${etag}`, etag)).toBe(true);
    expect(matchesEntityTag('*', etag)).toBe(true);
    expect(matchesEntityTag(undefined, etag)).toBe(false);
    expect(matchesEntityTag(etag.slice(1, -1), etag)).toBe(false);
    expect(matchesEntityTag(`"a,b",W/${etag} , "c"`, etag)).toBe(true);
    expect(matchesEntityTag(`"a,${etag.slice(1, -1)},b"`, etag)).toBe(false);
    expect(matchesEntityTag('"*"', etag)).toBe(false);
    expect(matchesEntityTag('', etag)).toBe(false);
  });
});

describe('GET /api/v1/pricing', () => {
  it('lists every period by provider and model, with an unknown rate as null', async () => {
    const { status, body } = await api.get('/api/v1/pricing');
    expect(status).toBe(200);
    const periods = shippedJson().models.flatMap((entry) => entry.rates).length;
    expect(body.count).toBe(periods);
    expect(body.records.length).toBe(periods);
    const keys = body.records.map((record: { provider: string; model: string }) => [
      record.provider,
      record.model,
    ]);
    expect(keys).toEqual([...keys].sort((a, b) => (a.join('\n') < b.join('\n') ? -1 : 1)));
    const { records } = (await api.get('/api/v1/pricing?provider=openai&model=gpt-4')).body;
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      in_per_mtok: 30,
      out_per_mtok: 60,
      cache_read: null,
      cache_creation: null,
    });
    expect(records[0].id).toMatch(/^prc_[0-9a-f]{32}$/);
  });

  it('filters by provider, by id or alias, and by time', async () => {
    const count = async (query: string) => (await api.get(`/api/v1/pricing?${query}`)).body.count;
    expect(await count('provider=gemini')).toBe(await count('provider=google'));
    expect(await count('provider=acme')).toBe(0);
    expect(await count('model=o3-2025-04-16')).toBeGreaterThanOrEqual(2);
    expect(await count('provider=openai&model=o3')).toBe(2);
    const { records } = (await api.get('/api/v1/pricing?provider=openai&model=o3&at=2025-06-09T23:59:59Z'))
      .body;
    expect(records).toMatchObject([{ effective_from: null, effective_to: '2025-06-10', in_per_mtok: 10 }]);
    expect((await api.get('/api/v1/pricing?at=yesterday')).status).toBe(400);
  });

  it('shows the tiers of a price', async () => {
    const { records } = (await api.get('/api/v1/pricing?provider=openai&model=gpt-5.6-sol&at=2026-11-20'))
      .body;
    expect(records[0].batch_multiplier).toBe(0.5);
    expect(records[0].tiers).toContainEqual({
      service_tier: 'standard',
      above_input_tokens: 272_000,
      in_per_mtok: 8,
      out_per_mtok: 30,
      cache_read: 0.8,
      cache_creation: 10,
      cache_creation_1h: null,
      input_audio: null,
      output_audio: null,
      checked_on: null,
    });
  });

  it('needs a key that may read prices', async () => {
    expect((await fetch(`${api.baseUrl}/api/v1/pricing`)).status).toBe(401);
    expect((await api.get('/api/v1/pricing', api.ingestKey)).status).toBe(403);
  });
});

const TIME = '2026-11-19T12:00:00Z';

async function ingest(key: string, ...events: object[]): Promise<void> {
  const items = events.map((event, index) => ({
    timestamp: `2026-11-19T12:00:0${index}Z`,
    provider: 'openai',
    model: 'gpt-5.6-sol',
    ...event,
  }));
  const { status, body } = await api.post('/api/v1/ingest/events', { events: items }, key);
  expect(status, JSON.stringify(body)).toBe(202);
  expect(body.accepted).toBe(events.length);
}

describe('GET /api/v1/pricing/unpriced', () => {
  it('lists models that were seen without a price, and beside them those whose price is assumed', async () => {
    const org = await api.addOrganization();
    await ingest(
      org.ingestKey,
      { model: 'my-finetune', input_tokens: 10, output_tokens: 5 },
      { model: 'my-finetune', input_tokens: 20, output_tokens: 5 },
      { model: 'gpt-4o-2099-01-01', input_tokens: 1, output_tokens: 1 },
      { model: 'gpt-4', input_tokens: 7, cache_read: 3, output_tokens: 1 },
      { model: 'gpt-5.6-sol', input_tokens: 1, output_tokens: 1 },
    );
    const path = '/api/v1/pricing/unpriced?since=2026-11-01&until=2026-11-30';
    const { status, body } = await api.get(path, org.adminKey);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      count: 2,
      has_more: false,
      models: [
        {
          provider: 'openai',
          model: 'my-finetune',
          calls: 2,
          input_tokens: 30,
          output_tokens: 10,
          reason: 'unknown_model',
        },
        { provider: 'openai', model: 'gpt-4o-2099-01-01', calls: 1, reason: 'several_prices' },
      ],
      assumed: [{ provider: 'openai', model: 'gpt-4', calls: 1, input_tokens: 10, output_tokens: 1 }],
    });
    expect(body.models[0].first_seen).toBe('2026-11-19T12:00:00Z');
    // The result is the same when the calls are in stored cells, wholly or partly.
    await foldAll(api.database.superuser, org.orgDb);
    expect((await api.get(path, org.adminKey)).body).toEqual(body);
    await ingest(org.ingestKey, {
      timestamp: '2026-11-19T12:30:00Z',
      model: 'my-finetune',
      input_tokens: 5,
      output_tokens: 5,
    });
    const mixed = (await api.get(path, org.adminKey)).body;
    expect(mixed.models[0]).toMatchObject({ model: 'my-finetune', calls: 3, input_tokens: 35 });
    const outside = await api.get('/api/v1/pricing/unpriced?since=2026-11-20&until=2026-11-30', org.adminKey);
    expect(outside.body).toMatchObject({ count: 0, models: [], assumed: [] });
  });

  it('shows nothing of another organization', async () => {
    const [mine, other] = [await api.addOrganization(), await api.addOrganization()];
    await ingest(other.ingestKey, { model: 'theirs', input_tokens: 1, output_tokens: 1 });
    expect((await api.get('/api/v1/pricing/unpriced?since=2020-01-01', mine.adminKey)).body.models).toEqual(
      [],
    );
  });

  it('refuses a window that ends before it begins', async () => {
    expect((await api.get('/api/v1/pricing/unpriced?since=2026-02-01&until=2026-01-01')).status).toBe(400);
  });
});

describe('GET /api/v1/events/{id}/cost', () => {
  /** The cost of the only event of a new organization. */
  async function costOf(event: object) {
    const org = await api.addOrganization();
    await ingest(org.ingestKey, { timestamp: TIME, ...event });
    const { body } = await api.get('/api/v1/events', org.adminKey);
    return api.get(`/api/v1/events/${body.events[0].id}/cost`, org.adminKey);
  }

  it('shows class × tokens × rate with sources and dates, and the total that the event has', async () => {
    const { status, body } = await costOf({ input_tokens: 200, cache_read: 1000, output_tokens: 300 });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      cost_usd: 0.0072,
      cost_source: 'computed',
      computed_cost_usd: 0.0072,
      reported_cost_usd: null,
      difference_usd: null,
      repriced: false,
      unpriced_reason: null,
      price: {
        provider: 'openai',
        model: 'gpt-5.6-sol',
        matched_by: 'exact',
        effective_from: '2026-08-21',
        effective_to: null,
      },
      computed: { sum: '0.0072', multiplier: 1, total: '0.0072', total_usd: 0.0072 },
    });
    expect(body.computed.lines).toEqual([
      line('input', 200, 4, '0.0008'),
      line('cache_read', 1000, 0.4, '0.0004'),
      line('output', 300, 20, '0.006'),
    ]);
    expect(body.expected).toEqual(body.computed);
  });

  const line = (token_class: string, tokens: number, usd_per_mtok: number, amount: string) => ({
    token_class,
    tokens,
    usd_per_mtok,
    amount,
    basis: 'listed',
    assumed: false,
    sources: ['genai_prices', 'litellm'],
    disputed: false,
  });

  it('shows a reported cost beside the computed one', async () => {
    const { body } = await costOf({ input_tokens: 1000, output_tokens: 0, cost_usd: 0.005 });
    expect(body).toMatchObject({
      cost_usd: 0.005,
      cost_source: 'reported',
      reported_cost_usd: 0.005,
      computed_cost_usd: 0.004,
      difference_usd: 0.001,
    });
  });

  it('shows the specification’s batch half and what the provider should charge', async () => {
    const { body } = await costOf({
      provider: 'xai',
      model: 'grok-4.20',
      input_tokens: 1000,
      output_tokens: 1000,
      is_batch: true,
    });
    expect(body).toMatchObject({
      cost_usd: 0.001875,
      computed: { sum: '0.00375', multiplier: 0.5, total: '0.001875' },
      expected: { service_tier: 'batch', multiplier: 1, total: '0.003' },
    });
  });

  it('states why a call has no price', async () => {
    const { body } = await costOf({ model: 'my-finetune', input_tokens: 10, output_tokens: 5 });
    expect(body).toMatchObject({
      cost_usd: 0,
      cost_source: 'unpriced',
      computed_cost_usd: null,
      unpriced_reason: 'unknown_model',
      price: null,
      computed: null,
      expected: null,
      repriced: false,
    });
  });

  it('is not found for another organization, or a malformed id', async () => {
    const [mine, other] = [await api.addOrganization(), await api.addOrganization()];
    await ingest(other.ingestKey, { timestamp: TIME, input_tokens: 1, output_tokens: 1 });
    const { body } = await api.get('/api/v1/events', other.adminKey);
    expect((await api.get(`/api/v1/events/${body.events[0].id}/cost`, mine.adminKey)).status).toBe(404);
    expect((await api.get('/api/v1/events/evt_1/cost', mine.adminKey)).status).toBe(404);
  });
});
