import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoadedDemo, loadDemo } from '../bin/startup/demoLoad.js';
import { createScreen } from '../bin/startup/screen.js';
import { listBilledTotals } from '../db/queries/billedDays.js';
import { DEMO_SEED, type Demo, generateDemo } from '../demo/generateDemo.js';
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
  it('comes in whole, and a second time changes nothing', async () => {
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
});

const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

/** An amount to the cent. */
function cents(amount: number | string): string {
  const pico = picoFromDecimal(String(amount)) ?? 0n;
  const sign = pico < 0n ? -1n : 1n;
  const whole = (sign * pico + 5_000_000_000n) / 10_000_000_000n;
  return `${sign < 0n && whole > 0n ? '-' : ''}${whole / 100n}.${String(whole % 100n).padStart(2, '0')}`;
}
