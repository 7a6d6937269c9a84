import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footCents } from '../../domain/footing.js';
import { decimalFromPico } from '../../domain/money.js';
import { usd } from '../../web/src/app/format.js';
import { exactSum, footedCents, negated } from '../../web/src/parts/exactSum.js';
import { footedTable } from '../../web/src/parts/footedTable.js';

const CENT_PICO = 10_000_000_000n;
const amounts = fc.array(
  fc.oneof(
    fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    fc.bigInt({ min: 0n, max: 3n * CENT_PICO }),
    fc.constantFrom(CENT_PICO / 2n, -CENT_PICO / 2n, 4_000_000_000n),
  ),
  { maxLength: 20 },
);
const cell = fc.bigInt({ min: -3n * CENT_PICO, max: 9n * CENT_PICO });
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
  const isLessThanACentOff = (text: string, exact: bigint) => {
    const off = picoOf(text) - exact;
    return picoOf(text) % CENT_PICO === 0n && off < CENT_PICO && off > -CENT_PICO;
  };

  it('add up to the total that is shown, and each is less than a cent from its exact amount', () => {
    fc.assert(
      fc.property(amounts, (exact) => {
        const texts = exact.map(decimalFromPico);
        const cents = footedCents(texts);
        expect(usd(exactSum(cents))).toBe(usd(exactSum(texts)));
        expect(cents.every((text, at) => isLessThanACentOff(text, exact[at] ?? 0n))).toBe(true);
      }),
    );
  });

  it('are those of a report, unless the total is half a cent', () => {
    fc.assert(
      fc.property(amounts, fc.array(fc.option(cell, { nil: undefined })), (exact, near) => {
        const twiceRest = (sumOf(exact) % CENT_PICO) * 2n;
        fc.pre(twiceRest !== CENT_PICO && twiceRest !== -CENT_PICO);
        const texts = near.map((one) => (one === undefined ? undefined : decimalFromPico(one)));
        const shown = footedCents(exact.map(decimalFromPico), texts).map(picoOf);
        expect(shown).toEqual(footCents(exact, near).partsPico);
      }),
    );
  });

  it('in a column of totals are the sums of the cents beside them, where those are the totals rounded and foot', () => {
    const columns = fc
      .integer({ min: 1, max: 8 })
      .chain((rows) =>
        fc.array(fc.array(cell, { minLength: rows, maxLength: rows }), { minLength: 1, maxLength: 4 }),
      );
    let alike = 0;
    fc.assert(
      fc.property(columns, (parts) => {
        const totals = (parts[0] ?? []).map((_, at) => sumOf(parts.map((column) => column[at] ?? 0n)));
        const texts = totals.map(decimalFromPico);
        const table = footedTable(
          parts.map((column) => column.map(decimalFromPico)),
          texts,
        ).map((column) => column.cents);
        const [cents, beside] = [table.at(-1) ?? [], table.slice(0, -1)];
        const across = totals.map((_, at) => exactSum(beside.map((column) => column[at] ?? '0')));
        expect(usd(exactSum(cents))).toBe(usd(exactSum(texts)));
        expect(cents.every((text, at) => isLessThanACentOff(text, totals[at] ?? 0n))).toBe(true);
        if (usd(exactSum(across)) !== usd(exactSum(texts))) return;
        if (!across.every((text, at) => isLessThanACentOff(text, totals[at] ?? 0n))) return;
        alike += 1;
        expect(cents).toEqual(across);
      }),
    );
    expect(alike).toBeGreaterThan(20);
  });

  it('of one amount are those that it has alone, if that is asked for and the total is not half a cent below zero', () => {
    fc.assert(
      fc.property(cell, fc.array(cell, { maxLength: 6 }), (one, others) => {
        const total = sumOf([one, ...others]);
        fc.pre(total >= 0n || -total % CENT_PICO !== CENT_PICO / 2n);
        const texts = [one, ...others].map(decimalFromPico);
        const [alone] = footedCents(texts.slice(0, 1));
        const cents = footedCents(texts, [alone]);
        expect(cents[0]).toBe(alone);
        expect(usd(exactSum(cents))).toBe(usd(exactSum(texts)));
      }),
    );
    const texts = ['10.006', '1.007', '1.007'];
    expect(footedCents(texts)).not.toEqual(footedCents(texts, ['10.01']));
  });
});
