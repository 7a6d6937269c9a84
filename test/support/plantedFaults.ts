/** The results that the product must find in the demo, however the data arrived. */
import { expect, it } from 'vitest';
import { listBilledTotals } from '../../db/billing/billingRows.js';
import { decimalFromPico } from '../../domain/money.js';
import { DAY_COUNT } from '../../lab/demo/calendar.js';
import type { Demo } from '../../lab/demo/generateDemo.js';
import type { TestApi } from './api.js';
import { byText, cents, dayOf, exact, fieldsAsIn, oddOf } from './demoReads.js';
import type { BillTotals } from './independentBillReader.js';
import { itExplainsWhatWasPlanted } from './plantedFindings.js';
import { expectSameUnexplained } from './sameUnexplained.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

export interface FoundDemo {
  api: TestApi;
  demo: Demo;
  /** The gap run over all of it. */
  run: Json;
  /** Buckets of the gap explorer's 90 days. */
  gaps: Json[];
  /** Totals of an independent reader of the bills. */
  billed: BillTotals;
}

export const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

/** The days and lines of a planted wrong rate, in the names of the API. */
const linesOf = ({ calendar }: Demo, rate: Demo['answerKey']['rates'][number]) => ({
  provider: rate.provider,
  model: rate.model,
  token_class: rate.tokenClass,
  is_batch: rate.isBatch,
  long_context: rate.isLong,
  first_day: calendar.dayText(rate.days.first),
  last_day: calendar.dayText(rate.days.last),
});

