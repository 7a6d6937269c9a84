import { describe, expect, it } from 'vitest';
import { shiftDay } from '../../../../../domain/period.js';
import type { BilledCell, DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { aUsageCell, DAY, tokens } from '../../support.js';
import { asClasses, daysOf, findingsOfDays } from '../series/support.js';
import { type Counts, calls, lines, usage } from './support.js';

const DAYS = 20;
const isWrong = (at: number) => at >= 8 && at <= 11;

/** Usage of ordinary requests on a day; different on every day. */
const plainOf = (at: number): Counts => ({
  input: 30_000_000 + ((at * 7_919) % 13) * 1_300_000,
  cache_read: 20_000_000 + ((at * 104_729) % 11) * 900_000,
  output: 5_000_000 + ((at * 31) % 7) * 210_000,
});
/** Usage of long requests. */
const longOf = (at: number): Counts => ({
  input: 9_000_000 + ((at * 17) % 5) * 400_000,
  cache_read: 4_000_000 + ((at * 13) % 7) * 300_000,
  output: 1_000_000 + ((at * 3) % 4) * 90_000,
});
const part = (counts: Counts, share: (at: number) => number): Counts =>
  Object.fromEntries(
    Object.entries(counts).map(([name, count], at) => [name, Math.round(count * share(at))]),
  );
const without = (counts: Counts, less: Counts): Counts => plus(counts, less, -1);
const plus = (counts: Counts, more: Counts, sign = 1): Counts =>
  Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, count + sign * (more[name as 'input'] ?? 0)]),
  );

interface Shape {
  /** The share of each class of ordinary requests that the bill counts as long (negative: of long ones as ordinary). */
  moved: (place: number) => number;
  /** Share of the ordinary requests that was seen. */
  seen?: number;
  requests?: number;
  change?: (input: DayInput) => DayInput;
}

function series({ moved, seen = 1, requests, change = (input) => input }: Shape): DayInput[] {
  return daysOf(DAYS, (at, day) => {
    const [plain, long] = [plainOf(at), longOf(at)];
    const isBack = moved(0) < 0;
    const taken = isWrong(at)
      ? part(isBack ? long : plain, (place) => Math.abs(moved(place)))
      : part(plain, () => 0);
    const onPlain = isBack ? plus(plain, taken) : without(plain, taken);
    const onLong = isBack ? without(long, taken) : plus(long, taken);
    const usage =
      requests === undefined
        ? []
        : [aUsageCell({ model: 'gpt-6-sol', tokenClass: 'requests', quantity: tokens(requests) })];
    return {
      billed: [
        ...lines(onPlain, { longContext: false }, {}, { day }),
        ...lines(onLong, { longContext: true }, {}, { day }),
      ],
      usage,
      observed: [
        calls(
          part(plain, () => seen),
          { calls: 900, serviceTier: 'default' },
          { day },
        ),
        calls(long, { calls: 100, contextBand: 272_000, serviceTier: 'default' }, { day }),
      ],
    };
  }).map(change);
}

const expectedPico = (share: (place: number) => number, sign: 1n | -1n): bigint => {
  let sum = 0n;
  for (let at = 8; at <= 11; at += 1) {
    const day = shiftDay(DAY, at);
    const taken = part(sign > 0n ? plainOf(at) : longOf(at), share);
    const cost = (longContext: boolean) =>
      lines(taken, { longContext }, {}, { day }).reduce((total, line) => total + line.amountPico, 0n);
    sum += cost(true) - cost(false);
  }
  return sign * sum;
};

