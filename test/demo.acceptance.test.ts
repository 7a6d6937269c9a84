import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoadedDemo, loadDemo } from '../bin/startup/demoLoad.js';
import { createScreen } from '../bin/startup/screen.js';
import { listBilledTotals } from '../db/queries/billedDays.js';
import { DEMO_SEED, type Demo, generateDemo } from '../demo/generateDemo.js';
import { SCHEDULE } from '../demo/schedule.js';
import { decimalFromPico, picoFromDecimal } from '../domain/money.js';
import { createLogger } from '../platform/logger.js';
import { startTestApi, type TestApi } from './support/api.js';
import { startTestEngine, type TestEngine } from './support/engine.js';
import { sumCostPages } from './support/independentBillReader.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));

let api: TestApi;
let engine: TestEngine;
let demo: Demo;
let loaded: LoadedDemo;
let gaps: Json[];

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  const started = performance.now();
  loaded = await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
  console.info(`the demo: loaded and compared in ${((performance.now() - started) / 1_000).toFixed(1)} s`);
  gaps = (await api.get('/api/v1/reconciliation/gap-explorer?period=90d')).body.gaps;
}, 300_000);

afterAll(async () => {
  await engine?.close();
  await api?.close();
});

const day = (gap: Json): string => gap.bucket.slice(0, 10);

