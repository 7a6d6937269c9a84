/** Two services of one model: what one of them does not send, or counts otherwise, is another share of each class. */
import { describe, expect, it } from 'vitest';
import { findingsOf, isBetween, linesFor, type SeriesShape, type Use, useOf } from './support.js';

/** The second service: half of the other's calls, with much more output and cached input; never the same share. */
const secondOf = (at: number): Use => {
  const use = useOf(at);
  return {
    input: Math.round(use.input * 0.25),
    cache_read: Math.round(use.cache_read * (0.6 + 0.015 * Math.sin(at))),
    output: use.output,
  };
};
const bothOf = (at: number): Use => {
  const [one, other] = [useOf(at), secondOf(at)];
  return {
    input: one.input + other.input,
    cache_read: one.cache_read + other.cache_read,
    output: one.output + other.output,
  };
};
const shape = (seen: (at: number) => Use): SeriesShape => ({
  bill: (_, at) => linesFor(bothOf(at)),
  seen: (_, at) => seen(at),
});
const SPANS = [
  [5, 12],
  [10, 19],
  [0, 19],
] as const;

describe('of two services', () => {
  it.each(SPANS)(
    'one that counts cached tokens as input is the client’s, from day %i to %i',
    (first, last) => {
      const findings = findingsOf(
        shape((at) => {
          const use = bothOf(at);
          const inside = isBetween(at, first, last) ? secondOf(at).cache_read : 0;
          return { ...use, input: use.input + inside };
        }),
      );
      expect(findings.map(({ kind, variant, blame }) => [kind, variant, blame])).toEqual([
        ['client_metering_error', 'some_input_includes_cached', 'own'],
      ]);
    },
  );

  it.each(SPANS)(
    'one that sends nothing makes no undercharge and no alarm, from day %i to %i',
    (first, last) => {
      const findings = findingsOf(shape((at) => (isBetween(at, first, last) ? useOf(at) : bothOf(at))));
      expect(findings.filter(({ direction }) => direction === 'undercharge')).toEqual([]);
      expect(findings.filter(({ blame }) => blame === 'provider')).toEqual([]);
      if (last - first < 10) expect(findings.filter(({ critical }) => critical)).toEqual([]);
    },
  );

  it.each([
    ['caches nothing', { input: 0.6, output: 0.7 }],
    ['reads long prompts and answers briefly', { input: 1, output: 0.03 }],
    ['is small and caches nothing', { input: 0.15, output: 0.1 }],
  ])('one that %s makes no alarm on the days on which it sends nothing', (_, share) => {
    const withSecond = (at: number): Use => {
      const use = useOf(at);
      const scatter = 1 + 0.1 * Math.sin(at);
      return {
        input: use.input + Math.round(use.input * share.input * scatter),
        cache_read: use.cache_read,
        output: use.output + Math.round(use.output * share.output),
      };
    };
    for (const [first, last] of [
      [8, 8],
      [8, 9],
      [5, 12],
    ] as const) {
      const [finding, more] = findingsOf({
        bill: (_lines, at) => linesFor(withSecond(at)),
        seen: (use, at) => (isBetween(at, first, last) ? use : withSecond(at)),
      });
      expect(more).toBeUndefined();
      expect(finding).toMatchObject({ kind: 'unobserved_usage', blame: 'none', critical: false });
    }
  });

  it('a count that is wrong where the answers were all seen is an alarm', () => {
    const findings = findingsOf({
      bill: (_lines, at) => {
        const use = useOf(at);
        const factor = 1 + 0.13 * (at % 4) + 0.2;
        return linesFor(at === 8 ? { ...use, input: Math.round(use.input * factor) } : use);
      },
    });
    expect(findings.map(({ kind }) => kind)).not.toContain('unobserved_usage');
    expect(findings.length).toBe(1);
  });
});
