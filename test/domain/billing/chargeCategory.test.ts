import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { categoryOfLabel } from '../../../domain/billing/billedRow.js';

describe('the category of a charge without a category field', () => {
  it('is never usage when the amount is negative', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.boolean(),
        fc.bigInt({ min: -(10n ** 20n), max: -1n }),
        (label, recognised, pico) => {
          expect(categoryOfLabel(label, recognised, pico)).not.toBe('usage');
        },
      ),
    );
  });

  it('follows the label only where no grammar knows the label', () => {
    expect(categoryOfLabel('Promotional credit', false, -3_250_000_000_000n)).toBe('credit');
    expect(categoryOfLabel('Refund of 2026-09', false, -1n)).toBe('refund');
    expect(categoryOfLabel('VAT (25%)', false, 10n)).toBe('tax');
    expect(categoryOfLabel('credit-scorer-1, input', true, 10n)).toBe('usage');
    expect(categoryOfLabel('gpt-4o, input', true, -10n)).toBe('adjustment');
  });

  it('is usage for an unknown label, so that it is shown until explained', () => {
    expect(categoryOfLabel('Quantum flux', false, 10n)).toBe('usage');
  });
});
