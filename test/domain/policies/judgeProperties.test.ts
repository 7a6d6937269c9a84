import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Violation } from '../../../domain/policies/alert.js';
import { compilePolicies, type JudgedCall, judgeCall, unjudgedOf } from '../../../domain/policies/judge.js';
import type { Policy, PolicyType } from '../../../domain/policies/policy.js';

const CALL: JudgedCall = {
  model: 'gpt-4o',
  prompts: () => [],
  environment: 'production',
  keyPrefix: 'tu_live_0123456789',
  costPico: 0n,
};

function policyOf(type: PolicyType, config: object, enabled = true): Policy {
  return { id: 7, type, config, enabled, skipped: [] } as unknown as Policy;
}
const judge = (policy: Policy, call: Partial<JudgedCall>): readonly Violation[] =>
  judgeCall(compilePolicies([policy]), { ...CALL, ...call });
const unjudged = (policy: Policy, call: Partial<JudgedCall>) =>
  unjudgedOf(compilePolicies([policy]), { ...CALL, ...call }).map(({ reason }) => reason);

/** Of few letters, so that some words are equal and some are prefixes of others. */
const word = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '-', ' '), minLength: 1, maxLength: 3 });
const foreign = fc.constantFrom('', '', 'é', '\u200b', '😀');

describe('approved models', () => {
  it('flag a call whose model is not among them, character by character, and nothing where there are none', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(word, foreign), { maxLength: 4 }), word, (listed, model) => {
        const models = listed.map(([name, stray]) => name + stray);
        // Calls come stripped, so a stray character in the list is no difference.
        const isApproved = listed.some(([name]) => name === model);
        const flagged = judge(policyOf('approved_models', { models }), { model });
        expect(flagged.map(({ severity, details }) => [severity, details])).toEqual(
          models.length === 0 || isApproved ? [] : [['medium', { model }]],
        );
      }),
    );
  });

  it('accept no pattern: neither a star nor a part of a name matches others', () => {
    for (const models of [['gpt-*'], ['gpt'], ['GPT-4O'], ['gpt-4o-2024-08-06'], ['*']])
      expect(judge(policyOf('approved_models', { models }), { model: 'gpt-4o' }).length, models[0]).toBe(1);
  });
});

describe('the threshold', () => {
  const PICO_PER_CENT = 10_000_000_000n;

  it('flags what costs as much or more, to the last of twelve decimals, and highly from ten times on', () => {
    const threshold = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constantFrom(29, 1_000_000_000));
    // Around the threshold, around ten times of it, and half a cent off.
    const times = fc.constantFrom(0n, 1n, 10n);
    const off = fc.oneof(
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(-PICO_PER_CENT / 2n, PICO_PER_CENT / 2n),
      fc.bigInt({ min: -(10n ** 13n), max: 10n ** 13n }),
    );
    fc.assert(
      fc.property(threshold, times, off, (cents, factor, distance) => {
        const limit = BigInt(cents) * PICO_PER_CENT;
        const costPico = limit * factor + distance < 0n ? 0n : limit * factor + distance;
        const policy = policyOf('approval_required_threshold_cents', { threshold_cents: cents });
        const severity = costPico < limit ? undefined : costPico < 10n * limit ? 'medium' : 'high';
        const [violation] = judge(policy, { costPico });
        expect(violation?.severity).toBe(severity);
        if (!violation) return;
        const { cost_cents: told, threshold_cents: agreed } = violation.details;
        expect(agreed).toBe(cents);
        // Whole cents, which compare to the threshold as the exact cost does.
        expect(told).toBe(Number(costPico / PICO_PER_CENT));
        expect((told as number) >= cents).toBe(true);
        expect((told as number) >= 10 * cents).toBe(severity === 'high');
      }),
      { numRuns: 1_000 },
    );
  });

  it('of 29 cents flags 0.29 USD, which binary fractions make less of', () => {
    expect(0.29 * 100 >= 29).toBe(false);
    const policy = policyOf('approval_required_threshold_cents', { threshold_cents: 29 });
    const [violation] = judge(policy, { costPico: 290_000_000_000n });
    expect(violation).toEqual({
      policyId: 7,
      policyType: 'approval_required_threshold_cents',
      severity: 'medium',
      message: 'The call cost $0.29; calls of $0.29 and more need approval.',
      details: { cost_cents: 29, threshold_cents: 29 },
    });
    expect(judge(policy, { costPico: 289_999_999_999n })).toEqual([]);
    expect(judge(policy, { costPico: 285_000_000_000n })).toEqual([]);
    expect(judge(policy, { costPico: 295_000_000_000n })[0]?.details).toEqual({
      cost_cents: 29,
      threshold_cents: 29,
    });
  });

  it('shows costs with every digit, and with cents in any case', () => {
    const policy = policyOf('approval_required_threshold_cents', { threshold_cents: 220 });
    const said = (costPico: bigint) => judge(policy, { costPico })[0]?.message.split(';')[0];
    expect(said(3_000_000_000_000n)).toBe('The call cost $3.00');
    expect(said(2_900_000_000_000n)).toBe('The call cost $2.90');
    expect(said(2_266_208_120_000n)).toBe('The call cost $2.26620812');
    expect(judge(policy, { costPico: 3_000_000_000_000n })[0]?.message).toContain('calls of $2.20 and more');
  });

  it('of zero judges nothing, and an unknown cost is not judged but listed as unjudged', () => {
    const off = policyOf('approval_required_threshold_cents', { threshold_cents: 0 });
    const on = policyOf('approval_required_threshold_cents', { threshold_cents: 1 });
    expect(judge(off, { costPico: 10n ** 15n })).toEqual([]);
    expect(judge(on, { costPico: null })).toEqual([]);
    expect([
      unjudged(on, { costPico: null }),
      unjudged(on, { costPico: 0n }),
      unjudged(off, { costPico: null }),
    ]).toEqual([['cost_unknown'], [], []]);
  });
});

