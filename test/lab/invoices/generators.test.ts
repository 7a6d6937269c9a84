import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { GeneratedInvoice } from '../../../lab/generators/invoiceTruth.js';
import { collect, expectFooted, GENERATORS } from './footing.js';

describe.each(Object.entries(GENERATORS))('the %s generator of invoices', (_name, generate) => {
  it('makes the same bytes of the same seed, and others of another', async () => {
    const one = await collect(generate(7, 4));
    const same = await collect(generate(7, 4));
    const other = await collect(generate(8, 2));
    const hashes = (list: GeneratedInvoice[]) =>
      list.map(({ pdf, truth }) =>
        createHash('sha256').update(pdf).update(JSON.stringify(truth)).digest('hex'),
      );
    expect(hashes(one)).toEqual(hashes(same));
    expect(new Set([...hashes(one), ...hashes(other)]).size).toBe(6);
    expectFooted(one);
  });
});
