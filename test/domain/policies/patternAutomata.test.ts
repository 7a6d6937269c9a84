import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AUTOMATA_MAX,
  buildTables,
  type PatternTables,
  patternId,
  patternsVersion,
  searchTables,
} from '../../../domain/policies/patternAutomata.js';
import { PatternSet, scannedPart } from '../../../domain/policies/patternSet.js';
import type { SkippedPattern } from '../../../domain/policies/policy.js';
import { anyPattern, anyText, findPlainly, writePattern } from './support/plainPattern.js';

function tablesOf(regexes: readonly string[], skipped: readonly SkippedPattern[] = []) {
  const work = buildTables(regexes, skipped);
  let turns = 0;
  for (;;) {
    const turn = work.next();
    if (turn.done) return { tables: turn.value, turns };
    turns += 1;
  }
}

/** As the API searches: by RE2. */
const searchSet = (regexes: readonly string[], text: string) => PatternSet.of(regexes, [])?.findIn(text);
const entriesOf = ({ automata }: PatternTables) => automata.reduce((sum, { next }) => sum + next.length, 0);

describe('the tables of banned patterns', () => {
  it('find the pattern and the place that RE2 finds, and that the rule names, in any text', () => {
    fc.assert(
      fc.property(
        fc.array(anyPattern, { minLength: 1, maxLength: 4 }),
        fc.array(anyText(14), { maxLength: 4 }),
        (patterns, texts) => {
          const regexes = patterns.map(writePattern);
          const { tables } = tablesOf(regexes);
          expect(tables.notEvaluated).toEqual([]);
          for (const text of texts.map(scannedPart)) {
            const found = searchTables(tables.automata, text);
            expect(found).toEqual(searchSet(regexes, text));
            const first = patterns.findIndex((pattern) => findPlainly(pattern, text) !== undefined);
            expect(found?.patternIndex ?? -1).toBe(first);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('find what RE2 finds with usual patterns in prompts of 512 characters', () => {
    const regexes = [
      '(?i)\\b(confidential|secret)\\b',
      'sk-[A-Za-z0-9]{20,}',
      '\\b\\d{3}-\\d{2}-\\d{4}\\b',
      '[\\w.+-]+@[\\w-]+\\.[\\w.]+',
      '\\b(?:\\d[ -]*?){13,16}\\b',
      '-----BEGIN [A-Z ]*PRIVATE KEY-----',
      '(?i)project.{0,20}(falcon|eagle)',
    ];
    const { tables } = tablesOf(regexes);
    expect(tables.notEvaluated).toEqual([]);
    const pieces = ['secret', 'sk-abcdefghij0123456789', '123-45-6789', 'a@b.example', '4111 1111 1111 1111'];
    const word = fc.constantFrom(
      ...pieces,
      'project',
      'Eagle',
      '\n',
      '-',
      '7',
      'word',
      ['-----BEGIN RSA', 'PRIVATE KEY-----'].join(' '),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), fc.constantFrom('', ' '), (words, glue) => {
        const text = scannedPart(words.join(glue));
        expect(searchTables(tables.automata, text)).toEqual(searchSet(regexes, text));
      }),
      { numRuns: 300 },
    );
  });

  it('leave out skipped patterns and keep the indexes of the others', () => {
    const { tables } = tablesOf(['(?=a)', 'b'], [{ index: 0, code: 'invalid', reason: '' }]);
    expect(searchTables(tables.automata, 'ab')).toEqual({ patternIndex: 1, offset: 1 });
    expect(tablesOf([]).tables).toEqual({ automata: [], notEvaluated: [] });
  });

  it('name a pattern that would need too large a table, and evaluate the others', () => {
    // Which of the last sixteen characters were an a cannot be known in fewer than 2^16 states.
    const { tables } = tablesOf(['x', 'a(a|b){15}(c(a|b){15}d|e)', 'y']);
    expect(tables.notEvaluated).toEqual([]);
    const hard = tablesOf(['x', '(a|b){15}a(a|b)*c', 'y']).tables;
    expect(hard.notEvaluated).toEqual([1]);
    expect(searchTables(hard.automata, 'a y')).toEqual({ patternIndex: 2, offset: 2 });
  });

  it('are small and are built in turns, however hostile the list is', () => {
    const hostile = Array.from({ length: 100 }, (_, at) => `(a|b){${15 + (at % 40)}}a(a|b|${at})*c${at}`);
    const { tables, turns } = tablesOf(hostile);
    expect(tables.automata.length).toBeLessThanOrEqual(AUTOMATA_MAX);
    expect(entriesOf(tables)).toBeLessThanOrEqual(120_000);
    expect(tables.notEvaluated.length).toBeGreaterThan(50);
    expect(turns).toBeGreaterThan(20);
  });

  it('share one table between many words', () => {
    const words = Array.from({ length: 100 }, (_, at) => `word${at}x`);
    const { tables } = tablesOf(words);
    expect(tables.notEvaluated).toEqual([]);
    expect(tables.automata).toHaveLength(1);
    expect(searchTables(tables.automata, 'a word77x')).toEqual({ patternIndex: 77, offset: 2 });
  });
});

describe('the version of a list of patterns', () => {
  it('changes with the patterns, their order, and the skipped ones', () => {
    const skip = (index: number): SkippedPattern => ({ index, code: 'slow', reason: 'any' });
    const versions = [
      patternsVersion(['a', 'b'], []),
      patternsVersion(['b', 'a'], []),
      patternsVersion(['a'], []),
      patternsVersion(['a', 'b'], [skip(1)]),
    ];
    expect(new Set(versions).size).toBe(4);
    expect(patternsVersion(['a', 'b'], [])).toBe(versions[0]);
    expect(patternId('a')).not.toBe(patternId('b'));
  });
});
