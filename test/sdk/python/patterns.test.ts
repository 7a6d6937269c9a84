import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promptsOfPayload } from '../../../domain/events/prompts.js';
import { PatternTables } from '../../../sdk/js/src/patterns.js';
import { anyPattern, writePattern } from '../../domain/policies/support/plainPattern.js';
import { anyBody, judgeByApi, PATTERN_CASES, servedOf } from '../../support/patternCases.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { LineProgram } from '../../support/python.js';

let python: LineProgram;
beforeAll(() => {
  python = new LineProgram('test/sdk/python/programs/facts.py');
});
afterAll(() => python?.close());

interface Verdict {
  pattern_index: number | null;
  match_offset?: number;
}

describe('banned patterns in the Python package', () => {
  it.each(PATTERN_CASES.requests)(
    'reads the prompts of the shared case: $name',
    async ({ body, prompts }) => {
      expect(await python.ask(['prompts', body])).toEqual(prompts);
    },
  );

  it.each(PATTERN_CASES.lists)('finds what the shared case has: $name', async ({ served, searches }) => {
    for (const { text, pattern_index, match_offset } of searches) {
      const found = pattern_index === null ? null : [pattern_index, match_offset];
      expect(await python.ask(['search', { served, text }]), text).toEqual(found);
    }
  });

  it('has the verdict of the API and of the JavaScript package for any patterns and any request', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyPattern, { minLength: 1, maxLength: 3 }),
        anyBody,
        async (patterns, body) => {
          const regexes = patterns.map(writePattern);
          const served = servedOf(regexes);
          const verdict = await python.ask<Verdict>(['judge', { served, body }]);
          expect(verdict).toEqual(new PatternTables(served).judge(body));
          const { pattern_index, match_offset } = verdict;
          const details = pattern_index === null ? undefined : { pattern_index, match_offset };
          expect(details).toEqual(judgeByApi(regexes, promptsOfPayload(body)));
        },
      ),
      { numRuns: propertyRuns(300) },
    );
  });

  it('shows that not every pattern, or not every prompt, was evaluated', async () => {
    const served = { ...servedOf(['a', 'b']), not_evaluated: [1] };
    const judge = (tables: object, body: object) => python.ask(['judge', { served: tables, body }]);
    expect(await judge(served, { prompt: 'b?' })).toMatchObject({ pattern_index: 1 });
    expect(await judge(served, { prompt: 'c' })).toMatchObject({ pattern_index: null, complete: false });
    const many = Array.from({ length: 1_001 }, (_, at) => `${at}`);
    const tables = servedOf(['1000']);
    expect(await judge(tables, { input: many })).toMatchObject({ pattern_index: null, complete: false });
    expect(await judge(tables, { input: many.slice(1) })).toMatchObject({ pattern_index: 0, complete: true });
  });

  it('refuses tables that a search could leave', async () => {
    const served = servedOf(['ab']) as { automata: Record<string, number[]>[] };
    const [automaton] = served.automata as [Record<string, number[]>];
    const broken = [
      { next: [...(automaton.next as number[]).slice(0, -1), 99] },
      { next: (automaton.next as number[]).slice(1) },
      { next: (automaton.next as number[]).map((state) => -state) },
      { classes: [99, ...(automaton.classes as number[]).slice(1)] },
      { begins_first: [] },
      { begins: null },
    ];
    for (const fault of broken)
      expect(await python.ask(['is_refused', { ...served, automata: [{ ...automaton, ...fault }] }])).toBe(
        true,
      );
    expect(await python.ask(['is_refused', { rules: [] }])).toBe(true);
    expect(await python.ask(['is_refused', served])).toBe(false);
  });
});
