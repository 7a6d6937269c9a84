import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyUse, SuspectKey } from '../../../../../domain/billing/providerKeys.js';
import { microsOfDay, shiftDay } from '../../../../../domain/period.js';
import { explainAccount } from '../../../../../domain/reconciliation/engine/account/explainAccount.js';

import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { ACCOUNT, aCoveredAccount, aDay, BOOK, HOUR, tokens } from '../../support.js';
import { type Counts, calls, lines } from './support.js';

const PRICES = { agreed: BOOK, list: BOOK };
const FIRST = '2026-09-01';
const DAYS = 24;
const MINI = 'gpt-5-mini';
const SOL = 'gpt-6-sol';

/** Some use of each model, another on each day. */
const useOf = (at: number): Record<string, Counts> => ({
  [SOL]: { input: 2_000_000 + at * 31_000, output: 400_000 + at * 7_000 },
  [MINI]: { input: 9_000_000 - at * 53_000, output: 900_000 + at * 11_000 },
});

type Bill = (model: string, used: Counts, at: number) => Counts;

function daysWith(billed: Bill): DayInput[] {
  return Array.from({ length: DAYS }, (_, at) => {
    const day = shiftDay(FIRST, at);
    const read = microsOfDay(day) + 40n * 24n * HOUR;
    const used = Object.entries(useOf(at));
    return aDay({
      day,
      nowMicros: read,
      covered: [aCoveredAccount({ fetchedAtMicros: read })],
      observedSince: new Map([[ACCOUNT, microsOfDay('2026-01-01')]]),
      observed: used.map(([model, counts]) => calls(counts, {}, { model, day })),
      billed: used.flatMap(([model, counts]) => lines(billed(model, counts, at), {}, {}, { model, day })),
    });
  });
}

const plus = (a: Counts, b: Counts, sign = 1): Counts => ({
  input: (a.input ?? 0) + sign * (b.input ?? 0),
  output: (a.output ?? 0) + sign * (b.output ?? 0),
});
const isWrong = (at: number) => at >= 8 && at < 15;
const moved = (at: number): Counts => ({ input: 1_000_000 + at * 17_000, output: 150_000 + at * 3_000 });

const movedBill: Bill = (model, used, at) =>
  isWrong(at) ? plus(used, moved(at), model === SOL ? 1 : -1) : used;

describe('use billed as another model’s', () => {
  it('is one finding, of the difference in price, on the model that was billed', () => {
    const { findings } = reconcileDays('openai', daysWith(movedBill), PRICES, DEFAULT_WEIGHTS, []);
    expect(findings.map(({ kind, variant, model }) => ({ kind, variant, model }))).toEqual([
      { kind: 'model_misattribution', variant: `billed_for:${MINI}`, model: SOL },
    ]);
    const [finding] = findings;
    expect(finding?.days.map(({ day }) => day)).toEqual(
      Array.from({ length: 7 }, (_, at) => shiftDay(FIRST, at + 8)),
    );
    const cost = (model: string) =>
      Array.from({ length: 7 }, (_, at) => lines(moved(at + 8), {}, {}, { model, day: FIRST }))
        .flat()
        .reduce((sum, cell) => sum + cell.amountPico, 0n);
    const right = cost(SOL) - cost(MINI);
    const apart = (finding?.impactPico ?? 0n) - right;
    expect(apart < 100n && apart > -100n).toBe(true);
    expect(finding?.recoverablePico).toBe(finding?.impactPico);
  });

  it('is an undercharge where the cheaper model was billed', () => {
    const under: Bill = (model, used, at) =>
      isWrong(at) ? plus(used, moved(at), model === MINI ? 1 : -1) : used;
    const { findings } = reconcileDays('openai', daysWith(under), PRICES, DEFAULT_WEIGHTS, []);
    expect(
      findings.map(({ kind, direction, model, recoverablePico }) => ({
        kind,
        direction,
        model,
        recoverablePico,
      })),
    ).toEqual([{ kind: 'model_misattribution', direction: 'undercharge', model: MINI, recoverablePico: 0n }]);
  });

  it('is reported the same whatever order the series come in', () => {
    const { explanations } = reconcileDays('openai', daysWith(movedBill), PRICES, DEFAULT_WEIGHTS, []);
    const account = {
      provider: 'openai',
      accountId: ACCOUNT,
      suspectKeys: [],
      prices: PRICES,
      weights: DEFAULT_WEIGHTS,
    } as const;
    const once = explainAccount({ ...account, series: explanations });
    fc.assert(
      fc.property(fc.shuffledSubarray(explanations, { minLength: explanations.length }), (series) => {
        expect(explainAccount({ ...account, series })).toEqual(once);
      }),
      { numRuns: 5 },
    );
  });
});