describe('the check of keys', () => {
  it('flags a production key that is used from an environment which is not allowed, and lists unknown values', () => {
    const lists = fc.record({
      prod_key_prefixes: fc.array(word, { maxLength: 3 }),
      allowed_envs: fc.array(word, { maxLength: 3 }),
    });
    const known = fc.option(word, { nil: null, freq: 5 });
    fc.assert(
      fc.property(lists, known, known, (config, environment, keyPrefix) => {
        const policy = policyOf('key_environment_check', config);
        const isProduction =
          keyPrefix !== null &&
          config.prod_key_prefixes.some((prefix) => keyPrefix.slice(0, prefix.length) === prefix);
        const isElsewhere = environment !== null && config.allowed_envs.indexOf(environment) < 0;
        expect(
          judge(policy, { environment, keyPrefix }).map(({ severity, details }) => [severity, details]),
        ).toEqual(isProduction && isElsewhere ? [['high', { environment, key_prefix: keyPrefix }]] : []);
        const isNotKnown =
          config.prod_key_prefixes.length === 0
            ? []
            : keyPrefix === null
              ? ['key_unknown']
              : isProduction && environment === null
                ? ['environment_unknown']
                : [];
        expect(unjudged(policy, { environment, keyPrefix })).toEqual(isNotKnown);
      }),
      { numRuns: 1_000 },
    );
  });

  it('strips its input as calls are stripped, and an empty prefix is none', () => {
    const policy = policyOf('key_environment_check', {
      prod_key_prefixes: ['sk-é', 'é'],
      allowed_envs: ['prodé'],
    });
    expect(judge(policy, { keyPrefix: 'sk-1', environment: 'prod' })).toEqual([]);
    expect(judge(policy, { keyPrefix: 'sk-1', environment: 'Prod' }).length).toBe(1);
    expect(judge(policy, { keyPrefix: 'pk-1', environment: 'Prod' })).toEqual([]);
  });
});

describe('several policies', () => {
  it('flag a call once each, in their order, and those that are off not at all', () => {
    const policies = [
      { ...policyOf('approved_models', { models: ['other'] }), id: 1 },
      { ...policyOf('approval_required_threshold_cents', { threshold_cents: 1 }), id: 2 },
      { ...policyOf('key_environment_check', { prod_key_prefixes: ['tu_'], allowed_envs: [] }), id: 3 },
    ] as Policy[];
    const call = { ...CALL, costPico: 10n ** 12n };
    expect(judgeCall(compilePolicies(policies), call).map(({ policyId }) => policyId)).toEqual([1, 2, 3]);
    const off = policies.map((policy) => ({ ...policy, enabled: policy.id === 2 }));
    expect(judgeCall(compilePolicies(off), call).map(({ policyId }) => policyId)).toEqual([2]);
    expect(judgeCall(compilePolicies([]), call)).toEqual([]);
  });
});
