import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footCents } from '../../domain/footing.js';
import { decimalFromPico } from '../../domain/money.js';
import { usd } from '../../web/src/app/format.js';
import { exactSum, footedCents, negated } from '../../web/src/parts/exactSum.js';

const CENT_PICO = 10_000_000_000n;
const amounts = fc.array(
  fc.oneof(
    fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    fc.bigInt({ min: 0n, max: 3n * CENT_PICO }),
    fc.constantFrom(CENT_PICO / 2n, -CENT_PICO / 2n, 4_000_000_000n),
  ),
  { maxLength: 20 },
);
const sumOf = (list: readonly bigint[]) => list.reduce((sum, one) => sum + one, 0n);
/** A decimal text in dollars → pico-dollars. */
const picoOf = (text: string) => BigInt(text.replace('.', ''));

describe('a sum on the dashboard', () => {
  it('is exact, whatever the signs and sizes of its amounts', () => {
    fc.assert(
      fc.property(amounts, (exact) => {
        expect(picoOf(exactSum(exact.map(decimalFromPico)))).toBe(sumOf(exact));
      }),
    );
  });

  it('reads numbers with an exponent as the same number without', () => {
    expect(exactSum([1e-7, '2E-7', 1.5e3, -2])).toBe('1498.000000300000');
  });

  it('is zero of an amount and its negation', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 20n }), (pico) => {
        const text = decimalFromPico(pico);
        expect(picoOf(exactSum([text, negated(text)]))).toBe(0n);
      }),
    );
  });
});

describe('amounts in whole cents on the dashboard', () => {
  it('add up to the total that is shown, and each is less than a cent from its exact amount', () => {
    fc.assert(
      fc.property(amounts, (exact) => {
        const texts = exact.map(decimalFromPico);
        const cents = footedCents(texts);
        expect(usd(exactSum(cents))).toBe(usd(exactSum(texts)));
        cents.forEach((text, at) => {
          const off = picoOf(text) - (exact[at] ?? 0n);
          expect(picoOf(text) % CENT_PICO).toBe(0n);
          expect(off < CENT_PICO && off > -CENT_PICO).toBe(true);
        });
      }),
    );
  });

  it('are those of a report, unless the total is half a cent', () => {
    fc.assert(
      fc.property(amounts, (exact) => {
        const twiceRest = (sumOf(exact) % CENT_PICO) * 2n;
        fc.pre(twiceRest !== CENT_PICO && twiceRest !== -CENT_PICO);
        expect(footedCents(exact.map(decimalFromPico)).map(picoOf)).toEqual(footCents(exact).partsPico);
      }),
    );
  });
});
