import { describe, expect, it } from 'vitest';
import { collect, expectFooted, GENERATORS } from './footing.js';

const EXPECTED = [
  'vat',
  'two_taxes',
  'reverse_charge',
  'discount',
  'applied_balance',
  'negative_line',
  'zero_line',
  'proration',
  'prepaid_purchase',
  'line_period',
  'receipt',
  'credit_note',
  'decimal_comma',
  'two_tables',
  'several_pages',
  'unrounded',
  'lost_glyphs',
  'contradiction_line',
  'contradiction_lines_sum',
  'contradiction_tax',
  'contradiction_total',
];

describe.each(Object.entries(GENERATORS))('the whole corpus of the %s generator', (_name, generate) => {
  it('has eight suppliers, every feature, and sums that are false only where they are planted', async () => {
    const invoices = await collect(generate(1));
    expect(invoices.length).toBeGreaterThanOrEqual(80);
    expect(new Set(invoices.map(({ truth }) => truth.supplier)).size).toBe(8);
    const features = new Set(invoices.flatMap(({ truth }) => truth.features));
    expect(EXPECTED.filter((feature) => !features.has(feature))).toEqual([]);
    expect(Math.max(...invoices.map(({ truth }) => truth.pages))).toBeGreaterThanOrEqual(5);
    expect(new Set(invoices.map(({ truth }) => truth.currency)).size).toBeGreaterThanOrEqual(6);
    expectFooted(invoices);
  });
});
