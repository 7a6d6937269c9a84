import { describe, expect, it } from 'vitest';
import { picoFromDecimal } from '../../../domain/money.js';
import { compilePolicies, type JudgedCall, judgeCall } from '../../../domain/policies/judge.js';
import type { Policy } from '../../../domain/policies/policy.js';

const CALL: JudgedCall = {
  model: 'gpt-4o',
  prompts: () => [],
  environment: null,
  keyPrefix: 'tu_live_0123456789',
  costPico: 0n,
};
const judge = (policy: Policy, call: Partial<JudgedCall>) =>
  judgeCall(compilePolicies([policy]), { ...CALL, ...call });

describe('a call is judged', () => {
  it('by an exact threshold: 0.29 USD reaches 29 cents', () => {
    const policy: Policy = {
      id: 4,
      type: 'approval_required_threshold_cents',
      config: { threshold_cents: 29 },
      enabled: true,
      skipped: [],
    };
    expect(judge(policy, { costPico: picoFromDecimal('0.29') ?? null })).toEqual([
      {
        policyId: 4,
        policyType: 'approval_required_threshold_cents',
        severity: 'medium',
        message: 'The call cost $0.29; calls of $0.29 and more need approval.',
        details: { cost_cents: 29, threshold_cents: 29 },
      },
    ]);
    expect(judge(policy, { costPico: picoFromDecimal('0.289999999999') ?? null })).toEqual([]);
    expect(judge(policy, { costPico: null })).toEqual([]);
  });

  it('by patterns in the first 512 characters', () => {
    const policy: Policy = {
      id: 1,
      type: 'banned_patterns',
      config: { regexes: ['(?=x)', '(?i)SECRET'] },
      enabled: true,
      skipped: [{ index: 0, code: 'invalid', reason: '' }],
    };
    expect(judge(policy, { prompts: () => ['hello', `a secret`] })[0]?.details).toEqual({
      pattern_index: 1,
      match_offset: 2,
    });
    expect(judge(policy, { prompts: () => [`${'a'.repeat(507)}secret`] })).toEqual([]);
  });
});
