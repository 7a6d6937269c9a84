import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { TOKEN_CLASSES } from '../../../lab/bills/results.js';
import { DOCUMENTED, describeDemo } from '../../../lab/demo/describe.js';
import { DEMO_SEED, type Demo, generateDemo } from '../../../lab/demo/generateDemo.js';
import { BATCH_DIVISOR, MODEL_PRICES, type Rates, TERRA_BEFORE } from '../../../lab/demo/prices.js';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';

const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
/** Demos that end on a Sunday, a month's end and a leap day, besides one that ends on a Friday. */
const OTHER_END_DAYS = ['2026-12-06', '2027-01-31', '2028-02-29'];

let demo: Demo;

beforeAll(() => {
  demo = generateDemo(DOCUMENTED);
}, 300_000);

const plain = (value: unknown) =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));

describe('the demo', () => {
  it('is the same each time for the same seed and last day, and another for another seed', () => {
    expect(plain(generateDemo(DOCUMENTED)) === plain(demo)).toBe(true);
    expect(generateDemo({ ...DOCUMENTED, seed: 43 }).answerKey).not.toEqual(demo.answerKey);
  });

  it('has 89 days, four teams, five features, six models of calls and a seventh that only the bill contains', () => {
    const events = demo.events as {
      team_id?: string;
      feature: string;
      response_model: string;
      end_at: string;
    }[];
    const valuesOf = (of: (event: (typeof events)[number]) => string | undefined) =>
      new Set(events.map(of).filter((value) => value !== undefined));
    expect(events.length).toBeGreaterThan(40_000);
    expect(events.length).toBeLessThan(50_000);
    expect(valuesOf((event) => event.end_at.slice(0, 10)).size).toBe(89);
    expect(valuesOf((event) => event.team_id).size).toBe(4);
    expect(valuesOf((event) => event.feature).size).toBe(5);
    expect(valuesOf((event) => event.response_model).size).toBe(6);
    expect(demo.files.some(({ text }) => text.includes('gpt-4o-2024-11-20'))).toBe(true);
  });

  it('is batched by about 15 %', () => {
    const batches = demo.events.filter((event) => (event as { is_batch: boolean }).is_batch).length;
    expect(batches / demo.events.length).toBeCloseTo(0.15, 2);
  });

  it('sends each call once: no two events share a request id', () => {
    const ids = new Set(demo.events.map((event) => (event as { request_id: string }).request_id));
    expect(ids.size).toBe(demo.events.length);
  });

  it('plants no two faults on one model’s day, and none on days that may still be restated', () => {
    const places = demo.answerKey.gaps.map(({ offset, model, kind }) => ({
      place: `${offset} ${model}`,
      kind,
    }));
    expect(new Set(places.map(({ place }) => place)).size).toBe(places.length);
    expect(demo.answerKey.gaps.every(({ offset }) => offset > -89 && offset < -3)).toBe(true);
  });

  it('has the faults of its bills as findings: every dollar in one, days without a hole', () => {
    const { findings } = demo.answerKey;
    const gaps = demo.answerKey.gaps.filter(({ kind }) => kind !== 'missing_window');
    const sum = (values: bigint[]) => values.reduce((total, value) => total + value, 0n);
    expect(sum(findings.map(({ impactPico }) => impactPico))).toBe(sum(gaps.map(({ gapPico }) => gapPico)));
    const days = sum(findings.map(({ days: { first, last } }) => BigInt(last - first + 1)));
    expect(days).toBe(BigInt(gaps.length));
    expect(new Set(findings.map(({ kind }) => kind)).size).toBe(6);
  });

  it('names each amount of OpenAI’s exactly by a JSON number', () => {
    const amounts = demo.truth.openai.reports.costs?.flatMap(({ results }) =>
      results.map((result) => String((result as { amount: { value: number } }).amount.value)),
    );
    // A double holds any decimal of 15 digits.
    expect(Math.max(...(amounts ?? []).map((text) => text.replace(/[-.]/g, '').length))).toBeLessThanOrEqual(
      15,
    );
  });

  it.each(OTHER_END_DAYS)('has the same faults with the same dollars when it ends on %s', (endDay) => {
    const other = generateDemo({ seed: DEMO_SEED, endDay });
    // Data of the whole traffic have their weekends where the calendar has them.
    const { ofTraffic: _, ...faults } = other.answerKey;
    expect(demo.answerKey).toMatchObject(faults);
    expect(Object.keys(faults)).toHaveLength(Object.keys(demo.answerKey).length - 1);
    expect(describeDemo(other)).toBe(describeDemo(demo));
  });

  it('refuses a malformed last day', () => {
    expect(() => generateDemo({ seed: 42, endDay: '2026-13-01' })).toThrow(RangeError);
    expect(() => generateDemo({ seed: 42, endDay: 'yesterday' })).toThrow(RangeError);
  });
});

