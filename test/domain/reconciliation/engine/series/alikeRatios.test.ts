/** Amounts by class: unseen calls do not explain some ratios that every class keeps on every day. */
import { expect, it } from 'vitest';
import { aBilledCell, anObservedCell } from '../../support.js';
import { daysOf, findingsOfDays, isBetween } from './support.js';

/** Dollars a million of gpt-5.5's ordinary rates; its priority tier costs two and a half times them. */
const RATES = { input: 5n, cache_read: 0.5, output: 30n } as const;
type Class = keyof typeof RATES;
const CLASSES = Object.keys(RATES) as Class[];
const TOKENS: Record<Class, number> = { input: 900_000, cache_read: 2_400_000, output: 400_000 };
const DAYS = 24;
const EPISODE = (at: number) => isBetween(at, 9, 14);

interface Case {
  /** Factor of a class's billed amount over its observed amount; 1 is right. */
  ratioOf: (at: number, tokenClass: Class) => number;
  /** Calls a day: the fewer, the further classes stray when some are missing. */
  calls: number;
  /** How the bill names lines. */
  line?: { longContext: boolean | null; serviceTier?: string };
  told?: string;
}

function findings({ ratioOf, calls, line = { longContext: false }, told = '' }: Case) {
  return findingsOfDays(
    daysOf(DAYS, (at) => {
      const seen = (one: Class) => BigInt(TOKENS[one] + at * 37_000 * (one === 'output' ? 1 : 3));
      return {
        billed: CLASSES.map((tokenClass) =>
          aBilledCell({
            model: 'gpt-5.5',
            tokenClass,
            isBatch: null,
            quantity: null,
            amountPico: BigInt(
              Math.round(
                Number(seen(tokenClass)) * Number(RATES[tokenClass]) * 1e6 * ratioOf(at, tokenClass),
              ),
            ),
            ...line,
          }),
        ),
        observed: [
          anObservedCell({
            model: 'gpt-5.5',
            serviceTier: told,
            calls,
            tokens: Object.fromEntries(CLASSES.map((one) => [one, seen(one)])),
          }),
        ],
      };
    }),
  );
}

const onEpisode =
  (ratio: number): Case['ratioOf'] =>
  (at) =>
    EPISODE(at) ? ratio : 1;

it('a tier’s ratio that each class of a few calls keeps on six days is its rates', () => {
  const [finding, more] = findings({ ratioOf: onEpisode(2.5), calls: 12, told: 'default' });
  expect(more).toBeUndefined();
  expect(finding).toMatchObject({ kind: 'service_tier_rate_misapplied', blame: 'provider', grade: 'LOW' });
  expect(finding?.days).toHaveLength(6);
});

it('twice what was seen of each class may be calls that are made twice: neither side is blamed', () => {
  for (const calls of [5, 12, 1_000]) {
    const said = findings({ ratioOf: onEpisode(2), calls, told: 'default' });
    expect(said.filter((one) => one.blame === 'provider')).toEqual([]);
  }
});

it('classes that stray as a few missing calls make them are no tier’s rates', () => {
  const strays = (at: number, tokenClass: Class) =>
    1 + 0.25 * Math.sin(at * 5 + CLASSES.indexOf(tokenClass) * 2);
  const said = findings({
    ratioOf: (at, tokenClass) => (EPISODE(at) ? 1 + 1.5 * strays(at, tokenClass) : 1),
    calls: 12,
    told: 'default',
  });
  expect(said.filter((one) => one.blame === 'provider')).toEqual([]);
});

it('where no call contains a tier, labels that would name it leave it to the bill, at LOW', () => {
  const [finding, more] = findings({ ratioOf: onEpisode(2.5), calls: 12 });
  expect(more).toBeUndefined();
  expect(finding).toMatchObject({
    kind: 'service_tier_rate_misapplied',
    variant: 'unnamed:priority',
    blame: 'provider',
    grade: 'LOW',
  });
  expect(finding?.next?.kind).toBe('client_metering_error');
});

it('where no call contains a tier, lines that name none leave it to the client', () => {
  const [finding] = findings({ ratioOf: onEpisode(2.5), calls: 12, line: { longContext: null } });
  expect(finding).toMatchObject({
    kind: 'client_metering_error',
    variant: 'tier_not_told:priority',
    blame: 'own',
  });
});

it('a tier’s rates that last to the last day are the client’s, whatever labels name', () => {
  const said = findings({ ratioOf: (at) => (at >= 9 ? 2.5 : 1), calls: 12 });
  expect(said.filter((one) => one.blame === 'provider')).toEqual([]);
});
