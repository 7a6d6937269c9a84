import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CreditableClaim, type CreditRow, matchCredits } from '../../../domain/claims/matchCredits.js';
import { microsOfDay } from '../../../domain/period.js';

const CENT = 10n ** 10n;

const claim = (id: string, cents: bigint, rest: Partial<CreditableClaim> = {}): CreditableClaim => ({
  ...{ id, accountId: 'acc-1', submittedAtMicros: microsOfDay('2026-05-01'), wantedCents: cents },
  ...{ periodStart: '2026-03-10', periodEnd: '2026-04-02', isOpen: true, tickets: [`T-${id}-00`] },
  ...rest,
});

let made = 0;
const row = (cents: bigint, description = 'Credit', rest: Partial<CreditRow> = {}): CreditRow => {
  made += 1;
  const day = rest.day ?? '2026-06-01';
  return {
    ...{ key: `row-${String(made).padStart(4, '0')}`, accountId: 'acc-1', day, amountPico: cents * CENT },
    ...{ endMicros: microsOfDay(day) + 86_400_000_000n, description, isUsage: false },
    ...rest,
  };
};

const told = (found: ReturnType<typeof matchCredits>) =>
  found.map(({ claimId, cents, rows }) => [claimId, cents, ...rows.map((one) => one.row.key)]);

describe('a credit on a later bill', () => {
  it('that ties to one claim to the cent is its answer', () => {
    const one = row(12_345n);
    expect(told(matchCredits([claim('a', 12_345n), claim('b', 12_346n)], [one]))).toEqual([
      ['a', 12_345n, one.key],
    ]);
    const almost = row(0n, 'Credit', { amountPico: 12_345n * CENT - 1n });
    expect(told(matchCredits([claim('a', 12_345n)], [almost]))).toEqual([['a', 12_345n, almost.key]]);
  });

  it('that ties to two claims is neither’s, unless it names one: its ticket before its period', () => {
    const both = [claim('a', 500n), claim('b', 500n, { periodStart: '2026-04-03', periodEnd: '2026-04-05' })];
    expect(matchCredits(both, [row(500n)])).toEqual([]);
    expect(told(matchCredits(both, [row(500n, 'Credit re: T-b-00')])).map(([id]) => id)).toEqual(['b']);
    expect(told(matchCredits(both, [row(500n, 'Credit, March 2026')])).map(([id]) => id)).toEqual(['a']);
    expect(matchCredits(both, [row(500n, 'Credit for 2026-04')])).toEqual([]);
    expect(told(matchCredits(both, [row(500n, 'March 2026, t-B-00')])).map(([id]) => id)).toEqual(['b']);
  });

  it('does not match from another account, from before the claim was filed, or once refused', () => {
    const one = claim('a', 500n);
    expect(matchCredits([one], [row(500n, 'Credit', { accountId: 'acc-2' })])).toEqual([]);
    expect(matchCredits([one], [row(500n, 'Credit', { day: '2026-04-30' })])).toEqual([]);
    expect(matchCredits([one], [row(500n)], () => true)).toEqual([]);
    const anyAccount = claim('a', 500n, { accountId: '' });
    expect(matchCredits([anyAccount], [row(500n, 'Credit', { accountId: 'acc-2' })])).toHaveLength(1);
    const month = row(500n, 'Credit', { day: '2026-05-01', endMicros: microsOfDay('2026-06-01') });
    expect(
      matchCredits([claim('a', 500n, { submittedAtMicros: microsOfDay('2026-05-20') })], [month]),
    ).toHaveLength(1);
  });

  it('may be several rows: of a day, or of a label and month, whose cents sum to the whole', () => {
    const parts = [
      row(0n, 'Credit', { amountPico: 250n * CENT + 4_000_000_000n }),
      row(0n, 'Refund', { amountPico: 250n * CENT - 4_000_000_000n }),
    ];
    const [found] = matchCredits([claim('a', 500n)], parts);
    expect(found?.rows.map(({ cents }) => cents)).toEqual([250n, 250n]);
    const days = [
      row(100n, 'Adjustment', { day: '2026-06-03' }),
      row(400n, 'Adjustment', { day: '2026-06-20' }),
    ];
    expect(matchCredits([claim('a', 500n)], [...days, row(7n, 'Promotion')])).toMatchObject([
      { cents: 500n },
    ]);
    const apart = [row(100n, 'One', { day: '2026-06-03' }), row(400n, 'Two', { day: '2026-06-20' })];
    expect(matchCredits([claim('a', 500n)], apart)).toEqual([]);
  });

  it('of less than a claim asks for is its answer in part where it names it, and never more than the rest', () => {
    const [first, second, third] = [
      row(300n, 'For T-a-00'),
      row(150n, 'March 2026'),
      row(100n, 'March 2026'),
    ];
    const found = matchCredits([claim('a', 500n)], [third, second, first]);
    expect(told(found)).toEqual([
      ['a', 300n, first.key],
      ['a', 150n, second.key],
    ]);
    expect(matchCredits([claim('a', 500n)], [row(300n, 'Credit')])).toEqual([]);
    expect(matchCredits([claim('a', 500n)], [row(600n, 'For T-a-00')])).toEqual([]);
    expect(matchCredits([claim('a', 500n, { isOpen: false })], [row(300n, 'For T-a-00')])).toEqual([]);
  });

  it('that the bill calls usage is an answer to the cent or none', () => {
    const isUsage = { isUsage: true };
    expect(matchCredits([claim('a', 500n)], [row(500n, 'gpt-4o', isUsage)])).toHaveLength(1);
    expect(matchCredits([claim('a', 500n)], [row(400n, 'gpt-4o March 2026', isUsage)])).toEqual([]);
  });

  it('is one claim’s once, never more than it waits for, whatever order they come in', () => {
    const cents = fc.bigInt(1n, 6n).map((units) => units * 100n);
    const words = fc.constantFrom('Credit', 'T-0-00', 'T-1-00', 'March 2026', 'Refund');
    const dayOf = fc.constantFrom('2026-04-01', '2026-06-01', '2026-06-02', '2026-07-01');
    fc.assert(
      fc.property(
        fc.array(cents, { maxLength: 4 }),
        fc.array(fc.tuple(cents, words, dayOf, fc.integer()), { maxLength: 8 }),
        (totals, given) => {
          const claims = totals.map((total, at) => claim(String(at), total));
          const rows = given.map(([amount, text, day]) => row(amount, text, { day }));
          const found = matchCredits(claims, rows);
          const keys = found.flatMap((one) => one.rows.map((part) => part.row.key));
          expect(new Set(keys).size).toBe(keys.length);
          for (const { id, wantedCents } of claims) {
            const sum = found.filter((one) => one.claimId === id).reduce((all, one) => all + one.cents, 0n);
            expect(sum <= wantedCents).toBe(true);
          }
          for (const one of found)
            expect(one.rows.reduce((all, part) => all + part.cents, 0n)).toBe(one.cents);
          const order = given.map(([, , , rank], at) => ({ rank, row: rows[at] as CreditRow }));
          const shuffled = order.sort((a, b) => a.rank - b.rank).map((one) => one.row);
          expect(matchCredits([...claims].reverse(), shuffled)).toEqual(found);
        },
      ),
      { numRuns: 300 },
    );
  });
});
