import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runBenchmark, runPrepared, VISIBILITIES } from '../../lab/bench/reconciliation/benchmark.js';
import { billedCellsOf } from '../../lab/bench/reconciliation/cells.js';
import { fetchBills } from '../../lab/bench/reconciliation/fetchRows.js';
import { metricsOf } from '../../lab/bench/reconciliation/metrics.js';
import { numberOfDay } from '../../lab/generators/third/calendar.js';
import { planCompany } from '../../lab/generators/third/company.js';
import { Dice } from '../../lab/generators/third/dice.js';
import { KINDS, planMistakes } from '../../lab/generators/third/errors/plan.js';
import { makeThirdWorld } from '../../lab/generators/third/makeThird.js';
import { METERS, type Step, TARIFFS, type Tariff } from '../../lab/generators/third/tariffs.js';
import type { GeneratedWorld, Truth } from '../../lab/generators/world.js';

const SIZE = 0.3;
const SEEDS = [1, 2, 3];
const WORLDS = SEEDS.map((seed) => makeThirdWorld({ seed, set: 'mixed', size: SIZE }));
const [world] = WORLDS as [GeneratedWorld];
const mistakesOf = ({ truths }: GeneratedWorld) => truths.filter(({ isViolation }) => isViolation);
/** Rows of a day are each rounded to a millionth of a dollar at most. */
const ROUNDING_PICO = 100_000_000n;

async function chargesOf(of: GeneratedWorld): Promise<Map<string, bigint>> {
  const { rows } = await fetchBills(of, of.bills.V3);
  const sums = new Map<string, bigint>();
  for (const { accountId, row } of rows) {
    if (row.feed !== 'cost') continue;
    const name = `${accountId} ${row.day}`;
    sums.set(name, (sums.get(name) ?? 0n) + (row.amountPico ?? 0n));
  }
  return sums;
}

describe('the third generator', () => {
  it('makes the same world of the same seed, and another of another', () => {
    const again = makeThirdWorld({ seed: 1, set: 'mixed', size: SIZE });
    expect(again).toEqual(world);
    expect(WORLDS[1]?.spendPico).not.toBe(world.spendPico);
  });

  it('bills the same total at every visibility, and it is what is read', async () => {
    for (const visibility of VISIBILITIES) {
      const { rows } = await fetchBills(world, world.bills[visibility]);
      const cells = [...billedCellsOf(rows).values()].flat();
      const total = cells.reduce((sum, { amountPico }) => sum + amountPico, 0n);
      expect(total, visibility).toBe(world.spendPico);
      if (visibility === 'V0') continue;
      expect(
        cells.filter(({ model, tokenClass }) => model === null || tokenClass === 'other'),
        visibility,
      ).toEqual([]);
    }
  });

  it.each(SEEDS)(
    'seed %i: the truth is the bill minus what it should be, by account and day',
    async (seed) => {
      const mixed = WORLDS[SEEDS.indexOf(seed)] as GeneratedWorld;
      const difference = await chargesOf(mixed);
      const right = makeThirdWorld({ seed, set: 'benign_only', size: SIZE });
      for (const [name, pico] of await chargesOf(right))
        difference.set(name, (difference.get(name) ?? 0n) - pico);
      for (const { accountId, impactByDay } of mistakesOf(mixed))
        for (const [day, pico] of impactByDay)
          difference.set(`${accountId} ${day}`, (difference.get(`${accountId} ${day}`) ?? 0n) - pico);
      const wrong = [...difference].filter(([, pico]) => pico > ROUNDING_PICO || pico < -ROUNDING_PICO);
      expect(wrong).toEqual([]);
    },
  );

  it('plants no mistake where none is wanted, and reports the same calls', () => {
    const benign = makeThirdWorld({ seed: 1, set: 'benign_only', size: SIZE });
    expect(mistakesOf(benign)).toEqual([]);
    expect(benign.truths.length).toBeGreaterThan(0);
    expect(benign.calls).toEqual(world.calls);
    expect(() => makeThirdWorld({ seed: 1, set: 'nothing', size: SIZE })).toThrow(
      'the third generator has the sets',
    );
  });

  it('is judged alike when it is prepared first, and when it is read from the folder of prepared worlds', async () => {
    const options = { seed: 1, set: 'mixed', size: SIZE };
    const [fresh] = (await runBenchmark([world], ['V3'])).values();
    for (let round = 0; round < 2; round += 1) {
      const [prepared] = (await runPrepared('third', [options], ['V3'])).values();
      const figures = [fresh, prepared].map((tally) => tally && { ...metricsOf(tally), runMs: 0 });
      expect(figures[1]).toEqual(figures[0]);
    }
  });

  it('covers 60 days of four providers', () => {
    const days = (Date.parse(world.lastDay) - Date.parse(world.firstDay)) / 86_400_000 + 1;
    expect(days).toBe(60);
    expect(new Set(world.bills.V3.map(({ provider }) => provider))).toEqual(
      new Set(['openai', 'anthropic', 'aws_bedrock', 'azure_openai']),
    );
  });

  it('lets mistakes share days, last a day or three weeks, and affect one key or place', () => {
    const many = Array.from({ length: 8 }, (_, seed) =>
      makeThirdWorld({ seed: 50 + seed, set: 'mixed', size: SIZE }),
    );
    const truths = many.flatMap(mistakesOf);
    const days = new Map<string, Set<string>>();
    many.forEach((one, at) => {
      for (const { id, impactByDay } of mistakesOf(one)) {
        const name = `${at} ${id.slice(0, id.lastIndexOf('.'))}`;
        days.set(name, new Set([...(days.get(name) ?? []), ...impactByDay.keys()]));
      }
    });
    const lengths = [...days.values()].map(({ size }) => size);
    expect(lengths.some((length) => length <= 2)).toBe(true);
    expect(lengths.some((length) => length >= 18)).toBe(true);
    expect(truths.some(({ note }) => note.startsWith('all calls'))).toBe(true);
    expect(truths.some(({ note }) => /^(?:apikey|key)_/.test(note))).toBe(true);
    expect(truths.some(({ note }) => /^(?:dearer place|global)/.test(note))).toBe(true);
    const shared = many.some((one) => sharedDays(mistakesOf(one)) > 0);
    expect(shared).toBe(true);
  });

  it('plans every kind of mistake in some of its companies', () => {
    const period = { first: numberOfDay('2026-07-20'), last: numberOfDay('2026-09-17') };
    const planned = new Set<string>();
    for (let seed = 0; seed < 60; seed += 1) {
      const company = planCompany(new Dice(seed), period, 1);
      for (const series of company)
        for (const { kind } of planMistakes(new Dice(seed, series.id), series, company, period))
          planned.add(kind.form);
    }
    expect(KINDS.filter(({ form }) => !planned.has(form)).map(({ form }) => form)).toEqual([]);
  });

  it('states a gate for every day that the provider may still restate, and for no wrong rate for want of calls', () => {
    for (const one of WORLDS) {
      const read = one.readAtSeconds;
      for (const truth of mistakesOf(one)) {
        for (const day of truth.impactByDay.keys())
          if (Date.parse(day) / 1_000 + 2 * 86_400 > read)
            expect(truth.missingGate, truth.id).toBe('closed_period');
        const kind = KINDS.find(({ form }) => form === truth.form);
        if (kind?.proof === 'rate') expect(truth.missingGate).not.toBe('coverage_or_sealed_scope');
        if (truth.missingGate === 'closed_period') expect(truth.identifiableAt.size).toBe(0);
      }
    }
  });
});

