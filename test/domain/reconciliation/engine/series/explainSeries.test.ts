import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import { chargeFor, findingsOf, isBetween, type Lines, reconciled, type Use, useOf } from './support.js';

const brief = (findings: readonly Finding[]) =>
  findings.map(({ kind, direction, grade, days }) => [kind, direction, grade, days.length]);

/** The only finding; fails where there are none or several. */
function theFinding(findings: readonly Finding[]): Finding {
  const [only, more] = findings;
  if (!only || more) throw new Error(`expected one finding, got ${JSON.stringify(brief(findings))}`);
  return only;
}

/** A class's amount at other than its own price: in tenths. */
const priced = (lines: Lines, name: keyof Lines, tenths: bigint): Lines => ({
  ...lines,
  [name]: { ...lines[name], amountPico: (lines[name].amountPico * tenths) / 10n },
});

const share = (use: Use, of: Partial<Use> | number): Use => {
  const by = (name: keyof Use) => (typeof of === 'number' ? of : (of[name] ?? 1));
  return {
    input: Math.round(use.input * by('input')),
    cache_read: Math.round(use.cache_read * by('cache_read')),
    output: Math.round(use.output * by('output')),
  };
};

/** Cached input charged as if it were not cached, on some days. */
const cachedAsInput = (first: number, last: number) => ({
  bill: (lines: Lines, at: number) =>
    isBetween(at, first, last) ? priced(lines, 'cache_read', 100n) : lines,
});

