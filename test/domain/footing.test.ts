import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footCents } from '../../domain/footing.js';
import { centsFromPico } from '../../domain/money.js';

const CENT = 10_000_000_000n;
const amounts = fc.array(
  fc.oneof(
    fc.bigInt({ min: 0n, max: 3n * CENT }),
    fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    fc.constantFrom(CENT / 2n, 4_000_000_000n, -CENT / 2n),
  ),
  { maxLength: 30 },
);
const sum = (list: readonly bigint[]) => list.reduce((total, one) => total + one, 0n);

describe('amounts that foot', () => {
  it('add up to their exact sum, rounded once, and each is less than a cent from what it was', () => {
    fc.assert(
      fc.property(amounts, (exact) => {
        const { totalPico, partsPico } = footCents(exact);
        expect(totalPico).toBe(centsFromPico(sum(exact)) * CENT);
        expect(sum(partsPico)).toBe(totalPico);
        partsPico.forEach((part, index) => {
          const off = part - (exact[index] ?? 0n);
          expect(part % CENT).toBe(0n);
          expect(off < CENT && off > -CENT).toBe(true);
        });
      }),
    );
  });

  it('leave whole cents unchanged', () => {
    expect(footCents([5n * CENT, 0n, 2n * CENT]).partsPico).toEqual([5n * CENT, 0n, 2n * CENT]);
  });

  it('divide credits as they divide charges', () => {
    const half = -CENT / 2n;
    expect(footCents([half, half, half])).toEqual({ totalPico: -2n * CENT, partsPico: [0n, -CENT, -CENT] });
  });

  it('assign a cent that three parts make up together to the first of them', () => {
    const third = 4_000_000_000n;
    expect(footCents([third, third, third])).toEqual({ totalPico: CENT, partsPico: [CENT, 0n, 0n] });
  });
});
