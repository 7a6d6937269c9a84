/** The texts of findings. */
import { describe, expect, it } from 'vitest';
import type { Blame, Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import { reasonOf } from '../../../../../domain/reconciliation/engine/series/findingText.js';

import { anObservedCell } from '../../support.js';
import { chargeFor, findingsOf, isBetween, linesFor, part, scale, theFinding, type Use } from './support.js';

const onDays = (at: number) => isBetween(at, 8, 12);
const said = (finding: Finding) => reasonOf(finding, finding.days);
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
    expect(said(own)).toMatch(/The bill is \$[\d.,]+ above what these events cost on 5 days/);
    const theirs = theFinding(
      findingsOf({ bill: (lines, at) => (onDays(at) ? scale(lines, 10n, 1n, ['cache_read']) : lines) }),
    );
    expect(theirs.blame).toBe('provider');
    expect(said(theirs)).toMatch(/The bill is \$[\d.,]+ too much on 5 days/);
  });

  it('shows dollars as a claim over the same days asks for them: toward zero, whichever way the bill is wrong', () => {
    const shown = (blame: Blame, ...impacts: bigint[]) =>
      reasonOf(
        { cause: 'Cause.', blame },
        impacts.map((impactPico, at) => ({ day: `2026-10-0${at + 1}`, impactPico })),
      );
    expect(shown('provider', 109_017_591_375_000n)).toBe(
      'Cause. The bill is $109.01 too much on 2026-10-01.',
    );
    expect(shown('provider', 1_000_006_000_000_000n, 6_000_000_000n)).toBe(
      'Cause. The bill is $1,000.01 too much on 2 days from 2026-10-01 to 2026-10-02.',
    );
    expect(shown('provider', -36_359_999_999_999n)).toBe(
      'Cause. The bill is $36.35 too little on 2026-10-01.',
    );
    expect(shown('none', -109_015_000_000_000n)).toBe(
      'Cause. The bill is $109.01 below what these events cost on 2026-10-01.',
    );
  });

  it('calls that come twice leave the bill below what the events cost', () => {
    const finding = theFinding(findingsOf({ seen: (use, at) => (onDays(at) ? part(use, 2) : use) }));
    expect([finding.kind, finding.blame]).toEqual(['client_metering_error', 'own']);
    expect(said(finding)).toMatch(/The bill is \$[\d.,]+ below what these events cost/);
  });
});

describe('the text of an unexplained difference', () => {
  const adviceOf = (shape: Parameters<typeof findingsOf>[0]) => {
    const finding = theFinding(findingsOf(shape));
    expect([finding.kind, finding.blame]).toEqual(['unexplained', 'none']);
    return finding.advice.join(' ');
  };

  it('mentions duplicate calls for more events than were billed', () => {
    const advice = adviceOf({ seen: (use, at) => (onDays(at) ? part(use, 1.5) : use) });
    expect(advice).toContain('Look for calls that come twice');
    expect(advice).not.toContain('not sent');
  });

  it('requests no money for less charged than the rates imply', () => {
    const free = (use: Use) => ({
      ...linesFor(use),
      input: { ...linesFor(use).input, amountPico: chargeFor('input', BigInt(use.input - 10_000_000)) },
      output: { ...linesFor(use).output, amountPico: chargeFor('output', BigInt(use.output - 2_000_000)) },
    });
    const advice = adviceOf({ bill: (_lines, _at, use) => free(use) });
    expect(advice).toContain('credits, free allowances or terms');
    expect(advice).not.toContain('Ask the provider');
  });

  it('refers to the provider’s rate for more charged than the rates imply', () => {
    const advice = adviceOf({
      bill: (lines, at) => (onDays(at) ? scale(lines, 137n, 100n, ['output']) : lines),
    });
    expect(advice).toContain('Ask the provider which rate was charged');
  });
});

describe('the text about unseen calls', () => {
  it('does not mention their mix, which may be the same', () => {
    const finding = theFinding(
      findingsOf({
        seen: (use, at) => (onDays(at) ? part(use, 0.5, (place) => 0.01 * Math.sin(at * 7 + place)) : use),
      }),
    );
    expect([finding.kind, finding.blame, finding.claimable]).toEqual(['unobserved_usage', 'none', false]);
    expect(said(finding)).not.toContain('mix');
    expect(said(finding)).toMatch(/above what these events cost/);
  });
});
