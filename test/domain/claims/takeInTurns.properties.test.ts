import fc from 'fast-check';
import { expect, it } from 'vitest';
import { takeInTurns } from '../../../domain/claims/evidence/documentTexts.js';

const groups = fc
  .array(fc.integer({ min: 0, max: 30 }), { maxLength: 12 })
  .map((sizes) =>
    sizes.map((size, group) => Array.from({ length: size }, (_, item) => group * 1_000 + item)),
  );

it('takes as many as there are up to the limit, each once and in order, and leaves no group out while one has two', () => {
  fc.assert(
    fc.property(groups, fc.integer({ min: 0, max: 60 }), (given, max) => {
      const taken = takeInTurns(given, max);
      const all = given.flat();
      expect(taken).toHaveLength(Math.min(max, all.length));
      expect(taken).toEqual(all.filter((item) => taken.includes(item)));
      const counts = given.map(
        (_, group) => taken.filter((item) => Math.floor(item / 1_000) === group).length,
      );
      const most = Math.max(0, ...counts);
      for (const [at, group] of given.entries())
        expect(counts[at]).toBeGreaterThanOrEqual(Math.min(group.length, most - 1));
    }),
  );
});
