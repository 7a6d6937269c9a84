import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawn } from '../../../domain/policies/inspectPatterns.js';
import { PatternEngine, searchWithoutMemory } from '../../../domain/policies/patternSet.js';
import { anyPattern, anyText, writePattern } from './support/plainPattern.js';

/** Patterns with counters, and texts that keep them counting: nearly each character creates a new state. */
const COUNTING = ['x.{150}y', '(a|b)*a(a|b){30}c', '[a-m].{60}[0-9]'];
const textOf = (seed: number) => drawn(seed, seed % 2 ? 'xzab' : 'abcxyzm 17');

describe('several patterns as one search', () => {
  it('find the same with memory and without', () => {
    fc.assert(
      fc.property(
        fc.array(anyPattern, { minLength: 1, maxLength: 5 }),
        fc.array(anyText(20), { minLength: 1, maxLength: 5 }),
        (patterns, texts) => {
          const regexes = patterns.map(writePattern);
          const [engine, plain] = [new PatternEngine(regexes), searchWithoutMemory(regexes)];
          for (const text of texts) expect(engine.match(text)).toEqual(plain(text));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('free their memory where it becomes too much, try again later, and find the same meanwhile', () => {
    const [engine, plain] = [new PatternEngine(COUNTING), searchWithoutMemory(COUNTING)];
    const rests: boolean[] = [];
    for (let seed = 1; seed <= 400; seed += 1) {
      const text = textOf(seed);
      expect(engine.match(text), `text ${seed}`).toEqual(plain(text));
      rests.push(engine.isResting);
    }
    expect(rests).toContain(true);
    // The engine rested, and was used again later.
    expect(rests.lastIndexOf(false)).toBeGreaterThan(rests.indexOf(true));
  });

  it('never rest for patterns whose memory stays small', () => {
    const engine = new PatternEngine([
      '(?i)secret',
      '\\b\\d{3}-\\d{2}-\\d{4}\\b',
      '(?i)ignore.{0,50}instructions',
    ]);
    for (let seed = 1; seed <= 300; seed += 1) {
      engine.match(textOf(seed));
      expect(engine.isResting).toBe(false);
    }
  });
});
