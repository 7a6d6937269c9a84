/** A bill is a sum of causes: rates and counts may both be wrong on one day, each for its own reason. */
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import { chargeFor, findingsOf, isBetween, type Lines, useOf } from './support.js';

const brief = (findings: readonly Finding[]) =>
  findings
    .map(({ kind, grade, days }) => `${kind} ${grade}: ${days.map(({ day }) => day.slice(8)).join(' ')}`)
    .sort();

/** A class's amount at other than its own price: in hundredths. */
const priced = (lines: Lines, name: keyof Lines, hundredths: bigint): Lines => ({
  ...lines,
  [name]: { ...lines[name], amountPico: (lines[name].amountPico * hundredths) / 100n },
});
const cachedAsInput = (lines: Lines) => priced(lines, 'cache_read', 1_000n);

const useAt = useOf;

describe('rates and counts', () => {
  it('are judged apart: a rate that the bill shows holds while many calls of another mix were missed', () => {
    const findings = findingsOf({
      bill: (lines, at) => (isBetween(at, 5, 9) ? cachedAsInput(lines) : lines),
      seen: (use, at) =>
        isBetween(at, 3, 12)
          ? {
              input: Math.round(use.input * 0.81),
              cache_read: Math.round(use.cache_read * 0.58),
              output: Math.round(use.output * 0.7),
            }
          : use,
    });
    expect(brief(findings)).toContain('cache_read_rate_mismatch HIGH: 10 11 12 13 14');
  });

  it('may both be wrong on one day, and share no dollar', () => {
    const findings = findingsOf({
      bill: (lines, at, use) => {
        if (!isBetween(at, 5, 9)) return lines;
        const quantity = lines.input.quantity + lines.cache_read.quantity;
        const amountPico = chargeFor('input', BigInt(use.input + use.cache_read));
        return { ...cachedAsInput(lines), input: { quantity, amountPico } };
      },
    });
    expect(brief(findings)).toEqual([
      'cache_read_rate_mismatch HIGH: 10 11 12 13 14',
      'cached_tokens_double_metered HIGH: 10 11 12 13 14',
    ]);
    const [rate, count] = findings.sort((a, b) => (a.kind < b.kind ? -1 : 1));
    const cached = [5, 6, 7, 8, 9].reduce((total, at) => total + BigInt(useAt(at).cache_read), 0n);
    expect(rate?.impactPico).toBe((cached * 18n * 10n ** 11n) / 10n ** 6n);
    expect(count?.impactPico).toBe(chargeFor('input', cached));
    // The first of these days is the worked example of docs/engine.md: $165.78 and $184.20.
    expect(rate?.days[0]?.impactPico).toBe(165_780_000_000_000n);
    expect(count?.days[0]?.impactPico).toBe(184_200_000_000_000n);
  });
});
