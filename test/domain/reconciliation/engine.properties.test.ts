import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../domain/billing/billedRow.js';
import { microsOfDay, shiftDay } from '../../../domain/period.js';
import type { ExplainedDay, Finding } from '../../../domain/reconciliation/engine/series/finding.js';

import type { BilledCell, DayInput } from '../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { shippedBook } from '../pricing/support.js';
import { billedCells, observedCells, usageCells } from './arbitraries.js';
import { aBilledCell, aCoveredAccount, aDay, anObservedCell, BOOK, DAY, NOW } from './support.js';

const WILD_RUNS = propertyRuns(15);
const SERIES_RUNS = 40;
const PRICES = { agreed: BOOK, list: BOOK };
const reconcile = (days: readonly DayInput[], prices = PRICES) =>
  reconcileDays('openai', days, prices, DEFAULT_WEIGHTS, []);
const total = (values: readonly bigint[]) => values.reduce((sum, value) => sum + value, 0n);
const plain = (value: unknown) =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part));

/** Arbitrary days of two accounts, including contradictory ones. */
const wildDays: fc.Arbitrary<DayInput[]> = fc
  .array(
    fc.record({
      billed: fc.array(billedCells, { maxLength: 8 }),
      usage: fc.array(usageCells, { maxLength: 6 }),
      observed: fc.array(observedCells, { maxLength: 8 }),
      nowMicros: fc.constantFrom(NOW, NOW, NOW, microsOfDay(DAY)),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((days) =>
    days.map((day, index) =>
      aDay({
        ...day,
        day: shiftDay(DAY, index),
        covered: [aCoveredAccount({ accountId: 'a' }), aCoveredAccount({ accountId: 'b' })],
        observedSince: new Map([['', 0n]]),
      }),
    ),
  );

/** gpt-6-sol's ordinary rates, dollars per million. */
const RATES = { input: 2_000_000n, cache_read: 200_000n, output: 10_000_000n } as const;
type Class = keyof typeof RATES;
const CLASSES = Object.keys(RATES) as Class[];

type Mistake = {
  days: number;
  first: number;
  length: number;
  classes: Class[];
  /** Factors of the billed rate and tokens: numerator and denominator. */
  rate: readonly bigint[];
  quantity: readonly bigint[];
  /** Percent of the calls that are reported. */
  coverage: bigint;
  size: number;
  toTheCent: boolean;
  provisional: boolean;
};

/** A series with a mistake that may be in the library, calls without a report, and amounts rounded to the cent. */
const mistakes: fc.Arbitrary<Mistake> = fc.record({
  days: fc.integer({ min: 6, max: 24 }),
  first: fc.integer({ min: 0, max: 20 }),
  length: fc.integer({ min: 1, max: 12 }),
  classes: fc.subarray(CLASSES, { minLength: 1 }),
  rate: fc.constantFrom<bigint[]>(
    [1n, 1n],
    [2n, 1n],
    [1n, 2n],
    [10n, 1n],
    [1n, 10n],
    [11n, 10n],
    [137n, 100n],
  ),
  quantity: fc.constantFrom<bigint[]>([1n, 1n], [2n, 1n], [1n, 2n], [13n, 10n], [0n, 1n]),
  coverage: fc.constantFrom(100n, 99n, 80n, 35n),
  size: fc.integer({ min: 1_000, max: 90_000_000 }),
  toTheCent: fc.boolean(),
  provisional: fc.boolean(),
});

const CENT = 10_000_000_000n;

function seriesOf(mistake: Mistake, model = 'gpt-6-sol'): DayInput[] {
  return Array.from({ length: mistake.days }, (_, index) => {
    const day = shiftDay(DAY, index);
    const isWrong = index >= mistake.first && index < mistake.first + mistake.length;
    const used = (name: Class) =>
      BigInt(mistake.size + ((index * 7_919) % 13) * 1_300 + CLASSES.indexOf(name) * 77);
    const billed = CLASSES.map((tokenClass): BilledCell => {
      const touched = isWrong && mistake.classes.includes(tokenClass);
      const [more, of] = touched ? mistake.quantity : [1n, 1n];
      const [dear, than] = touched ? mistake.rate : [1n, 1n];
      const quantity = (used(tokenClass) * (more ?? 1n)) / (of ?? 1n);
      const amount = (quantity * RATES[tokenClass] * (dear ?? 1n)) / (than ?? 1n);
      return aBilledCell({
        model,
        tokenClass,
        longContext: false,
        quantity: quantity * QUANTITY_ONE,
        amountPico: mistake.toTheCent ? ((amount + CENT / 2n) / CENT) * CENT : amount,
        roundingPico: mistake.toTheCent ? CENT / 2n : 1_000n,
      });
    });
    const tokens = Object.fromEntries(CLASSES.map((name) => [name, (used(name) * mistake.coverage) / 100n]));
    return aDay({
      day,
      nowMicros: mistake.provisional ? microsOfDay(day) : NOW + 10n ** 13n,
      billed,
      observed: [anObservedCell({ model, hourMicros: microsOfDay(day), tokens })],
      observedSince: new Map([['acct', 0n]]),
      covered: [aCoveredAccount({ fetchedAtMicros: NOW + 10n ** 13n })],
    });
  });
}

const anyDays = fc.oneof(
  wildDays,
  mistakes.map((mistake) => seriesOf(mistake)),
);

const seriesKey = ({ accountId, model }: { accountId: string; model: string }) => `${accountId} ${model}`;

/** Days of findings, by series and day. */
function dayParts(findings: readonly Finding[]) {
  return findings.flatMap((finding) =>
    finding.days.map((day) => ({ ...day, finding, place: `${seriesKey(finding)} ${day.day}` })),
  );
}

function assertAll(rule: (days: DayInput[]) => void): void {
  fc.assert(fc.property(wildDays, rule), { numRuns: WILD_RUNS });
  fc.assert(
    fc.property(
      mistakes.map((mistake) => seriesOf(mistake)),
      rule,
    ),
    { numRuns: SERIES_RUNS },
  );
}

describe('whatever is billed and seen', () => {
  it('a finding is the sum of its days, a day the sum of its parts, and billed less right: to the pico-dollar', () => {
    assertAll((days) => {
      for (const finding of reconcile(days).findings) {
        expect(finding.impactPico).toBe(total(finding.days.map(({ impactPico }) => impactPico)));
        for (const day of finding.days) {
          expect(day.impactPico).toBe(day.ratePico + day.volumePico + day.ownPricingPico);
          expect(day.impactPico).toBe(day.billedPico - day.expectedPico);
        }
        const names = finding.days.map(({ day }) => day);
        expect(names).toEqual([...new Set(names)].sort());
      }
    });
  });

  it('the right cost of a day and of a line is never below nothing where what is billed of it is not', () => {
    assertAll((days) => {
      for (const { kind, days: found, lines } of reconcile(days).findings)
        for (const { billedPico, expectedPico } of [...found, ...lines])
          if (billedPico >= 0n) expect([kind, expectedPico >= 0n]).toEqual([kind, true]);
    });
  });

  it('the rules of this page are held against findings of many kinds', () => {
    const series = fc.sample(
      mistakes.map((mistake) => seriesOf(mistake)),
      { seed: 20_261_124, numRuns: SERIES_RUNS },
    );
    const kinds = new Set(series.flatMap((days) => reconcile(days).findings.map(({ kind }) => kind)));
    expect(kinds.size).toBeGreaterThan(3);
  });

  it('nothing is found twice: the findings of a day share what the day is billed', () => {
    assertAll((days) => {
      const { findings, explanations } = reconcile(days);
      const held = new Map<string, ExplainedDay>(
        explanations.flatMap((one) => one.days.map((day) => [`${seriesKey(one)} ${day.day}`, day] as const)),
      );
      const places = new Map<string, ReturnType<typeof dayParts>>();
      for (const part of dayParts(findings))
        places.set(part.place, [...(places.get(part.place) ?? []), part]);
      for (const [place, parts] of places) {
        const day = held.get(place);
        expect(day).toBeDefined();
        // A billed amount appears in one finding of a day and no other.
        expect(total(parts.map(({ billedPico }) => billedPico)) <= (day?.billedPico ?? 0n)).toBe(true);
        const names = parts.map(({ finding }) => `${finding.kind} ${finding.direction}`);
        expect(names).toEqual([...new Set(names)]);
      }
    });
  });

  it('a day of a series is explained by its findings and by nothing else', () => {
    assertAll((days) => {
      for (const one of reconcile(days).explanations) {
        for (const day of one.days) {
          const own = dayParts(one.findings).filter((part) => part.day === day.day);
          const impactOf = (isNamed: boolean) =>
            total(
              own
                .filter(({ finding }) => (finding.kind !== 'unexplained') === isNamed)
                .map(({ impactPico }) => impactPico),
            );
          expect([day.day, impactOf(true)]).toEqual([day.day, day.explainedPico]);
          expect([0n, day.unexplainedPico]).toContain(impactOf(false));
        }
      }
    });
  });

  it('neither the order of days nor that of their rows changes anything', () => {
    fc.assert(
      fc.property(anyDays, fc.integer({ min: 1, max: 97 }), (days, by) => {
        const turned = <T>(items: readonly T[]) => [
          ...items.slice(by % Math.max(1, items.length)),
          ...items.slice(0, by % Math.max(1, items.length)),
        ];
        const other = turned(days)
          .toReversed()
          .map((day) => ({
            ...day,
            billed: turned(day.billed).toReversed(),
            usage: turned(day.usage),
            observed: turned(day.observed).toReversed(),
            covered: day.covered.toReversed(),
          }));
        expect(plain(reconcile(other))).toBe(plain(reconcile(days)));
      }),
      { numRuns: WILD_RUNS },
    );
  });

  it('a second run returns the same to the last bit, with a book that was read anew', () => {
    fc.assert(
      fc.property(anyDays, (days) => {
        const again = shippedBook();
        expect(plain(reconcile(structuredClone(days), { agreed: again, list: again }))).toBe(
          plain(reconcile(days)),
        );
      }),
      { numRuns: 25 },
    );
  });

  it('the data of another account changes nothing, as long as calls name theirs', () => {
    fc.assert(
      fc.property(mistakes, mistakes, (one, two) => {
        const [mine, other] = [seriesOf(one), seriesOf(two, 'gpt-5')];
        const both = mine.map((day, index) => ({
          ...day,
          billed: [
            ...(other[index]?.billed ?? []).map((cell) => ({ ...cell, accountId: 'other' })),
            ...day.billed,
          ],
          observed: [
            ...day.observed,
            ...(other[index]?.observed ?? []).map((cell) => ({ ...cell, accountId: 'other' })),
          ],
          covered: [...day.covered, ...day.covered.map((cell) => ({ ...cell, accountId: 'other' }))],
          observedSince: new Map([...day.observedSince, ['other', 0n] as const]),
        }));
        const own = reconcile(both).findings.filter(({ accountId }) => accountId === 'acct');
        expect(plain(own)).toBe(plain(reconcile(mine).findings));
      }),
      { numRuns: SERIES_RUNS },
    );
  });

  it('nothing is claimed except overcharges on days that are no longer restated, never more than that', () => {
    assertAll((days) => {
      for (const finding of reconcile(days).findings) {
        const { impactPico, recoverablePico, direction, claimable, probability } = finding;
        expect(probability >= 0 && probability <= 1).toBe(true);
        expect(direction === 'overcharge' ? impactPico >= 0n : impactPico <= 0n).toBe(true);
        expect(recoverablePico).toBe(claimable && direction === 'overcharge' ? impactPico : 0n);
        if (finding.provisional) expect(finding.grade).toBe('UNVERIFIED');
        if (finding.blame !== 'provider') expect(claimable).toBe(false);
      }
    });
  });

  it('a bill that is right to the last digit and calls that are reported in full leave nothing to find', () => {
    fc.assert(
      fc.property(mistakes, (mistake) => {
        const right: Mistake = { ...mistake, length: 0, coverage: 100n, provisional: false };
        const { findings, explanations } = reconcile(seriesOf(right));
        expect(findings).toEqual([]);
        expect(explanations.flatMap(({ days }) => days).every((day) => day.unexplainedPico === 0n)).toBe(
          true,
        );
      }),
      { numRuns: SERIES_RUNS },
    );
  });
});
