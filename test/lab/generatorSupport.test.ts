import { describe, expect, it } from 'vitest';
import { Ledger } from '../../lab/generators/bills/ledger.js';
import { dayNumber, pacificOffsetSeconds } from '../../lab/generators/support/days.js';
import { centText, dollarText, ratePerToken, roundTo } from '../../lab/generators/support/money.js';
import { Random } from '../../lab/generators/support/random.js';

describe('money of the generators', () => {
  it('reads rates to femto-dollars a token, and refuses malformed ones', () => {
    expect(ratePerToken(2.5)).toBe(2_500_000_000n);
    expect(ratePerToken('0.0125')).toBe(12_500_000n);
    for (const text of ['-1', '1e3', '', '0.12345678901'])
      expect(() => ratePerToken(text)).toThrow('no rate');
  });

  it('rounds half away from zero', () => {
    expect([14n, 15n, -14n, -15n, 0n].map((amount) => roundTo(amount, 10n))).toEqual([
      10n,
      20n,
      -10n,
      -20n,
      0n,
    ]);
  });

  it('writes pico-dollars as dollars and as cents, with as many digits as are wanted', () => {
    expect(dollarText(1_237_891_200_000n)).toBe('1.2378912');
    expect(centText(1_237_891_200_000n, 5)).toBe('123.78912');
    expect(centText(-5_000_000_000n, 5)).toBe('-0.50000');
    expect(dollarText(0n, 2)).toBe('0.00');
  });
});

describe('days of the generators', () => {
  it('follows the changes of Pacific time', () => {
    const change = dayNumber('2026-11-01') * 86_400 + 9 * 3_600;
    expect([change - 1, change].map((seconds) => pacificOffsetSeconds(seconds) / 3_600)).toEqual([7, 8]);
    const spring = dayNumber('2026-03-08') * 86_400 + 10 * 3_600;
    expect([spring - 1, spring].map((seconds) => pacificOffsetSeconds(seconds) / 3_600)).toEqual([8, 7]);
  });
});

describe('random numbers of the generators', () => {
  it('are the same for the same names, and others for others', () => {
    const draw = (...names: (string | number)[]) => {
      const random = new Random(...names);
      return Array.from({ length: 5 }, () => random.next());
    };
    expect(draw(1, 'a')).toEqual(draw(1, 'a'));
    expect(draw(1, 'a')).not.toEqual(draw(1, 'b'));
    expect(draw(1, 'a')).not.toEqual(draw(2, 'a'));
  });

  it('have the means that they are asked for', () => {
    const random = new Random(1, 'means');
    const mean = (draw: () => number) => {
      let sum = 0;
      for (let at = 0; at < 20_000; at += 1) sum += draw();
      return sum / 20_000;
    };
    expect(mean(() => random.next())).toBeCloseTo(0.5, 1);
    expect(mean(() => random.normal())).toBeCloseTo(0, 1);
    expect(mean(() => random.poisson(7))).toBeCloseTo(7, 0);
    expect(mean(() => random.gamma(0.6))).toBeCloseTo(0.6, 1);
    const shares = random.dirichlet([4, 4, 0, 1]);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
    expect(shares[2]).toBe(0);
  });
});

describe('books of the generators', () => {
  const charge = {
    provider: 'anthropic',
    accountId: 'a',
    keyId: 'k',
    project: null,
    model: 'm',
    isBatch: false,
    isLong: false,
    tier: 'standard',
    geo: 'global',
    tokens: [3, 0, 0, 0, 1],
    rates: [40_000_000n, 0n, 0n, 0n, 250_000_000n],
    requests: 1,
  };

  it('round a row once, also where its rates change within the day', () => {
    const ledger = new Ledger();
    ledger.addCost(charge, 100);
    ledger.addCost({ ...charge, rates: [10_000_000n, 0n, 0n, 0n, 250_000_000n] }, 200);
    // 3 × 0.04 + 3 × 0.01 = 0.15 millionths of a dollar, printed to a ten-millionth: 0.2; 2 × 0.25 = 0.5.
    expect(ledger.costRows().map(({ quantity, pico }) => [quantity, pico])).toEqual([
      [6, 200_000n],
      [2, 500_000n],
    ]);
  });

  it('keep keys out of costs that have none, and count usage by the hour', () => {
    const ledger = new Ledger();
    for (const keyId of ['k', 'l']) ledger.addCost({ ...charge, keyId }, 100);
    expect(ledger.costRows().map(({ keyId, quantity }) => [keyId, quantity])).toEqual([
      [null, 6],
      [null, 2],
    ]);
    for (const seconds of [100, 3_599, 3_600]) ledger.addUsage(charge, seconds);
    expect(ledger.usageRows().map(({ hour, requests }) => [hour, requests])).toEqual([
      [0, 2],
      [3_600, 1],
    ]);
  });
});