function sharedDays(truths: readonly Truth[]): number {
  const names = new Map<string, Set<string>>();
  for (const { provider, model, impactByDay, form } of truths)
    for (const day of impactByDay.keys()) {
      const forms = names.get(`${provider} ${model} ${day}`) ?? new Set();
      names.set(`${provider} ${model} ${day}`, forms.add(form));
    }
  return [...names.values()].filter(({ size }) => size > 1).length;
}

interface Listed {
  provider: string;
  model: string;
  aliases: string[];
  agreement: string;
  rates: (Record<string, number | null> & { tiers: Record<string, unknown>[]; effective_from: unknown })[];
  variants?: Record<string, { input: number }>;
  regional_multipliers?: { us?: number };
}

const LIST = JSON.parse(readFileSync(new URL('../../data/prices.json', import.meta.url), 'utf8')) as {
  models: Listed[];
};

function listed(provider: string, model: string): Listed {
  const found = LIST.models.find(
    (one) => one.provider === provider && (one.model === model || one.aliases.includes(model)),
  );
  if (!found) throw new Error(`the list has no ${provider} ${model}`);
  return found;
}

const ratesIn = (given: Record<string, unknown> | undefined) => METERS.map((meter) => given?.[meter] ?? 0);

describe('the tariffs of the third generator', () => {
  it.each(TARIFFS.map((tariff) => [`${tariff.provider} ${tariff.told}`, tariff] as const))(
    '%s has the rates of the price list',
    (_, tariff) => {
      const isProfiled = tariff.provider === 'aws_bedrock' && tariff.elsewhere > 1_000;
      const entry = listed(tariff.provider, isProfiled ? `global.${tariff.told}` : tariff.billed);
      expect(entry.agreement === 'agree').toBe(tariff.isAgreed);
      const steps = tariff.isDocumented ? tariff.steps.slice(-1) : tariff.steps;
      const periods = entry.rates.slice(-steps.length);
      for (const [at, step] of steps.entries())
        expectStep(step, tariff, periods[at] as Listed['rates'][number]);
      if (tariff.elsewhere > 1_000) expect(elsewhereOf(tariff, entry)).toBeCloseTo(tariff.elsewhere / 1_000);
    },
  );
});

function expectStep(step: Step, tariff: Tariff, period: Listed['rates'][number]): void {
  expect(ratesIn(period)).toEqual([...step.standard]);
  const tier = (name: string | undefined, above: number | undefined) =>
    period.tiers.find((one) => one.service_tier === name && one.above_input_tokens === above);
  for (const name of ['batch', 'flex', 'priority'] as const)
    if (step[name]) expect(ratesIn(tier(name, undefined)), name).toEqual([...step[name]]);
  if (step.long) expect(ratesIn(tier(undefined, tariff.longAbove))).toEqual([...step.long]);
}

/** Factor of the dearer place: a regional profile, a variant of the entry, or a regional multiplier. */
function elsewhereOf({ provider, told }: Tariff, entry: Listed): number {
  const input = entry.rates.at(-1)?.input;
  if (provider === 'aws_bedrock')
    return Number(listed(provider, `us.${told}`).rates[0]?.input) / Number(input);
  return entry.regional_multipliers?.us ?? Number(entry.variants?.us?.input) / Number(input);
}
