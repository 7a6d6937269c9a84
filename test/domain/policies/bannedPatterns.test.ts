import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Violation } from '../../../domain/policies/alert.js';
import { compilePolicies, judgeCall } from '../../../domain/policies/judge.js';
import type { SkippedPattern } from '../../../domain/policies/policy.js';
import { anyPattern, anyText, findPlainly, type Pattern, writePattern } from './support/plainPattern.js';

const ENOUGH = 512;

function judge(regexes: string[], prompts: string[], skipped: SkippedPattern[] = []): readonly Violation[] {
  const policies = compilePolicies([
    { id: 2, type: 'banned_patterns', config: { regexes }, enabled: true, skipped },
  ]);
  const call = { model: 'm', environment: null, keyPrefix: null, costPico: null, prompts: () => prompts };
  return judgeCall(policies, call);
}
const detailsOf = (...asked: Parameters<typeof judge>) => judge(...asked).map(({ details }) => details);
const found = (pattern_index: number, match_offset: number) => [{ pattern_index, match_offset }];
const skip = (index: number): SkippedPattern => ({ index, code: 'invalid', reason: '' });

/** The rule as it is written: the first prompt in which any pattern matches, by the first that does. */
function judgePlainly(patterns: readonly (Pattern | 'skipped')[], prompts: readonly string[]): object[] {
  for (const prompt of prompts) {
    const kept = [...prompt].filter((char) => /^[\t\n\r -~]$/.test(char));
    const text = kept.slice(0, ENOUGH).join('');
    for (const [index, pattern] of patterns.entries()) {
      const offset = pattern === 'skipped' ? undefined : findPlainly(pattern, text);
      if (offset !== undefined) return found(index, offset);
    }
  }
  return [];
}

describe('banned patterns', () => {
  it('flag a call by the rule, whatever patterns, prompts and flags there are', () => {
    const patterns = fc.array(
      fc.oneof({ weight: 6, arbitrary: anyPattern }, fc.constant('skipped' as const)),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    fc.assert(
      fc.property(patterns, fc.array(anyText(14), { maxLength: 4 }), (listed, prompts) => {
        const regexes = listed.map((one) => (one === 'skipped' ? '(?=a)' : writePattern(one)));
        const skipped = listed.flatMap((one, index) => (one === 'skipped' ? [skip(index)] : []));
        expect(detailsOf(regexes, prompts, skipped)).toEqual(judgePlainly(listed, prompts));
      }),
      { numRuns: 1_000 },
    );
  });

  it('see the first 512 characters of what is left after stripping, and not one more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 505, max: 516 }), fc.nat(40), (before, foreign) => {
        const prompt = `${'é'.repeat(foreign)}${'x'.repeat(before)}😀bad`;
        const isSeen = before + 'bad'.length <= ENOUGH;
        expect(detailsOf(['bad'], [prompt])).toEqual(isSeen ? found(0, before) : []);
      }),
    );
  });

  it('are searched for in each prompt on its own: a match across two prompts is no match', () => {
    expect(detailsOf(['ab'], ['a', 'b'])).toEqual([]);
    expect(detailsOf(['^b$'], ['a', 'b'])).toEqual(found(0, 0));
  });

  it('take flags: case, a point for every character, lines', () => {
    expect(detailsOf(['(?i)secret'], ['a SeCrEt'])).toEqual(found(0, 2));
    expect(detailsOf(['secret'], ['a SeCrEt'])).toEqual([]);
    expect(detailsOf(['(?s)a.b'], ['a\nb'])).toEqual(found(0, 0));
    expect(detailsOf(['a.b'], ['a\nb'])).toEqual([]);
    expect(detailsOf(['(?m)^b$'], ['a\nb\nc'])).toEqual(found(0, 2));
    expect(detailsOf(['^b$'], ['a\nb\nc'])).toEqual([]);
    expect(detailsOf(['a(?i)b(?-i)c'], ['aBc'])).toEqual(found(0, 0));
    expect(detailsOf(['(?i:A)b'], ['ab aB'])).toEqual(found(0, 0));
  });

  it('match once for a call, by the first prompt and the first pattern, and state where, without the matched text', () => {
    const [violation, ...more] = judge(['two', 'w'], ['nothing', 'see one and two', 'two']);
    expect(more).toEqual([]);
    expect(violation).toEqual({
      policyId: 2,
      policyType: 'banned_patterns',
      severity: 'high',
      message: 'A prompt of the call matches the banned pattern at config.regexes[0].',
      details: { pattern_index: 0, match_offset: 12 },
    });
  });

  it('that let a backtracking search try without end are searched to the end', () => {
    const almost = `${'a'.repeat(511)}!`;
    expect(detailsOf(['(a+)+$', '(a|aa)+$', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$'], [almost])).toEqual(
      [],
    );
    expect(detailsOf(['(a+)+$'], [almost, 'a'.repeat(600)])).toEqual(found(0, 0));
  });

  it('judge nothing where the list is empty, where all of it is passed over, and where the policy is off', () => {
    expect(judge([], ['x'])).toEqual([]);
    expect(judge(['(?=x)', '('], ['x'], [skip(0), skip(1)])).toEqual([]);
    const prompts = () => {
      throw new Error('prompts are not to be looked for');
    };
    const off = compilePolicies([
      { id: 1, type: 'banned_patterns', config: { regexes: ['x'] }, enabled: false, skipped: [] },
      { id: 2, type: 'approved_models', config: { models: ['m'] }, enabled: true, skipped: [] },
    ]);
    expect(
      judgeCall(off, { model: 'm', environment: null, keyPrefix: null, costPico: null, prompts }),
    ).toEqual([]);
  });
});
