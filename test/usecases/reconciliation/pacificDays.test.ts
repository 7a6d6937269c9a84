import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { reconcileBills } from '../../../usecases/reconciliation/reconcileBills.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { gapRunsOf } from '../../support/incrementalRuns.js';
import { readBill } from '../../support/readBill.js';
import { storeBill } from '../../support/storedBill.js';

const MODEL = 'gemini-2.5-flash';
const RATE_CENTS_PER_MTOK = 30;
const ACCOUNT = '012345-6789AB-CDEF01';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

/** Tokens of an hour; never the same in two hours of a month. */
const tokensOf = (hour: number) => (1_000 + (hour % 997)) * 10_000;

async function addHourlyCalls(org: TestOrganization, fromHour: number, toHour: number): Promise<void> {
  await api.database.superuser.query(
    `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, model, response_model,
       api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok,
       unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host, duration_ms,
       stop_reason, service_name, scope_name)
     select $1, at, id, at + interval '1 second', 'otel_span', 'ok', 'google', 'google', null, $2, $2, id::text, 'key_test', '', false,
       tokens, 0, 0, 0, 0, 0, false, tokens * 0.3 / 1000000, tokens * 0.3 / 1000000, 'computed', 'otel', 'inclusive', 3, true,
       1000, 'stop', 'shop', 'test'
     from (select to_timestamp(h * 3600.0) + interval '30 minutes' as at, gen_random_uuid() as id, (1000 + h % 997) * 10000 as tokens
       from generate_series($3::int, $4::int - 1) h) calls`,
    [org.orgId, MODEL, fromHour, toHour],
  );
}

/** The export of a span of hours, a line for each. */
function exportOf(fromHour: number, toHour: number, month: string): string {
  const lines: string[] = [];
  for (let hour = fromHour; hour < toHour; hour += 1) {
    const iso = (at: number) =>
      `${new Date(at * 3_600_000).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    const tokens = tokensOf(hour);
    const line = {
      billing_account_id: ACCOUNT,
      service: { description: 'Gemini API' },
      sku: { description: 'Generate content input token count gemini 2.5 flash text' },
      usage_start_time: iso(hour),
      usage_end_time: iso(hour + 1),
      project: { id: 'shop' },
      // Whole hundredths of a millionth of a dollar: exact in a double's shortest decimal.
      cost: (tokens * RATE_CENTS_PER_MTOK) / 1e8,
      cost_type: 'regular',
      currency: 'USD',
      usage: { amount: tokens, unit: 'count' },
      invoice: { month },
    };
    lines.push(JSON.stringify(line));
  }
  return lines.join('\n');
}

const hourOf = (iso: string) => Date.parse(iso) / 3_600_000;

async function reconciled(org: TestOrganization) {
  const book = await loadPriceBook(api.database.database);
  return reconcileBills(
    org.orgDb,
    {
      provider: 'google',
      fromDay: null,
      toDay: null,
      nowMicros: BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1_000n,
    },
    { agreed: book, list: book.list },
    DEFAULT_WEIGHTS,
  );
}

describe('Google’s days are Pacific days', () => {
  it('its calls are compared on them, through the change of the clock and at both edges of the month', async () => {
    const org = await api.addOrganization();
    const [from, to] = [hourOf('2026-03-01T08:00:00Z'), hourOf('2026-04-01T07:00:00Z')];
    // Calls go on before and after the month that the bill is of.
    await addHourlyCalls(org, from - 24, to + 24);
    await storeBill(api, org, 'google', await readBill(exportOf(from, to, '202603'), { provider: 'google' }));
    const { buckets, findings } = await reconciled(org);
    expect(findings).toEqual([]);
    expect(buckets.filter(({ width }) => width === 'day')).toHaveLength(31);
    expect(new Set(buckets.map(({ matchStatus }) => matchStatus))).toEqual(new Set(['matched']));
    for (const bucket of buckets) expect(bucket.ourCostPico).toBe(bucket.providerCostPico);
  });

  it('the exports of two months count whole beside each other', async () => {
    const org = await api.addOrganization();
    const [from, edge, to] = ['2026-02-27T08:00:00Z', '2026-03-01T08:00:00Z', '2026-03-03T08:00:00Z'].map(
      hourOf,
    ) as [number, number, number];
    await addHourlyCalls(org, from, to);
    await storeBill(
      api,
      org,
      'google',
      await readBill(exportOf(from, edge, '202602'), { provider: 'google' }),
    );
    await storeBill(api, org, 'google', await readBill(exportOf(edge, to, '202603'), { provider: 'google' }));
    const { buckets } = await reconciled(org);
    expect(buckets.map(({ matchStatus }) => matchStatus)).toEqual([
      'matched',
      'matched',
      'matched',
      'matched',
    ]);
  });

  it('late use on the next invoice is added to its day, and takes nothing’s place', async () => {
    const org = await api.addOrganization();
    const [from, to] = [hourOf('2026-03-30T07:00:00Z'), hourOf('2026-04-01T07:00:00Z')];
    await addHourlyCalls(org, from, to);
    const late = to - 3;
    await storeBill(
      api,
      org,
      'google',
      await readBill(exportOf(from, late, '202603'), { provider: 'google' }),
    );
    await storeBill(api, org, 'google', await readBill(exportOf(late, to, '202604'), { provider: 'google' }));
    const { buckets } = await reconciled(org);
    expect(buckets.map(({ matchStatus }) => matchStatus)).toEqual(['matched', 'matched']);
  });

  it('a gap run compares them so, and again when a call comes late', async () => {
    const org = await api.addOrganization();
    const runs = await gapRunsOf(api);
    const [from, to] = [hourOf('2026-10-10T07:00:00Z'), hourOf('2026-10-14T07:00:00Z')];
    await addHourlyCalls(org, from, to);
    await storeBill(api, org, 'google', await readBill(exportOf(from, to, '202610'), { provider: 'google' }));
    const { run } = await runs.run(org);
    expect(run.dayOffsets).toEqual({ google: -8 });
    const { rows } = await api.database.superuser.query(
      'select distinct match_status, our_cost_usd = provider_cost_usd as same from gap_buckets where org_id = $1',
      [org.orgId],
    );
    expect(rows).toEqual([{ match_status: 'matched', same: true }]);
    expect((await runs.run(org)).units).toBe(0);
    await addHourlyCalls(org, hourOf('2026-10-12T02:00:00Z'), hourOf('2026-10-12T03:00:00Z'));
    expect((await runs.run(org)).units).toBe(3);
  });
});
