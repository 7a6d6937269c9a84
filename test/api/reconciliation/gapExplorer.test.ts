import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { addPublishedDays, daysAgo, type PublishedDay } from '../../support/publishedDays.js';
import { readBody } from '../support/requests.js';

const EXPLORER = '/api/v1/reconciliation/gap-explorer';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

const withDays = (days: readonly PublishedDay[]) => addPublishedDays(api, days);
const read = (org: TestOrganization, query = ''): Promise<Json> =>
  readBody(api, `${EXPLORER}${query}`, org.adminKey);
const models = (body: Json): string[] => body.gaps.map(({ model }: Json) => model);

const MIXED: PublishedDay[] = [
  { day: daysAgo(2), model: 'equal' },
  { day: daysAgo(2), model: 'partial', status: 'partial', billedUsd: '10', ourUsd: '7', flagged: true },
  { day: daysAgo(2), model: 'unmatched', status: 'unmatched', billedUsd: '5', flagged: true },
  { day: daysAgo(1), model: 'fee', status: 'unmatched', billedUsd: '9', reason: 'not_observable' },
  { day: daysAgo(1), model: 'claude', provider: 'anthropic', account: 'org-2' },
  { day: daysAgo(20), model: 'older' },
  { day: daysAgo(60), model: 'oldest' },
];

describe('the gap explorer', () => {
  it('has every field of a bucket', async () => {
    const day = daysAgo(2);
    const org = await withDays([
      {
        day,
        status: 'partial',
        grade: 'MEDIUM',
        score: 0.9,
        billedUsd: '10',
        ourUsd: '7',
        matchedUsd: '7',
        rateUsd: '1',
        volumeUsd: '2.5',
        ownUsd: '-0.5',
        flagged: true,
      },
    ]);
    const { gaps } = await read(org);
    const month = new Date(`${day.slice(0, 7)}-01T00:00:00Z`);
    const next = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1));
    const iso = (time: Date) => `${time.toISOString().slice(0, 19)}Z`;
    expect(gaps).toEqual([
      {
        bucket: `${day}T00:00:00Z`,
        provider: 'openai',
        model: 'gpt-6-sol',
        match_status: 'partial',
        confidence_score: 0.9,
        gap_minutes: null,
        provider_cost_usd: 10,
        our_cost_usd: 7,
        invoice_period_start: iso(month),
        invoice_period_end: iso(next),
        invoice_aligned: false,
        invoice_id: null,
        flagged_gap: true,
        provisional: false,
        confidence: 'MEDIUM',
        visibility: 'V2',
        provider_account_id: 'org-1',
        reason: null,
        unobserved_minutes: null,
        gap_parts: { rate_usd: 1, volume_usd: 2.5, own_pricing_usd: -0.5 },
        run_id: `run_${org.runId.replaceAll('-', '')}`,
      },
    ]);
  });

  it('is newest first, then the largest gap, and counts the period before it is filtered', async () => {
    const org = await withDays(MIXED);
    const body = await read(org);
    expect(models(body)).toEqual(['fee', 'claude', 'unmatched', 'partial', 'equal', 'older']);
    expect(body).toMatchObject({ total: 6, flagged: 2, count: 6, has_more: false, next_cursor: null });
    const narrowed: [string, string[], number, number][] = [
      ['?flagged_only=true', ['unmatched'], 6, 2],
      ['?flagged=true', ['unmatched', 'partial'], 6, 2],
      ['?flagged_only=false', ['fee', 'claude', 'unmatched', 'partial', 'equal', 'older'], 6, 2],
      ['?period=7d', ['fee', 'claude', 'unmatched', 'partial', 'equal'], 5, 2],
      ['?period=90d', ['fee', 'claude', 'unmatched', 'partial', 'equal', 'older', 'oldest'], 7, 2],
      ['?provider=anthropic', ['claude'], 1, 0],
    ];
    for (const [query, expected, total, flagged] of narrowed) {
      const answer = await read(org, query);
      expect([query, models(answer), answer.total, answer.flagged]).toEqual([
        query,
        expected,
        total,
        flagged,
      ]);
    }
  });

  it('has the N days of the period that end with today, and none before', async () => {
    const org = await withDays(
      [0, 6, 7, 29, 30, 89, 90].map((days) => ({ day: daysAgo(days), model: `m${days}` })),
    );
    expect(models(await read(org, '?period=7d'))).toEqual(['m0', 'm6']);
    expect(models(await read(org, '?period=30d'))).toEqual(['m0', 'm6', 'm7', 'm29']);
    expect(models(await read(org, '?period=90d'))).toEqual(['m0', 'm6', 'm7', 'm29', 'm30', 'm89']);
  });

  it('shows hours for 7d where a model’s day has them, and the day where it has none', async () => {
    const day = daysAgo(1);
    const org = await withDays([
      { day, model: 'hourly', billedUsd: '3' },
      { day, model: 'hourly', hour: 4, billedUsd: '1' },
      { day, model: 'hourly', hour: 9, billedUsd: '2', flagged: true },
      { day, model: 'daily', billedUsd: '5' },
    ]);
    const buckets = async (period: string) => {
      const body = await read(org, `?period=${period}`);
      return [
        body.total,
        body.flagged,
        body.gaps.map((gap: Json) => `${gap.model} ${gap.bucket.slice(11, 13)}`),
      ];
    };
    expect(await buckets('7d')).toEqual([3, 1, ['hourly 09', 'hourly 04', 'daily 00']]);
    expect(await buckets('30d')).toEqual([2, 0, ['daily 00', 'hourly 00']]);
    expect(await buckets('90d')).toEqual([2, 0, ['daily 00', 'hourly 00']]);
  });

  it('by page, every bucket comes once in the order of the whole, ties too', async () => {
    const org = await withDays(
      Array.from({ length: 31 }, (_, at) => ({
        day: daysAgo(1 + (at % 3)),
        model: `model-${at}`,
        // A third has the same gap.
        billedUsd: at % 3 === 0 ? '7' : String(at),
        ourUsd: '1',
        flagged: at % 2 === 0,
      })),
    );
    for (const filter of ['', '&flagged=true']) {
      const whole = await read(org, `?period=30d${filter}`);
      for (const [limit, offset] of [
        [1, 0],
        [4, 0],
        [30, 0],
        [31, 0],
        [5, 3],
      ] as const) {
        const seen: string[] = [];
        let query = `?period=30d${filter}&limit=${limit}&offset=${offset}`;
        for (;;) {
          const body = await read(org, query);
          expect([body.total, body.flagged]).toEqual([31, 16]);
          seen.push(...models(body));
          if (!body.has_more) break;
          query = `?period=30d${filter}&limit=${limit}&cursor=${body.next_cursor}`;
        }
        expect(seen).toEqual(models(whole).slice(offset));
      }
    }
  });

  it.each([
    ['?period=14d', 'period'],
    ['?flagged_only=perhaps', 'flagged_only'],
    ['?provider=nobody', 'provider'],
    ['?limit=10001', 'limit'],
    ['?cursor=x', 'cursor'],
    [`?cursor=${Buffer.from('["1","2"]').toString('base64url')}`, 'cursor'],
    [`?cursor=${Buffer.from('["1","x","3"]').toString('base64url')}`, 'cursor'],
  ])('%s is refused', async (query, field) => {
    const { status, body } = await api.get(`${EXPLORER}${query}`);
    expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_parameter', field]);
  });

  it('of another organization is empty', async () => {
    await withDays(MIXED);
    expect(await read(await api.addOrganization(), '?period=90d')).toMatchObject({
      total: 0,
      flagged: 0,
      gaps: [],
    });
  });
});