describe('keys that should have been unused', () => {
  const secret = (at: number): Counts => ({ input: 700_000 + at * 13_000, output: 90_000 });
  const bill: Bill = (model, used, at) => (model === SOL && isWrong(at) ? plus(used, secret(at)) : used);
  const uses = (byCost: boolean): KeyUse[] =>
    Array.from({ length: 7 }, (_, index) => {
      const at = index + 8;
      const day = shiftDay(FIRST, at);
      const counts = secret(at);
      return {
        day,
        model: SOL,
        billedPico: byCost
          ? lines(counts, {}, {}, { model: SOL, day }).reduce((sum, cell) => sum + cell.amountPico, 0n)
          : null,
        quantities: { input: tokens(counts.input ?? 0), output: tokens(counts.output ?? 0) },
      };
    });
  const key = (over: Partial<SuspectKey>): SuspectKey => ({
    provider: 'openai',
    providerAccountId: ACCOUNT,
    providerKeyId: 'key_gone',
    reason: 'billed_after_revocation',
    firstDay: shiftDay(FIRST, 8),
    lastDay: shiftDay(FIRST, 14),
    billedPico: null,
    uses: uses(true),
    ...over,
  });
  const findingsWith = (suspects: SuspectKey[]) =>
    reconcileDays('openai', daysWith(bill), PRICES, DEFAULT_WEIGHTS, suspects).findings;
  const spent = uses(true).reduce((sum, use) => sum + (use.billedPico ?? 0n), 0n);

  it('use after a revocation is found with its dollars, from the bill or from the usage report alone', () => {
    for (const byCost of [true, false]) {
      const findings = findingsWith([key({ uses: uses(byCost) })]);
      const [first, ...others] = findings.filter((one) => one.kind === 'unauthorized_key_usage');
      expect(others).toEqual([]);
      expect(first).toMatchObject({ model: SOL, variant: 'after_revocation', grade: 'HIGH' });
      expect(first?.impactPico).toBe(spent);
    }
  });

  it('use is of the model that the bill names, and of none whose name begins alike', () => {
    const MODEL = 'gpt-5';
    const both = daysWith(bill).map((day) => {
      const asModel = <T extends { model: string | null }>(cell: T): T =>
        cell.model === SOL ? { ...cell, model: MODEL } : cell;
      return { ...day, observed: day.observed.map(asModel), billed: day.billed.map(asModel) };
    });
    const inModels = (model: string) => {
      const suspects = [key({ uses: uses(false).map((use) => ({ ...use, model })) })];
      const { findings } = reconcileDays('openai', both, PRICES, DEFAULT_WEIGHTS, suspects);
      return findings.filter((one) => one.kind === 'unauthorized_key_usage').map((one) => one.model);
    };
    // The unseen use of both days is on the bill of the larger model; the key is one of the smaller.
    expect(inModels(MINI)).not.toContain(MODEL);
    expect(inModels(MODEL)).toEqual([MODEL]);
    expect(inModels(`${MODEL}-2025-08-07`)).toEqual([MODEL]);
  });

  it('an unknown key is a suspicion, and nothing once it is used day by day', () => {
    const [finding] = findingsWith([key({ reason: 'unknown' })]).filter(
      (one) => one.kind === 'unauthorized_key_usage',
    );
    expect(finding?.grade).toBe('LOW');
    const daily = uses(true).flatMap((use) => [
      use,
      { ...use, day: shiftDay(use.day, -7) },
      { ...use, day: shiftDay(use.day, 7) },
    ]);
    const everyDay: Bill = (model, used) => (model === SOL ? plus(used, secret(0)) : used);
    const { findings } = reconcileDays('openai', daysWith(everyDay), PRICES, DEFAULT_WEIGHTS, [
      key({ reason: 'unknown', uses: daily }),
    ]);
    expect(findings.filter((one) => one.kind === 'unauthorized_key_usage')).toEqual([]);
  });

  it('use is proven by the rows that name the key, also where the day lacks more than the key used', () => {
    const lacking: Bill = (model, used, at) => {
      if (model !== SOL || !isWrong(at)) return used;
      const half = {
        ...used,
        input: Math.round((used.input ?? 0) / 2),
        output: Math.round((used.output ?? 0) / 2),
      };
      return plus(half, secret(at));
    };
    const { findings } = reconcileDays('openai', daysWith(lacking), PRICES, DEFAULT_WEIGHTS, [key({})]);
    const [found, ...others] = findings.filter((one) => one.kind === 'unauthorized_key_usage');
    expect(others).toEqual([]);
    expect([found?.grade, found?.impactPico]).toEqual(['HIGH', spent]);
  });

  it('a wrong rate and a key hold no dollar together: the key’s use counts at the agreed price', () => {
    const dear = (day: DayInput): DayInput => ({
      ...day,
      billed: day.billed.map((cell) =>
        cell.model === SOL ? { ...cell, amountPico: cell.amountPico * 2n } : cell,
      ),
    });
    const twice = uses(true).map((use) => ({ ...use, billedPico: 2n * (use.billedPico ?? 0n) }));
    const days = daysWith(bill).map((day, at) => (isWrong(at) ? dear(day) : day));
    const { findings } = reconcileDays('openai', days, PRICES, DEFAULT_WEIGHTS, [key({ uses: twice })]);
    const ofKey = findings.filter((one) => one.kind === 'unauthorized_key_usage');
    expect(ofKey.map((one) => one.impactPico)).toEqual([spent]);
    const found = findings.filter((one) => one.direction === 'overcharge' && one.model === SOL);
    const whole = days.flatMap((day, at) =>
      isWrong(at) ? day.billed.flatMap((cell) => (cell.model === SOL ? [cell.amountPico] : [])) : [],
    );
    expect(found.reduce((sum, one) => sum + one.impactPico, 0n)).toBeLessThanOrEqual(
      whole.reduce((sum, one) => sum + one, 0n) / 2n + spent,
    );
  });

  it('a key whose use was observed explains nothing', () => {
    const { findings } = reconcileDays(
      'openai',
      daysWith((_, used) => used),
      PRICES,
      DEFAULT_WEIGHTS,
      [key({})],
    );
    expect(findings).toEqual([]);
  });

  it('no dollar is found twice', () => {
    for (const suspects of [[key({})], [key({}), key({ providerKeyId: 'key_twin' })]]) {
      const findings = findingsWith(suspects);
      const seen = new Map<string, bigint>();
      for (const { model, days } of findings)
        for (const { day, impactPico } of days)
          seen.set(`${model} ${day}`, (seen.get(`${model} ${day}`) ?? 0n) + impactPico);
      const total = [...seen.values()].reduce((sum, one) => sum + one, 0n);
      expect(total <= spent + 1_000_000n).toBe(true);
    }
  });
});
