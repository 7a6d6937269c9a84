/** Costs may be booked a day after the usage report counts them: that is no mistake, and hides none. */
import { describe, expect, it } from 'vitest';
import { microsOfDay } from '../../../../../domain/period.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { aBilledCell, aCoveredAccount, aUsageCell, tokens } from '../../support.js';
import {
  asClasses,
  chargeFor,
  findingsOf,
  isBetween,
  type Lines,
  linesFor,
  observedOf,
  part,
  scale,
  type Use,
  useOf,
} from './support.js';

/** The day's use as the provider counts it. */
type Counting = (use: Use, at: number) => Use;

const asUsed: Counting = (use) => use;
const LATE = 9;

/** The hours from the evening on, in which classes have other shares than over the day. */
const evening = ({ input, cache_read, output }: Use): Use => ({
  input: Math.round(input * 0.3),
  cache_read: Math.round(cache_read * 0.22),
  output: Math.round(output * 0.35),
});

/** A shorter evening. */
const scaledEvening = (use: Use): Use => part(evening(use), 0.75);

const sum = (a: Use, b: Use, sign = 1): Use => ({
  input: a.input + sign * b.input,
  cache_read: a.cache_read + sign * b.cache_read,
  output: a.output + sign * b.output,
});

/** The evening of one day is on the bill of the next. */
function bookedAt(counts: Counting, at: number): Use {
  const own = counts(useOf(at), at);
  if (at === LATE) return sum(own, evening(own), -1);
  return at === LATE + 1 ? sum(own, evening(counts(useOf(LATE), LATE))) : own;
}

const withReport = (counts: Counting) => (input: DayInput, at: number) => ({
  ...input,
  usage: Object.entries(counts(useOf(at), at)).map(([tokenClass, count]) =>
    aUsageCell({ tokenClass: tokenClass as keyof Use, quantity: tokens(count), longContext: false }),
  ),
});

function found(counts: Counting, bill = (lines: Lines, _at: number): Lines => lines): string[] {
  const findings = findingsOf({
    bill: (_, at) => bill(linesFor(bookedAt(counts, at)), at),
    input: withReport(counts),
  });
  return findings.map(brief).sort();
}

const brief = ({ kind, variant, blame, days }: Finding) =>
  `${kind}/${variant} ${blame}: ${days.map(({ day }) => day.slice(8)).join(' ')}`;

