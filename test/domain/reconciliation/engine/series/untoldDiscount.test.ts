import { describe, expect, it } from 'vitest';
import { findingsOf, isBetween, type Lines, linesFor, scale, useOf } from './support.js';

const totalOf = (lines: Lines) => Object.values(lines).reduce((sum, line) => sum + line.amountPico, 0n);
const isWrong = (at: number) => isBetween(at, 8, 11);
const right = (lines: Lines) => scale(lines, 83n, 100n);

/** Overcharge of four days of a bill if the right price is 17 percent below the list. */
function excessOf(wrong: (lines: Lines) => Lines): bigint {
  let sum = 0n;
  for (let at = 8; at <= 11; at += 1) {
    const lines = linesFor(useOf(at));
    sum += totalOf(wrong(lines)) - totalOf(right(lines));
  }
  return sum;
}

/** The discounted charge of the cached tokens of those four days as fresh input. */
function chargedAgain(): bigint {
  let sum = 0n;
  for (let at = 8; at <= 11; at += 1) {
    const { cache_read } = useOf(at);
    const { input } = linesFor({ ...useOf(at), input: cache_read });
    sum += (input.amountPico * 83n) / 100n;
  }
  return sum;
}

describe('a mistake on top of a discount without an entry', () => {
  const cases: [string, (lines: Lines) => Lines, object][] = [
    [
      'is explained against the discount',
      (lines) => right(scale(lines, 10n, 1n, ['cache_read'])),
      { kind: 'cache_read_rate_mismatch', variant: 'input_rate' },
    ],
    [
      'may be charged at the list price of what it was taken for',
      (lines) => scale(lines, 2n, 1n),
      { kind: 'service_tier_rate_misapplied', variant: 'tier:standard as priority at list' },
    ],
  ];
  it.each(cases)('%s, and the discount stays its own finding', (_, wrong, expected) => {
    const findings = findingsOf({ bill: (lines, at) => (isWrong(at) ? wrong : right)(lines) });
    const accused = findings.filter((one) => one.blame === 'provider');
    expect(accused).toHaveLength(1);
    expect(accused[0]).toMatchObject({ ...expected, grade: 'HIGH', impactPico: excessOf(wrong) });
    expect(accused[0]?.days).toHaveLength(4);
    expect(accused[0]?.cause).toContain('17 percent below');
    const rest = findings.filter((one) => one.blame !== 'provider');
    expect(rest.map((one) => `${one.kind}/${one.variant}/${one.days.length}`)).toEqual([
      'contract_terms/discount:17/8',
      'contract_terms/discount:17/8',
    ]);
  });

  it('is not searched for where too few days show the discount, nor where the days about it show none', () => {
    const wrong = (lines: Lines) => right(scale(lines, 10n, 1n, ['cache_read']));
    const few = findingsOf({
      days: 9,
      bill: (lines, at) => (at >= 3 && at <= 6 ? wrong(lines) : right(lines)),
    });
    expect(few.filter((one) => one.blame === 'provider')).toEqual([]);
    const none = findingsOf({
      days: 40,
      bill: (lines, at) => (isWrong(at) ? wrong(lines) : at < 25 ? lines : right(lines)),
    });
    expect(none.filter((one) => one.blame === 'provider')).toEqual([]);
  });

  it('that counts too much claims no more than was charged for it, and the discount is of the rest', () => {
    const isCheap = (at: number) => isBetween(at, 2, 12);
    const doubled = (at: number) => ({ ...useOf(at), input: useOf(at).input + useOf(at).cache_read });
    const findings = findingsOf({
      bill: (lines, at) => {
        const counted = isWrong(at) ? linesFor(doubled(at)) : lines;
        return isCheap(at) ? right(counted) : counted;
      },
    });
    const again = findings.filter((one) => one.blame === 'provider');
    expect(again.map(({ kind, grade, days }) => `${kind} ${grade} ${days.length}`)).toEqual([
      'cached_tokens_double_metered HIGH 4',
    ]);
    expect(again[0]?.impactPico).toBe(chargedAgain());
    const discount = findings.filter((one) => one.kind === 'contract_terms');
    const all = [...again, ...discount].reduce((sum, one) => sum + one.impactPico, 0n);
    const cheapDays = Array.from({ length: 11 }, (_, at) => linesFor(useOf(at + 2)));
    const discounted = cheapDays.reduce((sum, lines) => sum + totalOf(right(lines)) - totalOf(lines), 0n);
    expect(all).toBe(discounted + chargedAgain());
  });
});
