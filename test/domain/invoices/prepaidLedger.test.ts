import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PrepaidPurchase, prepaidLedger } from '../../../domain/invoices/prepaidLedger.js';

const bought = (day: string, amount: bigint, line = 1): PrepaidPurchase => ({
  ...{ invoiceId: 'one', line, day, amount },
});
const LASTING = { creditDays: null, today: '2026-11-01' };

test('usage is paid from the oldest purchase first', () => {
  const ledger = prepaidLedger(
    [bought('2026-03-01', 50n, 2), bought('2026-01-01', 100n)],
    [{ day: '2026-04-01', amount: 120n }],
    LASTING,
  );
  expect(ledger.entries.map(({ day, used, left }) => [day, used, left])).toEqual([
    ['2026-01-01', 100n, 0n],
    ['2026-03-01', 20n, 30n],
  ]);
});

test('a purchase pays from its own day on, and usage before the first purchase is not looked at', () => {
  const ledger = prepaidLedger(
    [bought('2026-02-01', 100n)],
    [
      { day: '2026-01-31', amount: 10n },
      { day: '2026-02-01', amount: 30n },
    ],
    LASTING,
  );
  expect([ledger.used, ledger.left, ledger.uncovered]).toEqual([30n, 70n, 0n]);
});

test('what is left of a purchase expires', () => {
  const terms = { creditDays: 365, today: '2026-06-01' };
  const ledger = prepaidLedger([bought('2025-05-01', 100n)], [{ day: '2025-07-01', amount: 40n }], terms);
  expect([ledger.used, ledger.expired, ledger.left]).toEqual([40n, 60n, 0n]);
  expect(ledger.entries[0]?.expiresOn).toBe('2026-05-01');
});

test('expired credit pays for no later usage', () => {
  const terms = { creditDays: 365, today: '2026-06-01' };
  const ledger = prepaidLedger([bought('2025-05-01', 100n)], [{ day: '2026-05-01', amount: 40n }], terms);
  expect([ledger.used, ledger.uncovered, ledger.expired]).toEqual([0n, 40n, 100n]);
});

const day = fc
  .integer({ min: 0, max: 600 })
  .map((days) => new Date(Date.UTC(2025, 0, 1 + days)).toISOString().slice(0, 10));
const amount = fc.integer({ min: 0, max: 1_000 }).map(BigInt);

test('bought is used, expired and left together, whatever is bought and used', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(day, amount)), fc.array(fc.tuple(day, amount)), (purchases, usage) => {
      const ledger = prepaidLedger(
        purchases.map(([on, value], at) => bought(on, value, at)),
        usage.map(([on, value]) => ({ day: on, amount: value })),
        { creditDays: 365, today: '2026-08-01' },
      );
      expect(ledger.used + ledger.expired + ledger.left).toBe(ledger.bought);
    }),
  );
});