describe('calls counted on another meter of their class', () => {
  const share = (place: number) => 0.4 + place * 0.02;

  it('a part of the ordinary requests on the meter of long ones is certain where each class as a whole is right', () => {
    const [finding, ...more] = findingsOfDays(series({ moved: share }));
    expect(more).toEqual([]);
    expect(finding).toMatchObject({
      kind: 'long_context_rate_misapplied',
      variant: 'part_in_long_meter',
      grade: 'HIGH',
      missing: [],
      impactPico: expectedPico(share, 1n),
    });
  });

  it('where some calls were not seen, only what holds whatever they were is claimed', () => {
    const [finding, ...more] = findingsOfDays(series({ moved: share, seen: 0.985 }));
    expect(more).toEqual([]);
    expect(finding).toMatchObject({ variant: 'part_in_long_meter', grade: 'HIGH' });
    const claimed = finding?.impactPico ?? 0n;
    const truth = expectedPico(share, 1n);
    expect(claimed < truth && claimed * 100n > truth * 94n).toBe(true);
  });

  it('unseen calls can be long: a division that they can make is no mistake of either side', () => {
    const kinds = findingsOfDays(series({ moved: () => 0.06, seen: 0.8 })).map((one) => one.kind);
    expect(kinds).not.toContain('long_context_rate_misapplied');
  });

  it('amounts alone: what moved is claimed by the difference of the two rates, not by the dearer amount', () => {
    const [finding] = findingsOfDays(series({ moved: share, change: asClasses }));
    expect(finding).toMatchObject({ kind: 'long_context_rate_misapplied', variant: 'part_in_long_meter' });
    const truth = expectedPico(share, 1n);
    const apart = (finding?.impactPico ?? 0n) - truth;
    expect((apart < 0n ? -apart : apart) * 100n < truth).toBe(true);
    const [all] = findingsOfDays(series({ moved: () => 1, change: asClasses }));
    const whole = expectedPico(() => 1, 1n);
    const off = (all?.impactPico ?? 0n) - whole;
    expect((off < 0n ? -off : off) * 100n < whole).toBe(true);
  });

  it('long requests counted as ordinary ones: the bill’s where requests and tokens are counted alike, else the events may be wrong', () => {
    const back = (place: number) => -share(place);
    const [alike] = findingsOfDays(series({ moved: back, requests: 1000 }));
    expect(alike).toMatchObject({
      kind: 'long_context_rate_misapplied',
      variant: 'part_in_ordinary_meter',
      direction: 'undercharge',
      impactPico: expectedPico(share, -1n),
    });
    for (const requests of [undefined, 1300]) {
      const findings = findingsOfDays(
        series({ moved: back, ...(requests === undefined ? {} : { requests }) }),
      );
      expect(findings.map((one) => one.kind)).not.toContain('long_context_rate_misapplied');
    }
  });

  it.each([
    ['without a usage report', false],
    ['where the usage report divides it by tier and not by length', true],
  ])('a line that holds another tier too keeps what is of that tier, at its rates, %s', (_, isReported) => {
    const flexOf = (at: number) => part(plainOf(at), () => 0.1);
    const days = daysOf(DAYS, (at, day) => {
      const use = { calls: 300, serviceTier: 'default' };
      // Where nothing is wrong the ordinary line holds both; on the wrong days the flexible calls alone.
      const standard = lines(plainOf(at), { isBatch: null, longContext: isWrong(at) }, {}, { day });
      const flex = lines(
        flexOf(at),
        { isBatch: null, longContext: false },
        { circumstances: { serviceTier: 'flex' } },
        { day },
      );
      const long = lines(longOf(at), { isBatch: null, longContext: true }, {}, { day });
      const reported = { longContext: null, isBatch: false };
      return {
        billed: joined([...standard, ...flex, ...long]),
        usage: isReported
          ? [
              ...usage(plus(plainOf(at), longOf(at)), reported, { day }),
              ...usage(flexOf(at), { ...reported, serviceTier: 'flex' }, { day }),
            ]
          : [],
        observed: [
          calls(plainOf(at), use, { day }),
          calls(flexOf(at), { ...use, serviceTier: 'flex' }, { day }),
          calls(longOf(at), { ...use, contextBand: 272_000 }, { day }),
        ],
      };
    });
    const [finding, ...more] = findingsOfDays(days);
    expect(more).toEqual([]);
    expect(finding).toMatchObject({
      kind: 'long_context_rate_misapplied',
      variant: 'standard_in_long_meter',
      impactPico: expectedPico(() => 1, 1n),
    });
  });
});

/** Lines of the same name as one, as on a bill that does not separate tiers. */
function joined(billed: readonly BilledCell[]): BilledCell[] {
  const sums = new Map<string, BilledCell>();
  for (const cell of billed) {
    const key = `${cell.tokenClass} ${cell.longContext}`;
    const known = sums.get(key);
    const quantity = (cell.quantity ?? 0n) + (known?.quantity ?? 0n);
    sums.set(key, { ...cell, quantity, amountPico: cell.amountPico + (known?.amountPico ?? 0n) });
  }
  return [...sums.values()];
}
