import { describe, expect, it } from 'vitest';
import { RULE_TYPES } from '../../../../domain/policies/enforcement/rule.js';
import { readRuleCases, replayVerdicts } from '../../../support/ruleCases.js';

const { prices, cases } = readRuleCases();

describe('the table of rule cases that the wrappers share (sdk/ruleCases.json)', () => {
  it.each(cases)('the replay agrees: $name', ({ rules, calls }) => {
    const verdicts = replayVerdicts(
      rules,
      calls.map(({ call }) => call),
      prices,
    );
    expect(verdicts).toEqual(calls.map(({ expected }) => expected));
  });

  it('has every type of rule in both modes, and every verdict', () => {
    const rules = cases.flatMap((one) => one.rules);
    const verdicts = new Set(cases.flatMap((one) => one.calls.map(({ expected }) => expected.verdict)));
    for (const type of RULE_TYPES)
      expect(
        rules.some((rule) => rule.type === type && rule.mode === 'block'),
        type,
      ).toBe(true);
    expect([...verdicts].sort()).toEqual(['allowed', 'blocked', 'downgraded']);
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });
});
