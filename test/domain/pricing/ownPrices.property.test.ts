import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { microsOfDay } from '../../../domain/period.js';
import { bookWithOwnPrices, type OwnPrice } from '../../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { aPeriod, bookOf, listOf } from './support.js';

/** Days as numbers, so that the plain model needs no calendar. */
const dayText = (day: number) => new Date(Date.UTC(2026, 0, 1 + day)).toISOString().slice(0, 10);
const DAYS = 40;

/** Two families, one with two members; an unlisted model; prices that change on day 20 and begin on day 5. */
const LIST = readPriceFile(
  listOf([
    {
      provider: 'openai',
      model: 'one',
      aliases: ['one-latest'],
      rates: [
        aPeriod(
          { input: 3.1, output: 7.7, cache_read: 0.31 },
          { effective_to: dayText(20), tiers: [{ service_tier: 'priority', input: 6.3, output: 15.1 }] },
        ),
        aPeriod({ input: 1.7, output: 5.3 }, { effective_from: dayText(20), batch_multiplier: 0.5 }),
      ],
    },
    {
      provider: 'openai',
      model: 'two-a',
      canonical_family: 'two',
      rates: [aPeriod({ input: 0.000001, output: 1 }, { effective_from: dayText(5) })],
    },
    {
      provider: 'openai',
      model: 'two-b',
      canonical_family: 'two',
      rates: [aPeriod({ input: 9, output: 11, cache_write_5m: 12 })],
    },
    {
      provider: 'anthropic',
      model: 'one',
      canonical_family: 'other',
      rates: [aPeriod({ input: 2, output: 4 })],
    },
  ] as never),
);
const MODELS = ['one', 'two-a', 'two-b', 'unlisted'] as const;
const CLASSES = ['input', 'output', 'cache_read', 'cache_write_5m'] as const;
type Plain = Partial<Record<(typeof CLASSES)[number], bigint>>;

const pico = fc.integer({ min: 0, max: 20_000_000 }).map((n) => BigInt(n) * 1_000_003n);
const entry = fc
  .record({
    kind: fc.constantFrom('contract' as const, 'override' as const),
    model: fc.constantFrom('one', 'one-latest', 'two', 'two-a', 'unlisted', 'UNLISTED', '*'),
    discount: fc.option(
      fc.integer({ min: 1, max: 99_999_999 }).map((n) => BigInt(n) * 1_000_000n),
      { nil: null },
    ),
    rates: fc.record({ input: pico, output: pico, cache_read: pico }, { requiredKeys: [] }),
    from: fc.integer({ min: 0, max: DAYS }),
    length: fc.option(fc.integer({ min: 1, max: DAYS }), { nil: null }),
    ended: fc.option(fc.integer({ min: 0, max: DAYS }), { nil: null, freq: 5 }),
  })
  .map((one) => {
    // Only a contract has a discount, and only a discount covers all models.
    const model = one.kind === 'override' && one.model === '*' ? 'one' : one.model;
    const discount =
      one.kind === 'override' ? null : model === '*' ? (one.discount ?? 5_000_000_000_000n) : one.discount;
    return { ...one, model, discount, to: one.length === null ? null : one.from + one.length };
  });
type Entry = typeof entry extends fc.Arbitrary<infer T> ? T : never;

function stored(entries: readonly Entry[]): OwnPrice[] {
  return entries.map((one, index) => ({
    id: `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`,
    kind: one.kind,
    provider: 'openai',
    model: one.model,
    discountPercent: one.discount,
    rates: one.discount === null ? one.rates : null,
    batchMultiplier: null,
    effectiveFrom: dayText(one.from),
    effectiveTo: one.to === null ? null : dayText(one.to),
    source: null,
    revision: index + 1,
    createdAtMicros: 0n,
    createdBy: 'key_test',
    endsOn: one.ended === null ? null : dayText(one.ended),
    endedAtMicros: one.ended === null ? null : 0n,
  }));
}

