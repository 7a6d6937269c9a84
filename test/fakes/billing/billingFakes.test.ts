/**
 * The loopback providers of bills obey the documented contract of the real ones: the official clients read their
 * answers, wrong parameters are refused, and their answers sum to their data.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { exactJson, sumDecimals } from '../../../lab/bills/exactJson.js';
import {
  ADMIN_KEYS,
  type ProviderName,
  startProvider,
  stopProviders,
} from '../../adapters/billing/support/connections.js';
import {
  ANTHROPIC_ACCOUNT,
  DAY_SECONDS,
  DAYS,
  FIRST_SECONDS,
  NOW_SECONDS,
} from '../../adapters/billing/support/truths.js';
import type { BillingFake } from './reportServer.js';

afterEach(stopProviders);

interface Page {
  data: {
    start_time?: number;
    starting_at?: string;
    ending_at?: string;
    // biome-ignore lint/suspicious/noExplicitAny: results are the provider's JSON
    results: any[];
  }[];
  has_more: boolean;
  next_page: string | null;
}

async function ask(fake: BillingFake, provider: ProviderName, path: string, headers = {}): Promise<Response> {
  const key: Record<string, string> =
    provider === 'openai'
      ? { authorization: `Bearer ${ADMIN_KEYS.openai}` }
      : { 'x-api-key': ADMIN_KEYS.anthropic, 'anthropic-version': '2023-06-01' };
  return fetch(`${fake.origin}${path}`, { headers: { ...key, ...headers } });
}

const costs = `/v1/organization/costs?start_time=${FIRST_SECONDS}`;
const completions = `/v1/organization/usage/completions?start_time=${FIRST_SECONDS}`;
const costReport = '/v1/organizations/cost_report?starting_at=2026-09-01T00:00:00Z';
const messages = '/v1/organizations/usage_report/messages?starting_at=2026-09-01T00:00:00Z';

describe('the loopback OpenAI', () => {
  it('answers the official client, page after page', async () => {
    const fake = await startProvider('openai');
    const client = new OpenAI({
      adminAPIKey: ADMIN_KEYS.openai,
      apiKey: null as never,
      baseURL: `${fake.origin}/v1`,
    });
    let page: string | undefined;
    let days = 0;
    let spent = 0;
    do {
      const answer: Awaited<ReturnType<typeof client.admin.organization.usage.costs>> =
        await client.admin.organization.usage.costs({
          start_time: FIRST_SECONDS,
          group_by: ['line_item'],
          limit: 15,
          ...(page === undefined ? {} : { page }),
        });
      for (const bucket of answer.data) {
        days += 1;
        for (const result of bucket.results) {
          if (result.object === 'organization.costs.result') spent += result.amount?.value ?? 0;
        }
      }
      page = answer.next_page ?? undefined;
    } while (page !== undefined);
    // The current day is reported as far as it has come.
    expect(days).toBe(DAYS + 1);
    expect(fake.requests).toHaveLength(3);
    expect(Math.round(spent)).toBe(Math.round(DAYS * 12345678.123456789 - 25 + 2 * 8.2));
    const usage = await client.admin.organization.usage.webSearchCalls({
      start_time: FIRST_SECONDS,
      limit: 31,
    });
    const [result] = usage.data[0]?.results ?? [];
    expect(result).toMatchObject({
      object: 'organization.usage.web_searches.result',
      num_requests: 8,
      model: null,
    });
  });

  it('sums exactly what is not grouped by, and leaves the fields of such groups null', async () => {
    const fake = await startProvider('openai');
    const text = await (await ask(fake, 'openai', `${costs}&limit=1`)).text();
    // 2 x 0.010000000001 + 1e-7 + 12345678.123456789012
    expect(text).toContain('"value":12345678.143456889014');
    const page = JSON.parse(text) as Page;
    expect(page.data[0]?.results).toHaveLength(1);
    expect(page.data[0]?.results[0]).toMatchObject({ project_id: null, line_item: null, quantity: null });
  });

  it('makes days out of hours, and hours without usage are empty buckets', async () => {
    const fake = await startProvider('openai');
    const day = (await (await ask(fake, 'openai', `${completions}&limit=1`)).json()) as Page;
    expect(day.data[0]?.results).toMatchObject([{ num_model_requests: 12, input_tokens: 4_000 }]);
    const hours = (await (await ask(fake, 'openai', `${completions}&bucket_width=1h`)).json()) as Page;
    expect(hours.data.map(({ results }) => results.length)).toEqual(
      Array.from({ length: 24 }, (_, hour) => (hour === 3 || hour === 17 ? 1 : 0)),
    );
    const batch = (await (await ask(fake, 'openai', `${completions}&limit=1&batch=true`)).json()) as Page;
    expect(batch.data[0]?.results[0].num_model_requests).toBe(6);
  });

  it('recognizes the caller by its key', async () => {
    const fake = await startProvider('openai');
    const status = async (authorization: string) => {
      const answer = await ask(fake, 'openai', costs, { authorization });
      return [answer.status, ((await answer.json()) as { error: { code: string | null } }).error.code];
    };
    expect(await status('')).toEqual([401, 'invalid_api_key']);
    expect(await status('Bearer sk-admin-other')).toEqual([401, 'invalid_api_key']);
    expect(await status('Bearer sk-proj-inference')).toEqual([403, null]);
    expect(JSON.stringify(fake.requests)).not.toContain('sk-');
  });

  it.each([
    ['limit', `${costs}&limit=181`],
    ['limit', `${completions}&limit=32`],
    ['limit', `${completions}&bucket_width=1h&limit=169`],
    ['limit', `${costs}&limit=0`],
    ['bucket_width', `${costs}&bucket_width=1h`],
    ['group_by', `${costs}&group_by[]=model`],
    ['group_by', `/v1/organization/usage/vector_stores?start_time=1&group_by[]=model`],
    ['start_time', '/v1/organization/costs'],
    ['page', `${costs}&page=nonsense`],
    ['workspace_ids', `${costs}&workspace_ids[]=x`],
  ])('refuses a wrong %s: %s', async (param, path) => {
    const fake = await startProvider('openai');
    const answer = await ask(fake, 'openai', path);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error', param } });
  });
});

describe('the loopback Anthropic', () => {
  it('answers the official client who the organization is', async () => {
    const fake = await startProvider('anthropic');
    const client = new Anthropic({ apiKey: ADMIN_KEYS.anthropic, baseURL: fake.origin });
    const organization = (await client.get('/v1/organizations/me')) as object;
    expect(organization).toMatchObject({
      id: ANTHROPIC_ACCOUNT,
      type: 'organization',
      name: 'Loopback, Inc.',
    });
    await expect(
      new Anthropic({ apiKey: 'sk-ant-api03-x', baseURL: fake.origin }).get('/v1/organizations/me'),
    ).rejects.toMatchObject({ status: 401 });
  });

  it('returns amounts as strings of cents, summed exactly, and names model and class by description alone', async () => {
    const fake = await startProvider('anthropic');
    const [summed] = ((await (await ask(fake, 'anthropic', `${costReport}&limit=1`)).json()) as Page).data;
    // 2 x 0.78912 + 0.000001 + 50.5
    expect(summed).toMatchObject({ starting_at: '2026-09-01T00:00:00Z', ending_at: '2026-09-02T00:00:00Z' });
    expect(summed?.results).toMatchObject([{ amount: '52.078241', model: null, token_type: null }]);
    const grouped = (await (
      await ask(fake, 'anthropic', `${costReport}&limit=1&group_by[]=description&group_by[]=workspace_id`)
    ).json()) as Page;
    expect(grouped.data[0]?.results).toHaveLength(4);
  });

  it('filters usage by workspace and merges nested counts', async () => {
    const fake = await startProvider('anthropic');
    const all = (await (await ask(fake, 'anthropic', `${messages}&limit=1`)).json()) as Page;
    expect(all.data[0]?.results).toMatchObject([
      { uncached_input_tokens: 400, cache_creation: { ephemeral_5m_input_tokens: 20 }, workspace_id: null },
    ]);
    const one = await ask(fake, 'anthropic', `${messages}&limit=1&workspace_ids[]=wrkspc_a`);
    expect(((await one.json()) as Page).data[0]?.results[0].uncached_input_tokens).toBe(200);
  });

  it.each([
    ['limit', `${costReport}&limit=32`],
    ['limit', `${messages}&bucket_width=1h&limit=169`],
    ['group_by', `${costReport}&group_by[]=api_key_id`],
    ['group_by', `${messages}&group_by[]=speed`],
    ['starting_at', '/v1/organizations/cost_report'],
    ['starting_at', '/v1/organizations/cost_report?starting_at=yesterday'],
    ['page', `${costReport}&page=page_nonsense`],
    ['workspace_ids', `${costReport}&workspace_ids[]=wrkspc_a`],
  ])('refuses a wrong %s: %s', async (param, path) => {
    const fake = await startProvider('anthropic');
    const answer = await ask(fake, 'anthropic', path);
    expect(answer.status).toBe(400);
    const body = (await answer.json()) as { type: string; error: { type: string; message: string } };
    expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    expect(body.error.message.startsWith(`${param}: `)).toBe(true);
  });

  it('asks for the version of the API', async () => {
    const fake = await startProvider('anthropic');
    const answer = await fetch(`${fake.origin}${costReport}`, {
      headers: { 'x-api-key': ADMIN_KEYS.anthropic },
    });
    expect(answer.status).toBe(400);
  });
});

describe('the faults', () => {
  it('affect a set number of requests, of one report, after a set number of good ones, and can be removed', async () => {
    const fake = await startProvider('openai');
    const statuses = async (count: number, path = costs) => {
      const seen: number[] = [];
      for (let at = 0; at < count; at += 1) seen.push((await ask(fake, 'openai', path)).status);
      return seen;
    };
    fake.faults.inject({ kind: 'outage', status: 503, after: 1, requests: 2, report: 'costs' });
    expect(await statuses(2, completions)).toEqual([200, 200]);
    expect(await statuses(5)).toEqual([200, 503, 503, 200, 200]);
    const clear = fake.faults.inject({ kind: 'rate_limit', retryAfter: '3' });
    expect((await ask(fake, 'openai', costs)).headers.get('retry-after')).toBe('3');
    clear();
    fake.faults.inject({ kind: 'denied' });
    expect(await statuses(1)).toEqual([403]);
    fake.faults.clear();
    expect(await statuses(1)).toEqual([200]);
    expect(fake.requests.map(({ status }) => status)).toEqual([
      200, 200, 200, 503, 503, 200, 200, 429, 403, 200,
    ]);
  });

  it('restate a day while the provider runs', async () => {
    const fake = await startProvider('openai');
    fake.restate('costs', {
      startSeconds: FIRST_SECONDS,
      endSeconds: FIRST_SECONDS + DAY_SECONDS,
      results: [
        { object: 'organization.costs.result', amount: { value: { $number: '7.00' }, currency: 'usd' } },
      ],
    });
    const text = await (await ask(fake, 'openai', `${costs}&limit=2`)).text();
    expect(text).toContain('"value":7.00');
    expect((JSON.parse(text) as Page).data[1]?.results).toHaveLength(1);
  });

  it('make page tokens unknown and pages smaller', async () => {
    const fake = await startProvider('anthropic');
    fake.limitPages(2);
    const first = (await (await ask(fake, 'anthropic', `${costReport}&limit=31`)).json()) as Page;
    expect(first.data).toHaveLength(2);
    const next = `${costReport}&limit=31&page=${first.next_page}`;
    expect((await ask(fake, 'anthropic', next)).status).toBe(200);
    fake.invalidatePages();
    expect((await ask(fake, 'anthropic', next)).status).toBe(400);
  });
});

describe('numbers', () => {
  it('appear in the answer as they were set', () => {
    const value = {
      a: { $number: '0.0600' },
      b: [{ $number: '9007199254740993' }, 1.5, null, 'x'],
      c: undefined,
    };
    expect(exactJson(value)).toBe('{"a":0.0600,"b":[9007199254740993,1.5,null,"x"]}');
    expect(() => exactJson({ $number: '1,5' })).toThrow('not a JSON number');
  });

  it.each([
    [['0.1', '0.2'], '0.3'],
    [['1e-7', '-0.0000001'], '0'],
    [['9007199254740993', '1'], '9007199254740994'],
    [['-25.00', '0.5'], '-24.5'],
    [['2e3', '0.25'], '2000.25'],
  ])('are summed without a double between: %j', (texts, sum) => {
    expect(sumDecimals(texts)).toBe(sum);
  });

  it('are not returned beyond the time of the provider’s clock', async () => {
    const fake = await startProvider('openai');
    const page = (await (await ask(fake, 'openai', `${costs}&limit=180`)).json()) as Page;
    expect(page.data[page.data.length - 1]?.start_time).toBe(NOW_SECONDS - (NOW_SECONDS % DAY_SECONDS));
  });
});
