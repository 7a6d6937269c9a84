import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, parseJson } from '../../domain/parseJson.js';

const nested = (depth: number, inner: string) => '['.repeat(depth) + inner + ']'.repeat(depth);

describe('a JSON body', () => {
  it('is refused where it nests deeper than the limit, whatever its strings contain', () => {
    const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', ']', '{', 'é', 'a') });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: JSON_DEPTH_MAX + 3 }), (inside, depth) => {
        const body = Buffer.from(nested(depth, JSON.stringify(inside)));
        if (depth > JSON_DEPTH_MAX) expect(() => parseJson(body)).toThrow('nests deeper');
        else expect((parseJson(body) as unknown[]).flat(Number.POSITIVE_INFINITY)).toEqual([inside]);
      }),
    );
  });

  it('is refused as no JSON where a string does not end', () => {
    for (const text of ['"', '"\\"', '["a', `"${'['.repeat(100)}`])
      expect(() => parseJson(Buffer.from(text))).toThrow('the body is not JSON');
  });
});