describe('the demo, brought in by the public ways', () => {
  it('comes in whole', () => {
    expect(loaded).toMatchObject({ events: demo.events.length, duplicates: 0 });
  });

  it('sums by day and category to what an independent reader finds in its pages, to the pico-dollar', async () => {
    const costs = demo.files.filter(({ name }) => /cost/.test(name));
    const expected = sumCostPages(costs);
    const totals = await listBilledTotals(api.orgDb, {
      provider: null,
      fromDay: demo.firstDay,
      toDay: '9999-12-31',
    });
    const found = totals
      .filter(({ amountPico }) => amountPico !== 0n)
      .map((total): [string, bigint] => [
        `${total.provider}/${total.accountId}|${total.day}|${total.chargeCategory}`,
        total.amountPico,
      ]);
    expect(found.length).toBeGreaterThan(180);
    expect(found.sort()).toEqual([...expected].sort());
  });

  it('shows every planted rate fault to the pico-dollar, and no other', () => {
    const planted = demo.answerKey.rates.map((rate) => ({
      provider: rate.provider,
      model: rate.model,
      token_class: rate.tokenClass,
      is_batch: rate.isBatch,
      long_context: rate.isLong,
      first_day: demo.calendar.dayText(rate.days.first),
      last_day: demo.calendar.dayText(rate.days.last),
      excess_usd_exact: decimalFromPico(rate.excessPico),
    }));
    const found = loaded.run.result.rate_mismatches.map((mismatch: Json) =>
      Object.fromEntries(Object.keys(planted[0] ?? {}).map((name) => [name, mismatch[name]])),
    );
    expect(found.sort(byText)).toEqual(planted.sort(byText));
    expect(loaded.run.result.rate_mismatch_count).toBe(planted.length);
  });

  it('flags the planted days with their exact dollars, and nothing else', () => {
    const planted = demo.answerKey.gaps.map((gap) => ({
      day: demo.calendar.dayText(gap.offset),
      provider: gap.provider,
      model: gap.model,
      status: gap.hasEvents ? 'partial' : 'unmatched',
      gap: cents(decimalFromPico(gap.gapPico)),
      rate: gap.hasEvents ? cents(decimalFromPico(gap.ratePico)) : null,
      volume: gap.hasEvents ? cents(decimalFromPico(gap.volumePico)) : null,
      own: gap.hasEvents ? '0.00' : null,
    }));
    const found = gaps
      .filter(({ flagged_gap }) => flagged_gap)
      .map((gap) => ({
        day: day(gap),
        provider: gap.provider,
        model: gap.model,
        status: gap.match_status,
        gap: cents(gap.provider_cost_usd - gap.our_cost_usd),
        rate: gap.match_status === 'partial' ? cents(gap.gap_parts.rate_usd) : null,
        volume: gap.match_status === 'partial' ? cents(gap.gap_parts.volume_usd) : null,
        own: gap.match_status === 'partial' ? cents(gap.gap_parts.own_pricing_usd) : null,
      }));
    expect(found.sort(byText)).toEqual(planted.sort(byText));
    expect(loaded.run.result.flagged).toBe(planted.length);
  });

  it('matches every other model’s day at HIGH once it is closed', () => {
    const rest = gaps.filter((gap) => !gap.flagged_gap && gap.reason !== 'not_observable');
    expect(rest.length).toBeGreaterThan(400);
    const odd = rest.filter(
      (gap) => gap.match_status !== 'matched' || gap.confidence !== (gap.provisional ? 'UNVERIFIED' : 'HIGH'),
    );
    expect(odd.map((gap) => [day(gap), gap.model, gap.match_status, gap.confidence])).toEqual([]);
    expect(new Set(rest.filter((gap) => gap.provisional).map(day))).toEqual(new Set([yesterday]));
  });

  it('says what a wrong rate looks like: the audit lists exactly the planted ones, each with its cause', async () => {
    const audits = await Promise.all(
      ['openai', 'anthropic'].map((provider) => api.get(`/api/v1/reconciliation/audit?provider=${provider}`)),
    );
    const found = audits.flatMap(({ body }) =>
      body.differences.map((line: Json) => ({
        provider: body.provider,
        model: line.model,
        token_class: line.token_class,
        is_batch: line.is_batch,
        long_context: line.long_context,
        first_day: line.first_day,
        last_day: line.last_day,
        difference: line.difference_usd_exact,
        looks_like: line.looks_like,
      })),
    );
    const planted = demo.answerKey.rates.map((rate) => ({
      provider: rate.provider,
      model: rate.model,
      token_class: rate.tokenClass,
      is_batch: rate.isBatch,
      long_context: rate.isLong,
      first_day: demo.calendar.dayText(rate.days.first),
      last_day: demo.calendar.dayText(rate.days.last),
      difference: decimalFromPico(rate.excessPico),
      looks_like: expect.arrayContaining([CAUSES[rate.kind]]),
    }));
    expect(found).toHaveLength(planted.length);
    expect(found).toEqual(expect.arrayContaining(planted));
    const excess = demo.answerKey.rates.reduce((sum, rate) => sum + rate.excessPico, 0n);
    const total = audits.reduce((sum, { body }) => sum + exact(body.totals.difference_usd_exact), 0n);
    expect(total).toBe(excess);
  });

  it('foots in the statements of its months: invoice, credit, contract, wrong rates, and what no call explains', async () => {
    const months = [
      ...new Set(demo.calendar.offsets().map((offset) => demo.calendar.dayText(offset).slice(0, 7))),
    ];
    const statements = await Promise.all(
      months.map((month) => api.get(`/api/v1/reconciliation/statement?period=${month}`)),
    );
    const sumOf = (name: string) => statements.reduce((sum, { body }) => sum + body.total[name], 0);
    const billed = sumCostPages(demo.files.filter(({ name }) => /cost/.test(name)));
    for (const [at, month] of months.entries()) {
      const invoice = [...billed].filter(([key]) => key.split('|')[1]?.startsWith(month));
      const total = invoice.reduce((sum, [, pico]) => sum + pico, 0n);
      expect(cents(statements[at]?.body.total.invoice_total_usd)).toBe(cents(decimalFromPico(total)));
    }
    const { credit, contract, rates, gaps: planted, toolFees } = demo.answerKey;
    const usd = (pico: bigint) => Number(decimalFromPico(pico));
    const add = (values: bigint[]) => usd(values.reduce((sum, value) => sum + value, 0n));
    expect(sumOf('credits_usd')).toBe(usd(credit.pico));
    expect(sumOf('contract_discount_usd')).toBeCloseTo(usd(contract.discountPico), 8);
    expect(sumOf('rate_difference_usd')).toBeCloseTo(add(rates.map(({ excessPico }) => excessPico)), 8);
    expect(sumOf('not_observable_usd')).toBeCloseTo(add(Object.values(toolFees)), 8);
    expect(sumOf('unexplained_usd')).toBeCloseTo(add(planted.map(({ gapPico }) => gapPico)), 8);
  });

  it('names the key that nobody knows, with what is billed for it', async () => {
    const { strayKey } = demo.answerKey;
    const { body } = await api.get('/api/v1/provider-keys');
    expect(body.items).toHaveLength(demo.providerKeys.length);
    expect(body.unknown).toMatchObject([
      { provider: 'openai', provider_key_id: strayKey.keyId, reason: 'unknown' },
    ]);
    expect(exact(body.unknown[0].billed_usd)).toBe(strayKey.pico);
    expect(loaded.run.result.suspect_keys).toEqual(body.unknown);
  });

  it('shows what is no fault of a bill: the loop, the calls without a team, staging, secrets, the restated day', async () => {
    const { runawayLoop, unlabelled, staging, secrets, restated } = demo.answerKey;
    const dayText = (offset: number) => demo.calendar.dayText(offset);
    const breakdown = async (dimension: string, since: string, until: string) =>
      (await api.get(`/api/v1/dashboard/breakdown/${dimension}?since=${since}&until=${until}`)).body.items;
    const [loopDay, stagingDay] = [dayText(SCHEDULE.runawayLoop.first), dayText(SCHEDULE.staging.first)];
    const [session] = await breakdown('session', loopDay, loopDay);
    expect([session.key, session.call_count, exact(session.cost_usd)]).toEqual([
      runawayLoop.sessionId,
      runawayLoop.events,
      runawayLoop.pico,
    ]);
    const teams = await breakdown('team', dayText(-89), demo.endDay);
    const unset = teams.find((item: Json) => item.key === '<unset>');
    expect([unset.call_count, exact(unset.cost_usd)]).toEqual([unlabelled.events, unlabelled.pico]);
    const search = `feature=semantic-search&since=${stagingDay}&until=${stagingDay}&limit=1000`;
    const { events } = (await api.get(`/api/v1/events?${search}`)).body;
    const staged = events.filter((event: Json) => event.environment === 'staging');
    expect(new Set(staged.map((event: Json) => event.provider_key_id))).toEqual(new Set([staging.keyId]));
    expect(staged).toHaveLength(staging.events);
    const prompts = await Promise.all(
      [SCHEDULE.secrets.first, SCHEDULE.secrets.last].map(async (offset) => {
        const query = `since=${dayText(offset)}&until=${dayText(offset)}&limit=1000&include_payload=true`;
        return (await api.get(`/api/v1/events?${query}`)).body.events;
      }),
    );
    const secret = prompts.flat().filter((event: Json) => secrets.requestIds.includes(event.request_id));
    expect(secret).toHaveLength(2);
    expect(secret.every((event: Json) => /demo-/.test(event.payload.prompt))).toBe(true);
    const [difference, ...more] = loaded.run.result.source_differences;
    expect(more).toEqual([]);
    expect([difference.provider, difference.day]).toEqual(['openai', dayText(restated.offset)]);
    expect(difference.counted_usd - difference.other_usd).toBeCloseTo(
      Number(decimalFromPico(restated.addedPico)),
      9,
    );
  });

  it('comes in a second time without any change', async () => {
    const again = await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
    expect(again).toMatchObject({ events: demo.events.length, duplicates: demo.events.length });
    expect(again.run.result).toMatchObject({
      flagged: loaded.run.result.flagged,
      rate_mismatches: loaded.run.result.rate_mismatches,
    });
    expect((await api.get('/api/v1/pricing/contract-rates')).body.count).toBe(1);
    expect((await api.get('/api/v1/billing-imports')).body.count).toBe(demo.files.length);
  });
});

/** How the audit names each planted wrong rate. */
const CAUSES: Record<Demo['answerKey']['rates'][number]['kind'], string> = {
  stale_price: 'price_effective_date_mismatch',
  cache_at_full_rate: 'cache_read_rate_mismatch',
  contract_discount_not_applied: 'contract_rate_not_applied',
  batch_discount_not_applied: 'batch_discount_not_applied',
};

/** Dollars as a number or a text → pico-dollars. */
const exact = (usd: number | string): bigint => picoFromDecimal(String(usd)) ?? -1n;

const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

/** An amount to the cent. */
function cents(amount: number | string): string {
  const pico = exact(amount);
  const sign = pico < 0n ? -1n : 1n;
  const whole = (sign * pico + 5_000_000_000n) / 10_000_000_000n;
  return `${sign < 0n && whole > 0n ? '-' : ''}${whole / 100n}.${String(whole % 100n).padStart(2, '0')}`;
}