describe('costs of a day’s last hours on the bill of the next day', () => {
  it('are a shift in time, and neither charged twice nor missing', () => {
    expect(found(asUsed)).toEqual(['timing_shift/booked_late none: 14', 'timing_shift/booked_late none: 15']);
  });

  it('are that as well where the day that makes up for the last of them may still change', () => {
    const days = LATE + 3;
    const findings = findingsOf({
      days,
      bill: (_, at) => {
        const use =
          at === LATE + 1 ? sum(bookedAt(asUsed, at), scaledEvening(useOf(at)), -1) : bookedAt(asUsed, at);
        return linesFor(at === LATE + 2 ? sum(use, scaledEvening(useOf(LATE + 1))) : use);
      },
      input: (input, at) => ({
        ...withReport(asUsed)(input, at),
        ...(at === days - 1
          ? { covered: [aCoveredAccount({ fetchedAtMicros: microsOfDay(input.day) })] }
          : {}),
      }),
    });
    expect(findings.map(brief).sort()).toEqual([
      'timing_shift/booked_late none: 14',
      'timing_shift/booked_late none: 15',
    ]);
  });

  it('leave a mistake of counting on these days what it is, with the dollars that each day’s bill has of it', () => {
    const doubled: Counting = (use, at) =>
      isBetween(at, 6, 12) ? { ...use, input: use.input + use.cache_read } : use;
    const findings = findingsOf({
      bill: (_, at) => linesFor(bookedAt(doubled, at)),
      input: withReport(doubled),
    });
    const [only, ...others] = findings.filter(({ blame }) => blame === 'provider');
    expect(others).toEqual([]);
    expect(only && brief(only)).toBe('cached_tokens_double_metered/reads provider: 11 12 13 14 15 16 17');
    expect(only?.grade).toBe('HIGH');
    const cached = [6, 7, 8, 9, 10, 11, 12].reduce((total, at) => total + useOf(at).cache_read, 0);
    expect(Number(only?.impactPico) / (cached * 2e6)).toBeCloseTo(1, 2);
  });

  it.each([
    ['lines of their own', false],
    ['one line with the others', true],
  ])('leave it also where the booked hours have no batch calls, which have %s', (_, isFolded) => {
    const doubled: Counting = (use, at) =>
      isBetween(at, 6, 12) ? { ...use, input: use.input + use.cache_read } : use;
    // A third of each class is used by batches, and all of it before the evening.
    const batchOf = ({ input, cache_read, output }: Use): Use => ({
      input: Math.round(input / 3),
      cache_read: Math.round(cache_read / 3),
      output: Math.round(output / 3),
    });
    const findings = findingsOf({
      input: (input, at) => {
        const batch = batchOf(useOf(at));
        const rest = sum(useOf(at), batch, -1);
        const uses = [sum(bookedAt(doubled, at), doubled(batch, at), -1), doubled(batch, at)] as const;
        const reported = [doubled(rest, at), doubled(batch, at)] as const;
        const names = Object.keys(batch) as (keyof Use)[];
        const isBatchAt = [false, true] as const;
        return {
          ...input,
          billed: isBatchAt.flatMap((isBatch, of) =>
            names.map((tokenClass) => {
              const count = BigInt(uses[of as 0 | 1][tokenClass]);
              const amountPico = chargeFor(tokenClass, count) / (isBatch ? 2n : 1n);
              const line = isFolded ? null : isBatch;
              return aBilledCell({ tokenClass, isBatch: line, quantity: tokens(Number(count)), amountPico });
            }),
          ),
          usage: isBatchAt.flatMap((isBatch, of) =>
            names.map((tokenClass) =>
              aUsageCell({
                tokenClass,
                isBatch,
                longContext: false,
                quantity: tokens(reported[of as 0 | 1][tokenClass]),
              }),
            ),
          ),
          observed: [
            observedOf(input.day, rest),
            observedOf(input.day, batch, { isBatch: true, calls: 300 }),
          ],
        };
      },
    });
    expect(findings.map((one) => `${brief(one)} ${one.grade}`)).toEqual([
      'cached_tokens_double_metered/reads provider: 11 12 13 14 15 16 17 HIGH',
    ]);
  });

  it('hide no wrong rate, and are none, where the bill has amounts alone', () => {
    const findings = findingsOf({
      bill: (_, at) => {
        const lines = linesFor(bookedAt(asUsed, at));
        return isBetween(at, 6, 12) ? scale(lines, 10n, 1n, ['cache_read']) : lines;
      },
      input: (input, at) => asClasses(withReport(asUsed)(input, at)),
    });
    expect(findings.map((one) => `${brief(one)} ${one.grade}`).sort()).toEqual([
      'cache_read_rate_mismatch/input_rate provider: 11 12 13 14 15 16 17 HIGH',
      'timing_shift/booked_late none: 14 HIGH',
      'timing_shift/booked_late none: 15 HIGH',
    ]);
    const cached = [6, 7, 8, 9, 10, 11, 12].reduce((total, at) => total + useOf(at).cache_read, 0);
    const wrong = findings.find(({ blame }) => blame === 'provider');
    expect(Number(wrong?.impactPico) / (cached * 1.8e6)).toBeCloseTo(1, 6);
  });

  it('are no excuse for use that no day lacks', () => {
    const twice = (lines: Lines, at: number) =>
      at === LATE + 1 ? linesFor(sum(useOf(at), useOf(at))) : lines;
    expect(found(asUsed, twice)).toContain('duplicate_charge/beyond_usage_report provider: 15');
  });
});
