/** A bill is a sum of causes: several hold on one day, and what none explains is the rest of that day alone. */
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import { chargeFor, findingsOf, isBetween, type Lines, observedOf, type Use, useOf } from './support.js';

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

describe('something unknown', () => {
  it('does not spread to the days beside it, which a known mistake explains', () => {
    const findings = findingsOf({
      bill: (lines, at) => {
        if (isBetween(at, 4, 9)) return priced(lines, 'output', 137n);
        return isBetween(at, 10, 11) ? cachedAsInput(lines) : lines;
      },
    });
    expect(brief(findings)).toEqual([
      'cache_read_rate_mismatch HIGH: 15 16',
      'unexplained LOW: 09 10 11 12 13 14',
    ]);
  });

  it('does not spread to one day between many that nothing explains', () => {
    const findings = findingsOf({
      bill: (lines, at) => {
        if (at === 10) return cachedAsInput(lines);
        return isBetween(at, 4, 16) ? priced(lines, 'output', 137n) : lines;
      },
    });
    expect(brief(findings)).toContain('cache_read_rate_mismatch HIGH: 15');
  });

  it('is a rest beside a known mistake of the same day', () => {
    const findings = findingsOf({
      bill: (lines, at) => {
        if (at === 7) return priced(cachedAsInput(lines), 'output', 137n);
        return isBetween(at, 5, 9) ? cachedAsInput(lines) : lines;
      },
    });
    expect(brief(findings)).toEqual(['cache_read_rate_mismatch HIGH: 10 11 12 13 14', 'unexplained LOW: 12']);
    const sum = findings.reduce((total, one) => total + one.impactPico, 0n);
    // Cached tokens of five days at $2 instead of $0.20, and 37 % of one day's output.
    const cached = [5, 6, 7, 8, 9].reduce((total, at) => total + BigInt(useAt(at).cache_read), 0n);
    expect(sum).toBe(
      (cached * 18n * 10n ** 11n) / 10n ** 6n + (chargeFor('output', BigInt(useAt(7).output)) * 37n) / 100n,
    );
  });

  it('interrupts no run of a mistake that holds before and after it', () => {
    const findings = findingsOf({
      bill: (lines, at) => {
        if (at === 7) return priced(priced(priced(lines, 'cache_read', 431n), 'input', 71n), 'output', 137n);
        return isBetween(at, 5, 9) ? cachedAsInput(lines) : lines;
      },
    });
    expect(findings.filter(({ kind }) => kind === 'cache_read_rate_mismatch')).toHaveLength(1);
  });
});

describe('a rate that agrees to the rounding of its row', () => {
  it('is named on a single day and line; a rate beside it is not', () => {
    const on = (hundredths: bigint) =>
      findingsOf({ bill: (lines, at) => (at === 8 ? priced(lines, 'cache_read', hundredths) : lines) });
    expect(on(1_000n).map(({ kind }) => kind)).toEqual(['cache_read_rate_mismatch']);
    expect(on(1_003n).map(({ kind }) => kind)).toEqual(['unexplained']);
  });
});

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

describe('days that have all that certainty needs', () => {
  it('are sure however many other days of the same mistake are not', () => {
    const findings = findingsOf({
      bill: (lines, at, use) =>
        isBetween(at, 5, 14)
          ? {
              ...lines,
              input: {
                quantity: lines.input.quantity + lines.cache_read.quantity,
                amountPico: chargeFor('input', BigInt(use.input + use.cache_read)),
              },
            }
          : lines,
      // From the fourth of these days on a seventh of the calls goes unseen.
      seen: (use, at) =>
        isBetween(at, 8, 14)
          ? {
              input: Math.round(use.input * 0.86),
              cache_read: Math.round(use.cache_read * 0.86),
              output: Math.round(use.output * 0.86),
            }
          : use,
    });
    const doubled = findings.filter(({ kind }) => kind === 'cached_tokens_double_metered');
    expect(brief(doubled)).toEqual([
      'cached_tokens_double_metered HIGH: 10 11 12',
      'cached_tokens_double_metered LOW: 13 14 15 16 17 18 19',
    ]);
  });
});

describe('units too many of batch calls that are charged at the standard price', () => {
  it('are as sure as at the right price: the wrong rate of their line is explained by itself', () => {
    const findings = findingsOf({
      bill: (lines, at, use) => {
        const doubled = isBetween(at, 5, 9);
        const quantity = lines.input.quantity + (doubled ? lines.cache_read.quantity : 0n);
        const amountPico = chargeFor('input', BigInt(use.input + (doubled ? use.cache_read : 0)));
        const all: Lines = { ...lines, input: { quantity, amountPico } };
        // Batch calls cost half.
        return isBetween(at, 5, 9)
          ? all
          : (['input', 'cache_read', 'output'] as const).reduce((half, name) => priced(half, name, 50n), all);
      },
      input: (input) => ({
        ...input,
        billed: input.billed.map((cell) => ({ ...cell, isBatch: true })),
        observed: input.observed.map((cell) => ({ ...cell, isBatch: true })),
      }),
    });
    expect(brief(findings)).toEqual([
      'batch_discount_not_applied HIGH: 10 11 12 13 14',
      'cached_tokens_double_metered HIGH: 10 11 12 13 14',
    ]);
  });
});

describe('counts that agree to the unit', () => {
  const failed: Use = { input: 912_345, cache_read: 0, output: 187_651 };
  const withFailures = (on: (at: number) => boolean, told: Use) =>
    findingsOf({
      bill: (lines, at, use) => {
        if (!on(at)) return lines;
        const sum = (name: keyof Use) => BigInt(use[name] + failed[name]);
        const line = (name: keyof Use) => ({
          quantity: sum(name) * 10n ** 12n,
          amountPico: chargeFor(name, sum(name)),
        });
        return { ...lines, input: line('input'), output: line('output') };
      },
      input: (input, at) =>
        on(at)
          ? {
              ...input,
              observed: [...input.observed, observedOf(input.day, told, { status: 'error', calls: 30 })],
            }
          : input,
    });

  it('prove on one day that failed attempts were billed', () => {
    expect(brief(withFailures((at) => at === 8, failed))).toEqual(['failed_request_billed MEDIUM: 13']);
  });

  it('prove nothing where other attempts failed', () => {
    const other = { input: 612_345, cache_read: 0, output: 287_651 };
    expect(withFailures((at) => at === 8, other).filter(({ grade }) => grade === 'HIGH')).toEqual([]);
  });
});
