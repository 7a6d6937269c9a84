import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { promptsOfPayload } from '../../../domain/events/prompts.js';
import { scannedPart } from '../../../domain/policies/patternSet.js';
import { PatternTables } from '../../../sdk/js/src/patterns.js';
import { promptsOf } from '../../../sdk/js/src/prompts.js';
import { anyPattern, writePattern } from '../../domain/policies/support/plainPattern.js';
import { anyBody, judgeByApi, PATTERN_CASES, servedOf } from '../../support/patternCases.js';

describe('the shared cases of patterns', () => {
  it.each(PATTERN_CASES.requests)('read the same prompts in both: $name', ({ body, prompts }) => {
    expect(promptsOf(body)).toEqual(prompts);
    expect(promptsOfPayload(body).map(scannedPart)).toEqual(prompts);
  });

  it.each(PATTERN_CASES.lists)('find the same in both: $name', ({ regexes, served, searches }) => {
    expect(servedOf(regexes)).toEqual(served);
    for (const { text, pattern_index, match_offset } of searches) {
      const found =
        pattern_index === null ? undefined : { patternIndex: pattern_index, offset: match_offset };
      expect(new PatternTables(served).search(text), text).toEqual(found);
      const details = found && { pattern_index, match_offset };
      // The API drops blank prompts before it searches.
      if (text.trim() !== '') expect(judgeByApi(regexes, [text]), text).toEqual(details);
    }
  });
});

describe("the wrapper's verdict", () => {
  it('is that of the API for any patterns and any request', () => {
    fc.assert(
      fc.property(fc.array(anyPattern, { minLength: 1, maxLength: 3 }), anyBody, (patterns, body) => {
        const regexes = patterns.map(writePattern);
        const tables = new PatternTables(servedOf(regexes));
        const verdict = tables.judge(body);
        const expected = judgeByApi(regexes, promptsOfPayload(body));
        const { pattern_index, match_offset } = verdict;
        expect(pattern_index === null ? undefined : { pattern_index, match_offset }).toEqual(expected);
        expect(verdict.complete).toBe(true);
        // Of prompts that were searched before, the result is remembered.
        expect(tables.judge(body)).toEqual(verdict);
      }),
      { numRuns: 1_000 },
    );
  });

  it('shows that not every pattern, or not every prompt, was evaluated', () => {
    const partly = new PatternTables({ ...servedOf(['a', 'b']), not_evaluated: [1] });
    expect(partly.judge({ prompt: 'b?' })).toMatchObject({ pattern_index: 1 });
    expect(partly.judge({ prompt: 'c' })).toMatchObject({ pattern_index: null, complete: false });
    const many = Array.from({ length: 1_001 }, (_, at) => `${at}`);
    const tables = new PatternTables(servedOf(['1000']));
    expect(tables.judge({ input: many })).toMatchObject({ pattern_index: null, complete: false });
    expect(tables.judge({ input: many.slice(1) })).toMatchObject({ pattern_index: 0, complete: true });
  });

  it('is not made by tables that a search could leave', () => {
    const served = servedOf(['ab']) as { automata: Record<string, number[]>[] };
    const [automaton] = served.automata as [Record<string, number[]>];
    const broken = [
      { next: [...(automaton.next as number[]).slice(0, -1), 99] },
      { next: (automaton.next as number[]).slice(1) },
      { classes: [99, ...(automaton.classes as number[]).slice(1)] },
      { begins_first: [] },
    ];
    for (const fault of broken)
      expect(() => new PatternTables({ ...served, automata: [{ ...automaton, ...fault }] })).toThrow('table');
    expect(() => new PatternTables({ rules: [] })).toThrow('form');
  });
});