/** The checks of the demo; `place` is called when they run. */
export function itFindsWhatWasPlanted(place: () => FoundDemo): void {
  it('sums by day and category to what an independent reader finds in its pages, to the pico-dollar', async () => {
    const { api, demo, billed } = place();
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
    expect(found.length).toBeGreaterThan(2 * DAY_COUNT);
    expect(found.sort()).toEqual([...billed].sort());
  });

  it('shows every planted rate fault to the pico-dollar, and no other', () => {
    const { demo, run } = place();
    const planted = demo.answerKey.rates.map((rate) => ({
      ...linesOf(demo, rate),
      excess_usd_exact: decimalFromPico(rate.excessPico),
    }));
    const found = run.result.rate_mismatches.map((mismatch: Json) => fieldsAsIn(planted[0], mismatch));
    expect(found.sort(byText)).toEqual(planted.sort(byText));
    expect(place().run.result.rate_mismatch_count).toBe(planted.length);
  });

  it('flags the planted days with their exact dollars, and nothing else', () => {
    const planted = place().demo.answerKey.gaps.map((gap) => ({
      day: place().demo.calendar.dayText(gap.offset),
      provider: gap.provider,
      model: gap.model,
      status: gap.hasEvents ? 'partial' : 'unmatched',
      gap: cents(decimalFromPico(gap.gapPico)),
      rate: gap.hasEvents ? cents(decimalFromPico(gap.ratePico)) : null,
      volume: gap.hasEvents ? cents(decimalFromPico(gap.volumePico)) : null,
      own: gap.hasEvents ? '0.00' : null,
    }));
    const found = place()
      .gaps.filter(({ flagged_gap }) => flagged_gap)
      .map((gap) => ({
        day: dayOf(gap),
        provider: gap.provider,
        model: gap.model,
        status: gap.match_status,
        gap: cents(gap.provider_cost_usd - gap.our_cost_usd),
        rate: gap.match_status === 'partial' ? cents(gap.gap_parts.rate_usd) : null,
        volume: gap.match_status === 'partial' ? cents(gap.gap_parts.volume_usd) : null,
        own: gap.match_status === 'partial' ? cents(gap.gap_parts.own_pricing_usd) : null,
      }));
    expect(found.sort(byText)).toEqual(planted.sort(byText));
    expect(place().run.result.flagged).toBe(planted.length);
  });

  it('matches every other model’s day at HIGH once it is closed', () => {
    const rest = place().gaps.filter((gap) => !gap.flagged_gap && gap.reason !== 'not_observable');
    expect(rest.length).toBeGreaterThan(400);
    expect(oddOf(rest)).toEqual([]);
    expect(new Set(rest.filter((gap) => gap.provisional).map(dayOf))).toEqual(new Set([yesterday]));
  });

  it('says what a wrong rate looks like: the audit lists exactly the planted ones, each with its cause', async () => {
    const audits = await Promise.all(
      ['openai', 'anthropic'].map((provider) =>
        place().api.get(`/api/v1/reconciliation/audit?provider=${provider}`),
      ),
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
    const { demo } = place();
    const planted = demo.answerKey.rates.map((rate) => ({
      ...linesOf(demo, rate),
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
      ...new Set(
        place()
          .demo.calendar.offsets()
          .map((offset) => place().demo.calendar.dayText(offset).slice(0, 7)),
      ),
    ];
    const statements = await Promise.all(
      months.map((month) => place().api.get(`/api/v1/reconciliation/statement?period=${month}`)),
    );
    const sumOf = (name: string) => statements.reduce((sum, { body }) => sum + body.total[name], 0);
    const billed = place().billed;
    for (const [at, month] of months.entries()) {
      const invoice = [...billed].filter(([key]) => key.split('|')[1]?.startsWith(month));
      const total = invoice.reduce((sum, [, pico]) => sum + pico, 0n);
      expect(cents(statements[at]?.body.total.invoice_total_usd)).toBe(cents(decimalFromPico(total)));
    }
    const { credit, ofTraffic, rates, gaps: planted, toolFees } = place().demo.answerKey;
    const usd = (pico: bigint) => Number(decimalFromPico(pico));
    const add = (values: bigint[]) => usd(values.reduce((sum, value) => sum + value, 0n));
    expect(sumOf('credits_usd')).toBe(usd(credit.pico));
    expect(sumOf('contract_discount_usd')).toBeCloseTo(usd(ofTraffic.contract.discountPico), 8);
    expect(sumOf('rate_difference_usd')).toBeCloseTo(add(rates.map(({ excessPico }) => excessPico)), 8);
    expect(sumOf('not_observable_usd')).toBeCloseTo(add(Object.values(toolFees)), 8);
    const gapsUsd = add(planted.map(({ gapPico }) => gapPico));
    expect(sumOf('not_matched_by_calls_usd')).toBeCloseTo(gapsUsd, 8);
  });

  it('has the same unexplained dollars in the statement of each month as in the financial summary of it', async () => {
    const { calendar } = place().demo;
    const days = calendar.offsets().map((offset) => calendar.dayText(offset));
    for (const month of new Set(days.map((day) => day.slice(0, 7)))) {
      const { total } = await expectSameUnexplained(place().api, month);
      // All that was planted has an explanation.
      expect(total.unexplained_usd).toBe(0);
      expect(Math.abs(total.explained_by_findings_usd - total.in_findings_usd)).toBeLessThan(1);
    }
  });

  it('reports the unknown provider key with its billed amount', async () => {
    const { strayKey } = place().demo.answerKey;
    const { body } = await place().api.get('/api/v1/provider-keys');
    expect(body.items).toHaveLength(place().demo.providerKeys.length);
    expect(body.unknown).toMatchObject([
      { provider: 'openai', provider_key_id: strayKey.keyId, reason: 'unknown' },
    ]);
    expect(exact(body.unknown[0].billed_usd)).toBe(strayKey.pico);
    expect(place().run.result.suspect_keys).toEqual(body.unknown);
  });

  itExplainsWhatWasPlanted(place);
}

/** The audit's name of each planted wrong rate. */
const CAUSES: Record<Demo['answerKey']['rates'][number]['kind'], string> = {
  stale_price: 'price_effective_date_mismatch',
  cache_at_full_rate: 'cache_read_rate_mismatch',
  contract_discount_not_applied: 'contract_rate_not_applied',
  batch_discount_not_applied: 'batch_discount_not_applied',
};