describe('a series', () => {
  it('without a difference has no finding', () => {
    expect(findingsOf({})).toEqual([]);
  });

  it('charged at a known wrong rate for some days is one HIGH finding of exactly these days and dollars', () => {
    const finding = theFinding(findingsOf(cachedAsInput(5, 9)));
    expect(finding).toMatchObject({
      kind: 'cache_read_rate_mismatch',
      direction: 'overcharge',
      blame: 'provider',
      claimable: true,
      grade: 'HIGH',
      missing: [],
      impactPico: 919_620_000_000_000n,
      recoverablePico: 919_620_000_000_000n,
    });
    expect(finding.days.map(({ day }) => day.slice(8))).toEqual(['10', '11', '12', '13', '14']);
  });

  it('undercharged by a known mistake is the same finding with the sign turned, and not claimable', () => {
    const finding = theFinding(
      findingsOf({ bill: (lines, at) => (isBetween(at, 5, 9) ? priced(lines, 'input', 1n) : lines) }),
    );
    expect(finding).toMatchObject({
      kind: 'cache_read_rate_mismatch',
      direction: 'undercharge',
      grade: 'HIGH',
      recoverablePico: 0n,
    });
    expect(finding.impactPico).toBeLessThan(0n);
  });

  it('whose cached tokens are counted twice is recognized by its quantities', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at, use) => {
          if (!isBetween(at, 5, 9)) return lines;
          const extra = chargeFor('input', BigInt(use.cache_read));
          const quantity = lines.input.quantity + lines.cache_read.quantity;
          return { ...lines, input: { quantity, amountPico: lines.input.amountPico + extra } };
        },
      }),
    );
    expect(finding).toMatchObject({ kind: 'cached_tokens_double_metered', grade: 'HIGH' });
    expect(finding.days.every((day) => day.ratePico === 0n && day.volumePico === day.impactPico)).toBe(true);
  });

  it('at a rate that matches no known mistake is unexplained, not named', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at) =>
          isBetween(at, 5, 9)
            ? { ...lines, output: { ...lines.output, amountPico: (lines.output.amountPico * 137n) / 100n } }
            : lines,
      }),
    );
    expect(finding).toMatchObject({ kind: 'unexplained', claimable: false, recoverablePico: 0n });
    expect(finding.impactPico).toBeGreaterThan(0n);
  });

  it('of which a common share was not seen for some days blames neither side', () => {
    const findings = findingsOf({ seen: (use, at) => (isBetween(at, 5, 9) ? share(use, 0.7) : use) });
    expect(findings.filter((one) => one.claimable || one.blame === 'provider')).toEqual([]);
  });

  it('of which a common share was never seen blames neither side, and its coverage shows the share', () => {
    const { findings, explanations } = reconciled({ seen: (use) => share(use, 0.8) });
    expect(findings).toEqual([]);
    for (const day of explanations[0]?.days ?? []) expect(day.coverage).toBeCloseTo(0.8, 2);
  });

  it('begins to be charged wrongly at any hour: the part of the first day belongs to the finding', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at) => {
          if (at === 4) return priced(lines, 'cache_read', 50n);
          return isBetween(at, 5, 9) ? priced(lines, 'cache_read', 100n) : lines;
        },
      }),
    );
    expect([finding.kind, finding.grade, finding.days.length]).toEqual([
      'cache_read_rate_mismatch',
      'HIGH',
      6,
    ]);
  });

  it('of which some part of a day is charged wrongly claims of it what is too much, and no cent more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 95 }), fc.integer({ min: 5, max: 95 }), (from, to) => {
        // Cached tokens at the input rate, ten times their own, for so many percent of the first and the last day.
        const percentOf = (at: number) => (at === 4 ? from : at === 10 ? to : isBetween(at, 5, 9) ? 100 : 0);
        const tenths = (at: number) => 10n + (BigInt(percentOf(at)) * 90n) / 100n;
        const right = (at: number) => chargeFor('cache_read', BigInt(useOf(at).cache_read));
        const finding = theFinding(
          findingsOf({ bill: (lines, at) => priced(lines, 'cache_read', tenths(at)) }),
        );
        for (const [place, { impactPico }] of finding.days.entries()) {
          const at = 4 + place;
          const tooMuch = (right(at) * tenths(at)) / 10n - right(at);
          expect(Number(tooMuch - impactPico) / 1e12).toBeCloseTo(0, 4);
        }
        expect(finding.days).toHaveLength(7);
      }),
      { numRuns: 25 },
    );
  });

  it('gets no finding from days that the provider may still restate', () => {
    const findings = findingsOf({
      ...cachedAsInput(18, 19),
      input: (input, at) => (at < 18 ? input : { ...input, nowMicros: 0n }),
    });
    expect(findings).toEqual([]);
  });

  it('is not HIGH where calls have an assumed rate, and states what would make it so', () => {
    const finding = theFinding(
      findingsOf({
        ...cachedAsInput(5, 9),
        input: (input) => ({
          ...input,
          observed: input.observed.map((cell) => ({ ...cell, priceGaps: 1 })),
        }),
      }),
    );
    expect(finding.grade).toBe('MEDIUM');
    expect(finding.missing).toEqual(['classes_complete']);
    expect(finding.advice.some((sentence) => sentence.includes('token classes'))).toBe(true);
  });

  it('is HIGH on the days that have all that it takes, and apart from them what it is on the others', () => {
    const withGaps = (isGap: (at: number) => boolean) =>
      findingsOf({
        ...cachedAsInput(8, 12),
        input: (input, at) =>
          isGap(at)
            ? { ...input, observed: input.observed.map((cell) => ({ ...cell, priceGaps: 1 })) }
            : input,
      });
    const findings = withGaps((at) => at === 10);
    expect(brief(findings)).toEqual([
      ['cache_read_rate_mismatch', 'overcharge', 'HIGH', 4],
      ['cache_read_rate_mismatch', 'overcharge', 'MEDIUM', 1],
    ]);
    expect(findings.map(({ missing }) => missing)).toEqual([[], ['classes_complete']]);
    const whole = theFinding(findingsOf(cachedAsInput(8, 12)));
    expect(findings.reduce((sum, { impactPico }) => sum + impactPico, 0n)).toBe(whole.impactPico);
    // One day that has it all is as sure as it is by itself, also where most days of the mistake lack a gate.
    expect(brief(withGaps((at) => at !== 10))).toEqual([
      ['cache_read_rate_mismatch', 'overcharge', 'MEDIUM', 4],
      ['cache_read_rate_mismatch', 'overcharge', 'HIGH', 1],
    ]);
  });

  it('with amounts alone by class is found at MEDIUM at most', () => {
    const findings = findingsOf({
      ...cachedAsInput(5, 9),
      input: (input) => ({ ...input, billed: input.billed.map((cell) => ({ ...cell, quantity: null })) }),
    });
    for (const one of findings) expect(['MEDIUM', 'LOW', 'UNVERIFIED']).toContain(one.grade);
    expect(findings.map((one) => one.kind)).toContain('cache_read_rate_mismatch');
  });

  it('with one amount a day is found at LOW at most', () => {
    const findings = findingsOf({
      ...cachedAsInput(5, 9),
      input: (input) => {
        const [first] = input.billed;
        const amountPico = input.billed.reduce((sum, cell) => sum + cell.amountPico, 0n);
        return first
          ? { ...input, billed: [{ ...first, tokenClass: 'other', quantity: null, amountPico }] }
          : input;
      },
    });
    for (const one of findings) expect(['LOW', 'UNVERIFIED']).toContain(one.grade);
  });

  it('counts something large and unexplained as critical', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at) => (isBetween(at, 5, 9) ? priced(lines, 'output', 23n) : lines),
      }),
    );
    expect([finding.kind, finding.critical]).toEqual(['unexplained', true]);
  });
});

describe('a finding', () => {
  it('adds up its evidence in bits: the match’s steps give its probability, the explanation’s give theirs', () => {
    const finding = theFinding(findingsOf(cachedAsInput(5, 9)));
    const bits = (isOwn: (signal: string) => boolean) =>
      finding.waterfall.reduce((sum, step) => (isOwn(step.signal) ? sum + step.bits : sum), 0);
    const isExplanation = (signal: string) => /^explanation_|^days_and_rivals$/.test(signal);
    const odds = (probability: number) => 1 / (1 + 2 ** -probability);
    expect(odds(bits((signal) => !isExplanation(signal)))).toBeCloseTo(finding.matchProbability, 9);
    expect(finding.matchProbability * odds(bits(isExplanation))).toBeCloseTo(finding.probability, 9);
  });

  it('has lines whose amounts sum to its impact', () => {
    const finding = theFinding(findingsOf(cachedAsInput(5, 9)));
    const sum = finding.lines.reduce((total, line) => total + line.billedPico - line.expectedPico, 0n);
    expect(sum).toBe(finding.impactPico);
  });
});
