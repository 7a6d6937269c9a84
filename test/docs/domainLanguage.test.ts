import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');
const ENTRIES_MAX = 80;
const ENTRIES = [
  ...readFileSync(path.join(ROOT, 'docs/domain-language.md'), 'utf8').matchAll(/^\| (.+?) \| (.+) \|$/gm),
]
  .map(([, word = '', meaning = '']) => ({ word, meaning }))
  .filter(({ word }) => word !== 'word');

describe('the glossary', () => {
  it(`has at most ${ENTRIES_MAX} entries, one for each word`, () => {
    expect(ENTRIES.length).toBeGreaterThan(0);
    expect(ENTRIES.length).toBeLessThanOrEqual(ENTRIES_MAX);
    expect(new Set(ENTRIES.map(({ word }) => word.toLowerCase())).size).toBe(ENTRIES.length);
  });

  it('explains each word in one sentence', () => {
    const others = ENTRIES.filter(
      ({ meaning }) => !/^[A-Z`1].*\.$/.test(meaning) || /[.!?]\s+[A-Z]/.test(meaning),
    );
    expect(others.map(({ word, meaning }) => `${word}: ${meaning}`)).toEqual([]);
  });
});