describe('docs/demo.md', () => {
  it('matches the answer key: npm run demo:docs writes it anew', () => {
    expect(readFileSync(join(PROJECT_ROOT, 'docs/demo.md'), 'utf8')).toBe(describeDemo(demo));
  });
});

interface ListedRates {
  effective_from: string | null;
  effective_to: string | null;
  batch_multiplier: number | null;
  tiers: (Record<string, number | string | null> & { service_tier?: string; above_input_tokens?: number })[];
  [name: string]: unknown;
}

interface ListedModel {
  provider: string;
  model: string;
  aliases: string[];
  rates: ListedRates[];
}

const listed = JSON.parse(readFileSync(join(PROJECT_ROOT, 'data/prices.json'), 'utf8')) as {
  models: ListedModel[];
};

function listedOn(provider: string, model: string, day: string): ListedRates {
  const found = listed.models.find(
    (entry) => entry.provider === provider && (entry.model === model || entry.aliases.includes(model)),
  );
  const period = found?.rates.find(
    ({ effective_from: from, effective_to: to }) =>
      (from === null || from <= day) && (to === null || day < to),
  );
  if (!period) throw new Error(`the price list has no ${provider} ${model} on ${day}`);
  return period;
}

/** Dollars per million as the list writes them → pico-dollars per token. */
const perToken = (usd: unknown) =>
  typeof usd === 'number' ? BigInt(Math.round(usd * 1_000_000)) : undefined;

function expectRates(rates: Rates, list: Record<string, unknown>, divisor = 1n): void {
  for (const name of TOKEN_CLASSES) {
    const own = rates[name];
    if (own !== undefined) expect([name, own / divisor]).toEqual([name, perToken(list[name])]);
  }
}

describe('the demo’s own prices', () => {
  const days = [DOCUMENTED.endDay, yesterday].flatMap((endDay) => {
    const end = Date.parse(endDay);
    return Array.from({ length: 91 }, (_, back) =>
      new Date(end - back * 86_400_000).toISOString().slice(0, 10),
    );
  });

  it.each(MODEL_PRICES.map((price) => [price.model, price] as const))(
    'of %s are the list’s on every day that the demo covers',
    (model, price) => {
      for (const period of new Set(days.map((day) => listedOn(price.provider, model, day)))) {
        expectRates(price.standard, period);
        const long = period.tiers.find((tier) => tier.above_input_tokens !== undefined && !tier.service_tier);
        if (price.long) {
          expect(long?.above_input_tokens).toBe(price.long.above);
          expectRates(price.long.rates, long ?? {});
        }
        const batch = period.tiers.find((tier) => tier.service_tier === 'batch' && !tier.above_input_tokens);
        if (model !== 'gpt-4o-2024-11-20') expectRates(price.standard, batch ?? {}, BATCH_DIVISOR);
      }
    },
  );

  it('contain the price that the stale one returns to', () => {
    expectRates(TERRA_BEFORE, listedOn('openai', 'gpt-5.6-terra', '2026-07-29'));
  });
});
