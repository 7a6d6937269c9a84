/** A rate that was never otherwise may be our price's mistake as well as the provider's. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { BOOK } from '../../support.js';
import { contractOf } from './contracts.js';
import { asClasses, findingsOf, isBetween, type Lines, scale, seriesOf, theFinding } from './support.js';

const uplift = (lines: Lines) => scale(lines, 11n, 10n);
const quarterOfInput = (lines: Lines) => scale(lines, 25n, 10n, ['cache_read']);
const readsAsInput = (lines: Lines) => scale(lines, 10n, 1n, ['cache_read']);
const priority = (lines: Lines) => scale(lines, 2n, 1n);

describe('a wrong rate on all days', () => {
  it('is never HIGH, where the other lines are right: the rate of another class', () => {
    const finding = theFinding(findingsOf({ bill: readsAsInput }));
    expect(['MEDIUM', 'LOW']).toContain(finding.grade);
    expect(finding.missing).toContain('odds_against_next');
    expect(finding.next?.kind).toBe('stale_price_reference');
    expect(finding.advice.join(' ')).toContain('our price may be the old one');
  });

  it.each([
    ['an addition for a place', uplift],
    ['another share of the input rate', quarterOfInput],
    ['a tier’s rates on every line that there is', priority],
  ])(
    'is our price’s where a price list may have that rate as well, or nothing else shows that ours are right: %s',
    (_, bill) => {
      for (const days of [20, 1]) {
        const finding = theFinding(findingsOf({ days, bill }));
        expect([finding.kind, finding.blame]).toEqual(['stale_price_reference', 'none']);
        expect([finding.claimable, finding.recoverablePico]).toEqual([false, 0n]);
      }
    },
  );

  it('is never HIGH on the only day that there is', () => {
    const finding = theFinding(findingsOf({ days: 1, bill: readsAsInput }));
    expect(['MEDIUM', 'LOW']).toContain(finding.grade);
  });

  it('too little charged is no more certain', () => {
    const finding = theFinding(findingsOf({ bill: (lines) => scale(lines, 1n, 10n, ['input']) }));
    expect(finding.direction).toBe('undercharge');
    expect(finding.grade).not.toBe('HIGH');
  });

  it('of amounts alone blames neither side', () => {
    for (const bill of [uplift, quarterOfInput, readsAsInput, priority])
      for (const finding of findingsOf({ bill, input: asClasses }))
        expect(finding.blame).not.toBe('provider');
  });
});

describe('a contract that sets the price', () => {
  const contract = contractOf(10n);

  it('binds both sides: its breach on all days is HIGH', () => {
    const days = seriesOf({});
    const { findings } = reconcileDays('openai', days, { agreed: contract, list: BOOK }, DEFAULT_WEIGHTS, []);
    const finding = theFinding(findings);
    expect([finding.kind, finding.grade]).toEqual(['contract_rate_not_applied', 'HIGH']);
    expect([finding.claimable, finding.days.length]).toEqual([true, 20]);
  });
});

describe('a discount on top of a contract’s', () => {
  const book = contractOf(10n);
  const twice = (lines: Lines) => scale(lines, 81n, 100n);
  const right = (lines: Lines) => scale(lines, 9n, 10n);
  const kindsOf = (isTwice: (at: number) => boolean) => {
    const days = seriesOf({ bill: (lines, at) => (isTwice(at) ? twice : right)(lines) });
    const { findings } = reconcileDays('openai', days, { agreed: book, list: BOOK }, DEFAULT_WEIGHTS, []);
    return findings.map(({ kind, blame }) => [kind, blame]);
  };

  it('that comes and goes was taken off twice; one that stays is terms without an entry', () => {
    expect(kindsOf((at) => isBetween(at, 5, 12))).toEqual([['contract_rate_not_applied', 'provider']]);
    for (const stays of [() => true, (at: number) => at >= 5, (at: number) => at < 12])
      expect(kindsOf(stays)).toEqual([['contract_terms', 'none']]);
  });
});

describe('a wrong rate up to an end of what is known', () => {
  it.each([
    ['from a day on', (at: number) => at >= 10],
    ['up to a day', (at: number) => at < 10],
  ])('is MEDIUM at most where a price may have it: %s', (_, isWrong) => {
    for (const wrong of [uplift, quarterOfInput]) {
      const finding = theFinding(findingsOf({ bill: (lines, at) => (isWrong(at) ? wrong(lines) : lines) }));
      expect(finding.grade).toBe('MEDIUM');
    }
  });

  it('is HIGH where the model’s own list has the rate for something else', () => {
    const finding = theFinding(findingsOf({ bill: (lines, at) => (at >= 10 ? readsAsInput(lines) : lines) }));
    expect([finding.kind, finding.grade]).toEqual(['cache_read_rate_mismatch', 'HIGH']);
  });

  it('days that the provider may still restate are no end', () => {
    const finding = theFinding(
      findingsOf({
        bill: (lines, at) => (at >= 10 ? uplift(lines) : lines),
        input: (input, at) =>
          at >= 18 ? { ...input, nowMicros: BigInt(Date.parse(`${input.day}T12:00:00Z`)) * 1_000n } : input,
      }),
    );
    expect([finding.days.length, finding.grade]).toEqual([8, 'MEDIUM']);
  });
});

describe('a wrong rate between days at the right one', () => {
  it('is HIGH, since our price was right before and after, wherever it lies', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(uplift, quarterOfInput, readsAsInput, priority),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 2, max: 9 }),
        (wrong, first, length) => {
          const finding = theFinding(
            findingsOf({
              bill: (lines, at) => (isBetween(at, first, first + length) ? wrong(lines) : lines),
            }),
          );
          expect([finding.grade, finding.claimable, finding.days.length]).toEqual(['HIGH', true, length + 1]);
        },
      ),
      { numRuns: 12, seed: 7 },
    );
  });
});

describe('an addition for a place on lines of a class alone', () => {
  it('is never HIGH, since such a line holds use of every place and no call reports its own', () => {
    const bill = (lines: Lines, at: number) => (isBetween(at, 6, 10) ? uplift(lines) : lines);
    const ofClassesAlone = (input: DayInput): DayInput => ({
      ...input,
      billed: input.billed.map((line) => ({ ...line, isBatch: null, longContext: null })),
    });
    const stated = theFinding(findingsOf({ bill }));
    const unstated = theFinding(findingsOf({ bill, input: ofClassesAlone }));
    expect([stated, unstated].map(({ kind }) => kind)).toEqual([
      'region_uplift_misapplied',
      'region_uplift_misapplied',
    ]);
    expect([stated.grade, unstated.grade]).toEqual(['HIGH', 'MEDIUM']);
    expect(unstated.missing).toEqual(['evidence_needed']);
  });
});
