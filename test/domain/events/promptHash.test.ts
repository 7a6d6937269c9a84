import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinPromptHashes, promptHashOf } from '../../../domain/events/prompts.js';

const prompts = fc.array(fc.string({ unit: 'grapheme-ascii', minLength: 1 }), { minLength: 1, maxLength: 4 });
const hashes = fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { nil: null });

describe('the hash that identifies calls with equal prompts', () => {
  it('is the beginning of the sha256 of the prompts, and absent where there are none', () => {
    expect(promptHashOf([])).toBeNull();
    // printf 'a\037b' | sha256sum
    expect(promptHashOf(['a', 'b'])).toBe(BigInt.asIntN(64, 0xf04cdced9736a69dn));
  });

  it('is equal for equal prompts in equal order alone, whichever text they are', () => {
    fc.assert(
      fc.property(prompts, prompts, (one, other) => {
        const isEqual = JSON.stringify(one) === JSON.stringify(other);
        expect(promptHashOf(one) === promptHashOf([...other])).toBe(isEqual);
        expect(promptHashOf([one.join(''), ''])).not.toBe(promptHashOf(one));
      }),
    );
  });

  it('of a call with several reports does not depend on which came first', () => {
    fc.assert(
      fc.property(hashes, hashes, hashes, (a, b, c) => {
        expect(joinPromptHashes(a, b)).toBe(joinPromptHashes(b, a));
        expect(joinPromptHashes(joinPromptHashes(a, b), c)).toBe(joinPromptHashes(a, joinPromptHashes(b, c)));
        expect(joinPromptHashes(a, a)).toBe(a);
        expect(joinPromptHashes(a, null)).toBe(a);
      }),
    );
  });
});
