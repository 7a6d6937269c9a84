/** What findings say of themselves. */
import { describe, expect, it } from 'vitest';
import { impactText } from '../../../../domain/reconciliation/inference/words.js';
import { anObservedCell } from '../support.js';
import { chargeFor, findingsOf, isBetween, linesFor, part, scale, theFinding, type Use } from './support.js';

const onDays = (at: number) => isBetween(at, 8, 12);
const noTier = { serviceTier: '' };

describe('a bill is too high or too low', () => {
  it('only where that is the provider’s mistake', () => {
    const own = theFinding(
      findingsOf({
        bill: (lines, at) => (onDays(at) ? scale(lines, 2n, 1n) : lines),
        input: (input) => ({
          ...input,
          billed: input.billed.map((cell) => ({ ...cell, isBatch: null })),
          observed: input.observed.map((cell) => anObservedCell({ ...cell, ...noTier })),
        }),
      }),
    );
    expect(own.blame).toBe('own');
    expect(own.reason).toMatch(/The bill is \$[\d.]+ above what these events cost on 5 days/);
    const theirs = theFinding(
      findingsOf({ bill: (lines, at) => (onDays(at) ? scale(lines, 10n, 1n, ['cache_read']) : lines) }),
    );
    expect(theirs.blame).toBe('provider');
    expect(theirs.reason).toMatch(/The bill is \$[\d.]+ too much on 5 days/);
  });

  it('by dollars that are rounded as those of tables and answers are, half to even', () => {
    expect(impactText(109_017_591_375_000n, 'provider')).toBe('$109.02 too much');
    expect(impactText(-109_015_000_000_000n, 'none')).toBe('$109.02 below what these events cost');
    expect(impactText(-109_005_000_000_000n, 'none')).toBe('$109.00 below what these events cost');
  });

  it('calls that come twice leave the bill below what the events cost', () => {
    const finding = theFinding(findingsOf({ seen: (use, at) => (onDays(at) ? part(use, 2) : use) }));
    expect([finding.kind, finding.blame]).toEqual(['client_metering_error', 'own']);
    expect(finding.reason).toMatch(/The bill is \$[\d.]+ below what these events cost/);
  });
});

describe('what nobody can explain', () => {
  const adviceOf = (shape: Parameters<typeof findingsOf>[0]) => {
    const finding = theFinding(findingsOf(shape));
    expect([finding.kind, finding.blame]).toEqual(['unexplained', 'none']);
    return finding.advice.join(' ');
  };

  it('more events than were billed: calls may come twice', () => {
    const advice = adviceOf({ seen: (use, at) => (onDays(at) ? part(use, 1.5) : use) });
    expect(advice).toContain('Look for calls that come twice');
    expect(advice).not.toContain('not sent');
  });

  it('less charged than the rates give: nobody asks to be charged more', () => {
    const free = (use: Use) => ({
      ...linesFor(use),
      input: { ...linesFor(use).input, amountPico: chargeFor('input', BigInt(use.input - 10_000_000)) },
      output: { ...linesFor(use).output, amountPico: chargeFor('output', BigInt(use.output - 2_000_000)) },
    });
    const advice = adviceOf({ bill: (_lines, _at, use) => free(use) });
    expect(advice).toContain('credits, free allowances or terms');
    expect(advice).not.toContain('Ask the provider');
  });

  it('more charged than the rates give: the provider can tell its rate', () => {
    const advice = adviceOf({
      bill: (lines, at) => (onDays(at) ? scale(lines, 137n, 100n, ['output']) : lines),
    });
    expect(advice).toContain('Ask the provider which rate was charged');
  });
});

describe('calls that nobody saw', () => {
  it('are told without a word of their mix, which may be the same', () => {
    const finding = theFinding(
      findingsOf({
        seen: (use, at) => (onDays(at) ? part(use, 0.5, (place) => 0.01 * Math.sin(at * 7 + place)) : use),
      }),
    );
    expect([finding.kind, finding.blame, finding.claimable]).toEqual(['unobserved_usage', 'none', false]);
    expect(finding.reason).not.toContain('mix');
    expect(finding.reason).toMatch(/above what these events cost/);
  });
});
