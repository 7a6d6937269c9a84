import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listBilledTotals } from '../../../db/billing/billingRows.js';
import { decimalFromPico, picoFromDecimal } from '../../../domain/money.js';
import { ingestMany } from '../../api/support/requests.js';
import type { TestApi } from '../../support/api.js';
import { eventsOf, type GeneratedBills, generateBills } from '../../support/billGenerator.js';
import { importGenerated, runGaps } from '../../support/bills.js';
import { sumCostPages } from '../../support/independentBillReader.js';
import { startWorkingApi } from '../../support/workingApi.js';

const SEED = Number(process.env.RUN_SEED ?? 20_261_120);
const DAYS = 89;
const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

let api: TestApi;
let bills: GeneratedBills;
let run: Json;

/** A run or a bucket as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

interface StoredBucket {
  day: string;
  provider: string;
  model: string;
  match_status: string;
  grade: string;
  flagged: boolean;
  provisional: boolean;
  reason: string | null;
  unobserved_minutes: number | null;
  billed: bigint;
  ours: bigint;
  rate: bigint | null;
  volume: bigint | null;
  own: bigint | null;
}

async function storedBuckets(): Promise<StoredBucket[]> {
  const { rows } = await api.database.superuser.query(
    `select to_char(bucket, 'YYYY-MM-DD') as day, provider, model, match_status, grade, flagged, provisional, reason, unobserved_minutes,
       provider_cost_usd::text as billed, our_cost_usd::text as ours, rate_usd::text as rate, volume_usd::text as volume, own_pricing_usd::text as own
     from gap_buckets where org_id = $1 and run_id = $2 and width = 'day' order by bucket, provider, model`,
    [
      api.orgId,
      `${run.run_id.slice(4, 12)}-${run.run_id.slice(12, 16)}-${run.run_id.slice(16, 20)}-${run.run_id.slice(20, 24)}-${run.run_id.slice(24)}`,
    ],
  );
  const pico = (text: string | null) => (text === null ? null : (picoFromDecimal(text) as bigint));
  return rows.map((row) => ({
    ...row,
    billed: pico(row.billed),
    ours: pico(row.ours),
    rate: pico(row.rate),
    volume: pico(row.volume),
    own: pico(row.own),
  }));
}

beforeAll(async () => {
  console.info(`the run: seed ${SEED} (RUN_SEED=${SEED} repeats it), ${DAYS} days to ${yesterday}`);
  api = await startWorkingApi();
  bills = generateBills({ seed: SEED, lastDay: yesterday, days: DAYS, callsPerHour: 2 });
  const events = eventsOf(bills.calls);
  const started = performance.now();
  await ingestMany(api, events);
  const ingested = performance.now();
  await importGenerated(api, bills, ['openaiRestated']);
  const imported = performance.now();
  run = await runGaps(api, '?period=90d', 120_000);
  const seconds = (from: number, to: number) => ((to - from) / 1_000).toFixed(1);
  console.info(
    `the run: ${events.length} events in ${seconds(started, ingested)} s, 5 bills read in ${seconds(ingested, imported)} s, matched in ${seconds(imported, performance.now())} s`,
  );
}, 300_000);

afterAll(() => api?.close());

describe(`${DAYS} days of two providers`, () => {
  it('are matched to an end', () => {
    expect(run).toMatchObject({
      status: 'succeeded',
      error: null,
      progress: { percent: 100 },
      result: { provider_days: 2 * DAYS, unchanged_days: 0, failed_units: [], failed_accounts: [] },
    });
  });

  it('sum by account, day and category to what an independent reader finds in the raw pages, to the pico-dollar', async () => {
    const { openaiCosts, openaiRestated, anthropicCosts } = bills.files;
    const expected = sumCostPages([
      { account: 'default', provider: 'openai', text: openaiCosts },
      { account: 'default', provider: 'openai', text: openaiRestated },
      { account: 'default', provider: 'anthropic', text: anthropicCosts },
    ]);
    const totals = await listBilledTotals(api.orgDb, {
      provider: null,
      fromDay: bills.days[0] as string,
      toDay: '9999-12-31',
    });
    const found = new Map(
      totals
        .filter(({ amountPico }) => amountPico !== 0n)
        .map((total) => [
          `${total.provider}/${total.accountId}|${total.day}|${total.chargeCategory}`,
          total.amountPico,
        ]),
    );
    expect(found.size).toBeGreaterThan(2 * DAYS);
    expect([...found].sort()).toEqual([...expected].sort());
  });

  it('have rows that sum to their days', async () => {
    const { rows } = await api.database.superuser.query(
      `select count(*)::int as wrong from billing_days d where org_id = $1 and amount_usd <> coalesce((select sum(r.amount_usd) from billing_rows r
         where r.org_id = d.org_id and r.source_id = d.source_id and r.day = d.day and r.provider_account_id = d.provider_account_id
           and r.feed = d.feed and r.report = d.report and r.charge_category = d.charge_category), 0)`,
      [api.orgId],
    );
    expect(rows[0].wrong).toBe(0);
  });

  it('show the missing SDK window on its day, for each model with its exact dollars and minutes', async () => {
    const { missingDay, missingPico, missingHours } = bills.planted;
    const buckets = (await storedBuckets()).filter(
      ({ day, provider, unobserved_minutes }) =>
        day === missingDay && provider === 'openai' && unobserved_minutes !== null,
    );
    expect(buckets.map(({ model }) => model).sort()).toEqual(['gpt-4o', 'gpt-5-mini', 'gpt-6-sol']);
    for (const bucket of buckets) {
      const [, missing] = [...missingPico].find(([model]) => model.startsWith(bucket.model)) ?? [];
      expect({ ...bucket, gap: bucket.billed - bucket.ours }).toMatchObject({
        match_status: 'partial',
        flagged: true,
        gap: missing,
        volume: missing,
        rate: 0n,
        own: 0n,
        unobserved_minutes: missingHours * 60,
      });
    }
  });

  it('show the wrong rate on its days with its exact dollars', async () => {
    const { wrongRateDays, wrongRatePico } = bills.planted;
    const buckets = (await storedBuckets()).filter(
      ({ model, rate }) => model === 'claude-opus-5' && rate !== 0n,
    );
    expect(buckets.map(({ day, rate, volume, own, flagged }) => [day, rate, volume, own, flagged])).toEqual(
      wrongRateDays.map((day) => [day, wrongRatePico.get(day), 0n, 0n, true]),
    );
  });

  it('report the wrong rate from the bill alone, as one error over its days', () => {
    const { wrongRateDays, wrongRatePico } = bills.planted;
    const total = [...wrongRatePico.values()].reduce((sum, pico) => sum + pico, 0n);
    expect(run.result.rate_mismatch_count).toBe(1);
    expect(run.result.rate_mismatches).toMatchObject([
      {
        provider: 'anthropic',
        model: 'claude-opus-5',
        token_class: 'output',
        first_day: wrongRateDays[0],
        last_day: wrongRateDays[2],
        days: 3,
        billed_rate_per_mtok: 30,
        list_rate_per_mtok: 25,
        excess_usd_exact: decimalFromPico(total),
        agreement: 'agree',
      },
    ]);
  });

  it('flag what was planted and nothing else', async () => {
    const { missingDay, missingPico, wrongRateDays } = bills.planted;
    const flagged = (await storedBuckets())
      .filter((bucket) => bucket.flagged)
      .map(({ day, model }) => `${day} ${model}`);
    const planted = [
      ...[...missingPico.keys()].map((model) => `${missingDay} ${model.replace(/-20\d\d.*$/, '')}`),
      ...wrongRateDays.map((day) => `${day} claude-opus-5`),
    ];
    expect(flagged.sort()).toEqual(planted.sort());
    expect(run.result.flagged).toBe(planted.length);
  });

  it('match every other model’s day at HIGH once it is closed, credit and restated day included', async () => {
    const flagged = (bucket: StoredBucket) => bucket.flagged;
    const models = (await storedBuckets()).filter((bucket) => bucket.reason !== 'not_observable');
    expect(models).toHaveLength(2 * 3 * DAYS);
    for (const bucket of models) {
      if (flagged(bucket)) continue;
      expect([bucket.day, bucket.model, bucket.match_status, bucket.grade]).toEqual([
        bucket.day,
        bucket.model,
        'matched',
        bucket.provisional ? 'UNVERIFIED' : 'HIGH',
      ]);
      expect([bucket.rate, bucket.volume, bucket.own]).toEqual([0n, 0n, 0n]);
    }
    expect(new Set(models.filter(({ provisional }) => provisional).map(({ day }) => day))).toEqual(
      new Set([yesterday]),
    );
  });

  it('keep tool fees on lines of their own, unmatched and never flagged', async () => {
    const fees = (await storedBuckets()).filter((bucket) => bucket.reason === 'not_observable');
    expect(new Set(fees.map(({ model }) => model))).toEqual(
      new Set(['web search tool calls', 'Web Search Usage']),
    );
    expect(fees).toHaveLength(2 * DAYS);
    expect(fees.every(({ flagged, match_status }) => !flagged && match_status === 'unmatched')).toBe(true);
  });

  it('list which copies of the restated day differ, and by how much', () => {
    const { restatedDay, restatedPico } = bills.planted;
    expect(run.result.source_differences).toMatchObject([
      { provider: 'openai', day: restatedDay, charge_category: 'usage' },
    ]);
    const [difference] = run.result.source_differences;
    expect(difference.counted_usd - difference.other_usd).toBeCloseTo(
      Number(decimalFromPico(restatedPico)),
      9,
    );
  });

  it('are shown by the explorer, flagged and unmatched separately, by hour for the last week', async () => {
    const all = await api.get('/api/v1/reconciliation/gap-explorer?period=90d');
    expect(all.body).toMatchObject({ total: run.result.total, flagged: run.result.flagged });
    expect(all.body.gaps).toHaveLength(run.result.total);
    const flagged = await api.get('/api/v1/reconciliation/gap-explorer?period=90d&flagged=true');
    expect(flagged.body.gaps).toHaveLength(run.result.flagged);
    expect(flagged.body.total).toBe(run.result.total);
    const unmatched = await api.get('/api/v1/reconciliation/gap-explorer?period=90d&flagged_only=true');
    expect([unmatched.body.flagged, unmatched.body.gaps]).toEqual([run.result.flagged, []]);
    const order = all.body.gaps.map((gap: Json) => [
      gap.bucket,
      -Math.abs(gap.provider_cost_usd - gap.our_cost_usd),
    ]);
    expect(
      order.every(
        ([bucket, size]: [string, number], at: number) =>
          at === 0 ||
          bucket < order[at - 1][0] ||
          (bucket === order[at - 1][0] && size >= order[at - 1][1] - 1e-9),
      ),
    ).toBe(true);
    const one = await api.get('/api/v1/reconciliation/gap-explorer?period=90d&provider=anthropic');
    expect(new Set(one.body.gaps.map((gap: Json) => gap.provider))).toEqual(new Set(['anthropic']));
    const week = await api.get('/api/v1/reconciliation/gap-explorer?period=7d');
    const hours = week.body.gaps.filter((gap: Json) => !gap.bucket.endsWith('T00:00:00Z'));
    expect(hours.length).toBeGreaterThan(6 * 6 * 20);
    expect(hours.every((gap: Json) => gap.match_status === 'matched' && gap.confidence !== 'HIGH')).toBe(
      true,
    );
  });

  it('foot in the summary of the last month: matched + unmatched is the bill, and the four grades sum to it', async () => {
    const { body } = await api.get('/api/v1/reconciliation/summary');
    const month = monthBefore(new Date().toISOString());
    expect(body.period).toBe(month);
    const totals = await listBilledTotals(api.orgDb, {
      provider: null,
      fromDay: `${month}-01`,
      toDay: `${new Date().toISOString().slice(0, 7)}-01`,
    });
    const billed = totals
      .filter(({ chargeCategory }) => chargeCategory === 'usage')
      .reduce((sum, { amountPico }) => sum + amountPico, 0n);
    expect(body.matched_usd + body.unmatched_usd).toBeCloseTo(Number(decimalFromPico(billed)), 6);
    const { HIGH, MEDIUM, LOW, UNVERIFIED } = body.confidence_distribution;
    expect(HIGH + MEDIUM + LOW + UNVERIFIED).toBeCloseTo(Number(decimalFromPico(billed)), 6);
    expect(HIGH).toBeGreaterThan(0);
  });
});

/** `YYYY-MM` of the month before an instant's. */
function monthBefore(iso: string): string {
  const date = new Date(`${iso.slice(0, 7)}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() - 1);
  return date.toISOString().slice(0, 7);
}
