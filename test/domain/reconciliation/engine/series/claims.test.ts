/** Dollars that may be claimed, and dollars that may not at any probability. */
import { describe, expect, it } from 'vitest';
import { calls, lines } from '../causes/support.js';
import { daysOf, findingsOf, findingsOfDays, isBetween, part, scale, theFinding, useOf } from './support.js';

const use = (at: number) => ({ ...useOf(at) });

describe('dates of prices', () => {
  // 5 and 30 dollars a million up to 2026-08-20, 4 and 20 from the next day on.
  const MODEL = { model: 'gpt-5.6-sol' };
  const asIfOn = (pricedOn: (day: string) => string) =>
    findingsOfDays(
      daysOf(
        25,
        (at, day) => ({
          billed: lines(use(at), {}, { day: pricedOn(day) }, { ...MODEL, day }),
          observed: [calls(use(at), { calls: 500, serviceTier: 'default' }, { ...MODEL, day })],
        }),
        '2026-08-11',
      ),
    );

  it('are right where the bill changes with the list', () => {
    expect(asIfOn((day) => day)).toEqual([]);
  });

  it.each([
    ['late', '2026-08-21', '2026-08-20', 'overcharge'],
    ['early', '2026-08-20', '2026-08-21', 'undercharge'],
  ])('one day %s is no mistake of either side: lists contain no hours', (_, on, as, direction) => {
    const finding = theFinding(asIfOn((day) => (day === on ? as : day)));
    expect(finding).toMatchObject({ kind: 'price_effective_date_mismatch', direction, blame: 'none' });
    expect(finding).toMatchObject({ grade: 'LOW', claimable: false, recoverablePico: 0n });
    expect(finding.advice.join(' ')).toContain('Look up the day and the hour');
  });

  it('a part of the first day is no mistake of either side', () => {
    const [late, right] = [
      (day: string) => (day === '2026-08-21' ? '2026-08-20' : day),
      (day: string) => day,
    ];
    const days = daysOf(
      25,
      (at, day) => {
        const old = lines(use(at), {}, { day: late(day) }, { ...MODEL, day });
        const billed = lines(use(at), {}, { day: right(day) }, { ...MODEL, day }).map((line, place) => {
          const share = 300n + BigInt(place) * 15n;
          const more = ((old[place]?.amountPico ?? 0n) - line.amountPico) * share;
          return { ...line, amountPico: line.amountPico + more / 1_000n };
        });
        return {
          billed,
          observed: [calls(use(at), { calls: 500, serviceTier: 'default' }, { ...MODEL, day })],
        };
      },
      '2026-08-11',
    );
    for (const finding of findingsOfDays(days)) {
      expect([finding.blame, finding.claimable]).toEqual(['none', false]);
      expect(finding.advice.join(' ')).not.toContain('look at the lines that remain');
    }
  });

  it('several days at the old price are the provider’s', () => {
    const finding = theFinding(
      asIfOn((day) =>
        isBetween(Date.parse(day), Date.parse('2026-08-21'), Date.parse('2026-08-25')) ? '2026-08-20' : day,
      ),
    );
    expect([finding.grade, finding.blame, finding.claimable]).toEqual(['HIGH', 'provider', true]);
  });
});

describe('the claimable amount', () => {
  it('never includes an undercharge: it is found, but not claimed', () => {
    const findings = findingsOf({
      bill: (all, at) => (isBetween(at, 8, 12) ? scale(all, 1n, 10n, ['input']) : all),
    });
    expect(theFinding(findings)).toMatchObject({
      direction: 'undercharge',
      grade: 'HIGH',
      claimable: false,
      recoverablePico: 0n,
    });
  });

  it('rests on more than one source of the price', () => {
    const MYTHOS = { provider: 'anthropic', model: 'claude-mythos-5' } as const;
    const days = daysOf(20, (at, day) => ({
      billed: lines(use(at), {}, {}, { ...MYTHOS, day }).map((line) =>
        isBetween(at, 8, 12) && line.tokenClass === 'cache_read'
          ? { ...line, amountPico: line.amountPico * 10n }
          : line,
      ),
      observed: [calls(use(at), { calls: 500 }, { ...MYTHOS, day })],
    }));
    const finding = theFinding(findingsOfDays(days, 'anthropic'));
    expect(finding.missing).toContain('price_sources_agree');
    expect([finding.claimable, finding.recoverablePico]).toEqual([false, 0n]);
  });

  it('rests on a price of the model itself: that of a related model counts only once the bill shows it', () => {
    const snapshot = (isTwice: (at: number) => boolean) =>
      daysOf(20, (at, day) => ({
        billed: lines(use(at), {}, {}, { day }).map((line) => ({
          ...line,
          model: 'gpt-6-sol-2026-11-01',
          amountPico: isTwice(at) ? line.amountPico * 2n : line.amountPico,
        })),
        observed: [calls(use(at), { calls: 500, serviceTier: 'default' }, { model: 'gpt-6-sol', day })],
      }));
    const always = theFinding(findingsOfDays(snapshot(() => true)));
    expect(always.missing).toEqual(expect.arrayContaining(['price_source_dated', 'price_sources_agree']));
    expect([always.grade, always.claimable]).toEqual(['LOW', false]);
    const forDays = theFinding(findingsOfDays(snapshot((at) => isBetween(at, 8, 12))));
    expect([forDays.grade, forDays.claimable]).toEqual(['HIGH', true]);
  });
});

describe('the list of what needs attention now', () => {
  it('omits differences of some cents, however far out they lie', () => {
    const small = (share: number) =>
      findingsOf({
        seen: (all) => part(all, share),
        bill: (all, at) =>
          scale(
            {
              ...all,
              ...Object.fromEntries(
                Object.entries(all).map(([name, line]) => [
                  name,
                  {
                    quantity: (line.quantity * BigInt(Math.round(share * 1e6))) / 1_000_000n,
                    amountPico: (line.amountPico * BigInt(Math.round(share * 1e6))) / 1_000_000n,
                  },
                ]),
              ),
            },
            isBetween(at, 8, 12) ? 137n : 100n,
            100n,
            ['output'],
          ),
      });
    const [cents, dollars] = [theFinding(small(0.01)), theFinding(small(1))];
    expect([cents.kind, cents.critical]).toEqual(['unexplained', false]);
    expect([dollars.kind, dollars.critical]).toEqual(['unexplained', true]);
  });
});