/** The rule in plain code: the price of one model on one day, entry by entry. */
function plainPrice(listed: Plain | undefined, entries: readonly Entry[], model: string, day: number) {
  const covers: Record<string, readonly string[]> = {
    one: ['one'],
    'one-latest': ['one'],
    two: ['two-a', 'two-b'],
    'two-a': ['two-a'],
    unlisted: ['unlisted'],
    UNLISTED: ['unlisted'],
    '*': MODELS,
  };
  const rank = (name: string) => (name === '*' ? 0 : name === 'two' ? 1 : 2);
  let price = listed;
  for (const kind of ['override', 'contract'] as const) {
    let best: { one: Entry; index: number } | undefined;
    entries.forEach((one, index) => {
      const inForce =
        one.kind === kind &&
        one.from <= day &&
        (one.to === null || day < one.to) &&
        (one.ended === null || day < one.ended);
      if (!inForce || !covers[one.model]?.includes(model)) return;
      if (!best || rank(one.model) >= rank(best.one.model)) best = { one, index };
    });
    if (!best) continue;
    const { discount, rates } = best.one;
    if (discount === null) {
      const merged: Plain = { ...price, ...rates };
      price = merged.input === undefined || merged.output === undefined ? undefined : merged;
    } else if (price) {
      price = Object.fromEntries(
        Object.entries(price).map(([name, rate]) => [name, lessPercent(rate, discount)]),
      );
    }
  }
  return price;
}

/** rate × (1 − discount), half to even, by separate integer arithmetic. */
function lessPercent(rate: bigint, discount: bigint): bigint {
  const whole = 100_000_000_000_000n;
  const product = rate * (whole - discount);
  const [down, rest] = [product / whole, product % whole];
  if (rest * 2n === whole) return down + (down % 2n);
  return rest * 2n > whole ? down + 1n : down;
}

function rates(book: PriceBook, model: string, day: number): Plain | undefined {
  const priced = book.find('openai', model, microsOfDay(dayText(day)) + 3_600_000_000n);
  if (!priced) return undefined;
  return Object.fromEntries(
    CLASSES.flatMap((name) => {
      const rate = priced.version.rates[name];
      return rate === null ? [] : [[name, rate]];
    }),
  );
}

describe('the prices of an organization', () => {
  const list = bookOf(LIST);
  const state = { updatedAtMicros: 1n, contentHash: '11111111' };

  it('are, for every model and day, what the most specific and then latest entry makes of the list', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
        const book = bookWithOwnPrices(list, stored(entries), state);
        const overridesOnly = entries.map((one) =>
          one.kind === 'override' ? one : { ...one, ended: 0, from: 1, to: null },
        );
        for (const model of MODELS) {
          for (let day = 0; day <= DAYS + 1; day += 1) {
            const listed = rates(list, model, day);
            expect(rates(book, model, day)).toEqual(plainPrice(listed, entries, model, day));
            expect(rates(book.list, model, day)).toEqual(plainPrice(listed, overridesOnly, model, day));
          }
        }
      }),
      { numRuns: propertyRuns(75) },
    );
  });

  it('have for each model periods without overlap, and leave other providers alone', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
        const book = bookWithOwnPrices(list, stored(entries), state);
        for (const { periods } of book.entries()) {
          periods.forEach((period, index) => {
            const next = periods[index + 1];
            if (next)
              expect((period.toMicros ?? 0n) <= (next.fromMicros ?? 0n) && period.toMicros !== null).toBe(
                true,
              );
          });
        }
        expect(book.find('anthropic', 'one', 0n)).toBe(list.find('anthropic', 'one', 0n));
      }),
    );
  });

  it('do not depend on the order in which entries are read', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 6 }), fc.integer(), (entries, seed) => {
        const prices = stored(entries);
        const shuffled = [...prices].sort(
          (a, b) => ((a.revision * 7919 + seed) % 13) - ((b.revision * 7919 + seed) % 13),
        );
        const plain = (book: PriceBook) =>
          [...book.periods()].map(({ version }) => [
            version.model.toLowerCase(),
            version.effectiveFrom,
            version.effectiveTo,
            version.rates,
            version.tiers,
            version.source,
          ]);
        expect(plain(bookWithOwnPrices(list, shuffled, state))).toEqual(
          plain(bookWithOwnPrices(list, prices, state)),
        );
      }),
    );
  });
});
