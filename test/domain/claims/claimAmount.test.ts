import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claimCents, claimDollars, dollarsText } from '../../../domain/claims/financialSummary.js';
import { PICO_PER_USD, type Pico } from '../../../domain/money.js';

const PICO_PER_CENT = PICO_PER_USD / 100n;
const amounts = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });

describe('the amount of a claim', () => {
  it('is rounded toward zero, whichever way the amount is', () => {
    const shown: [Pico, string][] = [
      [109_017_591_375_000n, '$109.01'],
      [36_359_999_999_999n, '$36.35'],
      [20_815_000_000_000n, '$20.81'],
      [-20_815_000_000_000n, '-$20.81'],
      [9_999_999_999n, '$0.00'],
      [-9_999_999_999n, '$0.00'],
      [1_234_567_890_000_000_000n, '$1,234,567.89'],
    ];
    for (const [pico, text] of shown) expect(claimDollars(pico)).toBe(text);
  });

  it('never exceeds the exact amount and is less than a cent away from it', () => {
    fc.assert(
      fc.property(amounts, (pico) => {
        const lost = pico - claimCents(pico) * PICO_PER_CENT;
        const size = lost < 0n ? -lost : lost;
        expect(size < PICO_PER_CENT && (lost === 0n || lost > 0n === pico > 0n)).toBe(true);
      }),
    );
  });

  it('is written as the cents that programs get', () => {
    fc.assert(
      fc.property(amounts, (pico) => {
        const cents = claimCents(pico);
        expect(claimDollars(pico)).toBe(dollarsText(cents));
        expect(BigInt(dollarsText(cents).replace(/[$,.]/g, ''))).toBe(cents);
      }),
    );
  });
});
