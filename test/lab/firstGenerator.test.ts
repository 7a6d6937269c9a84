import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { VISIBILITIES } from '../../lab/generators/bills/writeBills.js';
import { generateFirst } from '../../lab/generators/first/generateFirst.js';
import { type FirstSet, SETS } from '../../lab/generators/first/sets.js';
import type { GeneratedWorld } from '../../lab/generators/world.js';
import { readLines, sumsBy } from './support/readBills.js';

const SIZE = { series: 40, days: 20, callsPerDay: 6 };
const make = (set: FirstSet, seed = 3) => generateFirst({ seed, set, size: SIZE });

const WORLDS = new Map(SETS.map((set) => [set, make(set)]));
const worldOf = (set: FirstSet) => WORLDS.get(set) as GeneratedWorld;

const isCredit = ({ label }: { label: string }) => label === 'Promotional credit';
const linesAt = (world: GeneratedWorld, visibility: (typeof VISIBILITIES)[number]) =>
  world.bills[visibility].flatMap(readLines);
const spendOf = (world: GeneratedWorld, visibility: (typeof VISIBILITIES)[number]) =>
  linesAt(world, visibility)
    .filter((line) => !isCredit(line))
    .reduce((sum, line) => sum + line.pico, 0n);

/** Everything of a world as one text; bigints and sets by their members. */
const digest = (world: GeneratedWorld): string =>
  createHash('sha256')
    .update(
      JSON.stringify(world, (_, value: unknown) => {
        if (typeof value === 'bigint') return String(value);
        return value instanceof Map || value instanceof Set ? [...value] : value;
      }),
    )
    .digest('hex');

describe('the first generator', () => {
  it('makes the same bytes of the same seed, and others of another', () => {
    expect(digest(make('mixed'))).toBe(digest(worldOf('mixed')));
    expect(digest(make('mixed', 4))).not.toBe(digest(worldOf('mixed')));
  });

  it.each(SETS)('%s: the bills sum to the spend, at every visibility', (set) => {
    const world = worldOf(set);
    expect(VISIBILITIES.map((visibility) => spendOf(world, visibility))).toEqual(
      VISIBILITIES.map(() => world.spendPico),
    );
    expect(world.spendPico).toBeGreaterThan(0n);
  });

  it.each(SETS)('%s: the truth is the bill minus what it should be, by account and day', (set) => {
    const world = worldOf(set);
    const right = generateFirst({ seed: 3, set, size: SIZE, withoutMistakes: true });
    const nameOf = (line: { accountId: string; day: string }) => `${line.accountId} ${line.day}`;
    const difference = sumsBy(linesAt(world, 'V3'), nameOf);
    for (const [name, pico] of sumsBy(linesAt(right, 'V3'), nameOf))
      difference.set(name, (difference.get(name) ?? 0n) - pico);
    const told = new Map<string, bigint>();
    for (const { accountId, impactByDay } of world.truths)
      for (const [day, pico] of impactByDay)
        told.set(`${accountId} ${day}`, (told.get(`${accountId} ${day}`) ?? 0n) + pico);
    const notZero = (sums: Map<string, bigint>) => [...sums].filter(([, pico]) => pico !== 0n).sort();
    expect(notZero(told)).toEqual(notZero(difference));
  });

  it('plants mistakes in both directions, look-alikes, and kinds that no library contains', () => {
    const { truths } = worldOf('mixed');
    const sums = truths
      .filter((truth) => truth.isViolation)
      .map((truth) => [...truth.impactByDay.values()].reduce((sum, pico) => sum + pico, 0n));
    expect(sums.some((sum) => sum > 0n)).toBe(true);
    expect(sums.some((sum) => sum < 0n)).toBe(true);
    expect(truths.some(({ cause }) => cause === 'not_in_library')).toBe(true);
    expect(truths.some(({ isViolation }) => !isViolation)).toBe(true);
  });

  it('plants no mistake where all is benign, and only undercharges in the worlds of undercharges', () => {
    expect(worldOf('benign_only').truths.filter(({ isViolation }) => isViolation)).toEqual([]);
    const impacts = worldOf('undercharges').truths.flatMap(({ impactByDay }) => [...impactByDay.values()]);
    expect(impacts.filter((pico) => pico > 0n)).toEqual([]);
    expect(impacts.some((pico) => pico < 0n)).toBe(true);
  });

  it('calls nothing identifiable on days that may be restated, or that fits with something innocent', () => {
    for (const world of WORLDS.values()) {
      const lastClosed = new Date(Date.parse(world.lastDay) - 2 * 86_400_000).toISOString().slice(0, 10);
      for (const truth of world.truths) {
        if (truth.identifiableAt.size === 0) continue;
        expect(truth.isViolation && truth.cause !== 'not_in_library').toBe(true);
        expect([...truth.impactByDay.keys()].every((day) => day <= lastClosed)).toBe(true);
        if (truth.identifiableAt.has('V0')) expect(truth.identifiableAt.has('V1')).toBe(true);
        if (truth.identifiableAt.has('V2')) expect(truth.identifiableAt.has('V3')).toBe(true);
      }
    }
  });

  it('bills quantities only where the visibility shows them', () => {
    const world = worldOf('mixed');
    const ofOpenai = (visibility: (typeof VISIBILITIES)[number]) =>
      linesAt(world, visibility).filter(
        ({ provider, label }) => provider === 'openai' && label.includes(', '),
      );
    expect(ofOpenai('V3').every(({ quantity }) => quantity !== null)).toBe(true);
    expect(ofOpenai('V2').every(({ quantity }) => quantity === null)).toBe(true);
    const feeds = (visibility: (typeof VISIBILITIES)[number]) =>
      new Set(world.bills[visibility].map(({ feed }) => feed));
    expect(feeds('V2').has('openai_usage') && feeds('V2').has('anthropic_usage')).toBe(true);
    expect(feeds('V1').has('openai_usage') || feeds('V1').has('anthropic_usage')).toBe(false);
    expect([...feeds('V0')]).toEqual(['plain_csv']);
  });

  it('enters in the list of wrong prices only models that differ from their rates', () => {
    const { priceListChanges, truths } = worldOf('catalog_errors');
    expect(priceListChanges.length).toBeGreaterThan(1);
    const wrong = truths.filter(({ cause }) => cause === 'stale_price_reference');
    expect(wrong.length).toBeGreaterThan(0);
    const planted = new Set(truths.filter(({ isViolation }) => isViolation).map(({ model }) => model));
    expect(wrong.filter(({ model }) => planted.has(model))).toEqual([]);
  });
});
