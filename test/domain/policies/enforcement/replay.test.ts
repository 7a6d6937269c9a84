import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareCalls, type ReplayedCall } from '../../../../domain/policies/enforcement/judges.js';
import { Replay, type RuleFindings, type Verdict } from '../../../../domain/policies/enforcement/replay.js';
import type { Rule } from '../../../../domain/policies/enforcement/rule.js';
import { aUsage } from '../../../support/aCall.js';
import { type PlainCall, type PlainRule, plainFindings, plainReplay } from '../../../support/plainReplay.js';

const USD = 1_000_000_000_000n;
const SECOND = 1_000_000n;
const NO_SCOPE = { teamId: null, feature: null, model: null };
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;

const aRule = (number: number, rule: Pick<Rule, 'type' | 'config'> & { scope?: Rule['scope'] }): Rule =>
  ({ id: idOf(number), name: null, scope: NO_SCOPE, enabled: true, mode: 'block', ...rule }) as Rule;

const aCall = (number: number, overrides: Partial<ReplayedCall> = {}): ReplayedCall => ({
  id: idOf(number),
  timestampMicros: BigInt(number) * SECOND,
  status: 'ok',
  billedBy: 'openai',
  model: 'gpt-4o',
  teamId: null,
  feature: null,
  sessionId: 's',
  stopReason: 'stop',
  usage: aUsage({ input: 100, output: 10 }),
  unmetered: false,
  isBatch: false,
  serviceTier: null,
  promptHash: null,
  costPico: USD,
  ...overrides,
});

/** Models of the drawn calls, each with the price of a call, independent of its tokens; null: no price. */
const PRICES: Record<string, bigint | null> = {
  large: 3n * USD + 1n,
  small: USD / 3n,
  dear: 9n * USD,
  own: null,
};
const costAs = (_call: unknown, model: string) => PRICES[model] ?? null;

function replay(rules: readonly Rule[], calls: readonly ReplayedCall[], statesMax?: number) {
  const run = new Replay(rules, { costAs, ...(statesMax === undefined ? {} : { statesMax }) });
  const verdicts = [...calls].sort(compareCalls).map((call) => run.take(call));
  return { verdicts, findings: run.findings() };
}

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);
const label = oneOf<string | null>(null, 'a', 'b');
const scope = fc.record({ teamId: label, feature: label, model: oneOf<string | null>(null, null, 'large') });

const ruleBody = fc.oneof(
  fc
    .record({ maxTokens: oneOf(109, 110, 500) })
    .map((config) => ({ type: 'token_ceiling', config }) as const),
  oneOf(USD, 3n * USD, 5n * USD).map(
    (budgetPico) => ({ type: 'session_budget_usd', config: { budgetPico } }) as const,
  ),
  oneOf(1, 5, 60).map(
    (windowSeconds) => ({ type: 'duplicate_window_seconds', config: { windowSeconds } }) as const,
  ),
  oneOf(0, 1, 3).map((maxToolCalls) => ({ type: 'max_tool_calls', config: { maxToolCalls } }) as const),
  oneOf('small', 'dear', 'own').map((toModel) => ({ type: 'model_downgrade', config: { toModel } }) as const),
);
const rules = fc
  .array(fc.tuple(ruleBody, scope), { maxLength: 5 })
  .map((drawn) => drawn.map(([body, scope], index) => aRule(index + 1, { ...body, scope })));

/** Calls with so few sessions, prompts and times that they often coincide. */
const calls = fc
  .array(
    fc.record({
      second: fc.nat({ max: 30 }),
      fraction: oneOf(0n, 1n, 999_999n),
      status: oneOf('ok', 'ok', 'ok', 'error', 'cancelled'),
      model: oneOf('large', 'large', 'small', 'own'),
      billedBy: oneOf('openai', 'openai', 'unknown'),
      teamId: label,
      feature: label,
      sessionId: oneOf('', 's', 't'),
      stopReason: oneOf('stop', 'tool_use', 'tool_calls', 'function_call', 'unknown'),
      promptHash: oneOf(null, '1', '2'),
      usage: oneOf(
        null,
        aUsage({ input: 100, output: 10 }),
        aUsage({ input: 40, cacheRead: 60, output: 9 }),
        aUsage({ input: 400, cacheCreation: 90, inputAudio: 5, output: 5, outputAudio: 1 }),
      ),
      unmetered: fc.boolean(),
      costPico: oneOf(null, 0n, USD, USD / 7n, 3n * USD + 1n),
    }),
    { maxLength: 60 },
  )
  .map((drawn) =>
    drawn.map(({ second, fraction, unmetered, ...call }, index) =>
      aCall(index + 1, {
        ...(call as Partial<ReplayedCall>),
        unmetered: call.usage === null && unmetered,
        timestampMicros: BigInt(second) * SECOND + fraction,
      }),
    ),
  );

function plainRuleOf({ id, type, config, scope }: Rule): PlainRule {
  const [limit] = Object.values(config) as [number | bigint | string];
  return {
    id,
    type,
    limit,
    ...(scope.teamId === null ? {} : { team: scope.teamId }),
    ...(scope.feature === null ? {} : { feature: scope.feature }),
    ...(scope.model === null ? {} : { model: scope.model }),
  };
}

function plainCallOf(call: ReplayedCall): PlainCall {
  const { usage, unmetered } = call;
  const tokens = (of: (one: NonNullable<typeof usage>) => number) =>
    usage === null ? (unmetered ? null : 0) : of(usage);
  return {
    id: call.id,
    at: call.timestampMicros,
    isOk: call.status === 'ok',
    biller: call.billedBy,
    model: call.model,
    team: call.teamId,
    feature: call.feature,
    session: call.sessionId === '' ? null : call.sessionId,
    stop: call.stopReason === 'unknown' ? null : call.stopReason,
    inputTokens: tokens((one) => one.input + one.inputAudio + one.cacheRead + one.cacheCreation),
    outputTokens: tokens((one) => one.output + one.outputAudio),
    prompt: call.promptHash,
    cost: call.costPico,
    costAs: (model) => PRICES[model] ?? null,
  };
}

const sumOf = (counts: Partial<Record<string, number>>) =>
  Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);

describe('a replay of calls through rules', () => {
  it('equals a plain evaluation over all calls before each one, whatever the rules and calls', () => {
    fc.assert(
      fc.property(rules, calls, (drawnRules, drawnCalls) => {
        const { verdicts, findings } = replay(drawnRules, drawnCalls);
        const outcomes = plainReplay(drawnRules.map(plainRuleOf), drawnCalls.map(plainCallOf));
        const shown = (verdict: Verdict | undefined) =>
          verdict ? [verdict.ruleId, verdict.action, verdict.savedPico] : [null, null, null];
        expect(verdicts.map(shown)).toEqual(
          outcomes.map(({ rule, action, saved }) => [rule, action, action === null ? null : saved]),
        );
        for (const found of findings) {
          const { unpriced, unjudged, savedPico, ruleId, forgotten, ...counts } = found;
          const { saved, unpriced: plainUnpriced, ...plain } = plainFindings(ruleId, outcomes);
          expect({ ...counts, unjudged }).toEqual(plain);
          expect([savedPico, sumOf(unpriced), forgotten]).toEqual([saved, plainUnpriced, 0]);
        }
      }),
      { numRuns: 600 },
    );
  });

  it('adds up: what the calls saved is what their rules came to, and nothing is negative', () => {
    fc.assert(
      fc.property(rules, calls, (drawnRules, drawnCalls) => {
        const { verdicts, findings } = replay(drawnRules, drawnCalls);
        const saved = verdicts.map((verdict) => verdict?.savedPico ?? 0n);
        expect(saved.every((pico) => pico >= 0n)).toBe(true);
        const total = (list: readonly bigint[]) => list.reduce((sum, pico) => sum + pico, 0n);
        expect(total(findings.map(({ savedPico }) => savedPico))).toBe(total(saved));
        const counted = findings.reduce((sum, { blocked, downgraded }) => sum + blocked + downgraded, 0);
        expect(counted).toBe(verdicts.filter((verdict) => verdict !== undefined).length);
      }),
    );
  });

  it('refuses a call that lies before the last one, and the same call twice', () => {
    const run = new Replay([], { costAs });
    run.take(aCall(2));
    expect(() => run.take(aCall(1))).toThrow(RangeError);
    expect(() => run.take(aCall(2))).toThrow(RangeError);
  });
});

describe('rules together', () => {
  const findingsOf = (rules: readonly Rule[], calls: readonly ReplayedCall[]): RuleFindings[] =>
    replay(rules, calls).findings;

  it('assign a call to the first that blocks it; the others are not asked', () => {
    const ceiling = (number: number) => aRule(number, { type: 'token_ceiling', config: { maxTokens: 50 } });
    expect(findingsOf([ceiling(1), ceiling(2)], [aCall(1)])).toMatchObject([
      { asked: 1, blocked: 1, savedPico: USD },
      { asked: 0, blocked: 0, savedPico: 0n },
    ]);
  });

  it('let a blocked call count for nothing: not for a budget, not as a first of two equal ones, not as a call for a tool', () => {
    const ceiling = aRule(1, { type: 'token_ceiling', config: { maxTokens: 200 } });
    const large = aCall(1, { usage: aUsage({ input: 300 }), promptHash: '1', stopReason: 'tool_use' });
    const after = aCall(2, { usage: aUsage({ input: 300, output: 0 }), promptHash: '1' });
    const budget = aRule(2, { type: 'session_budget_usd', config: { budgetPico: USD } });
    const twice = aRule(3, { type: 'duplicate_window_seconds', config: { windowSeconds: 60 } });
    const tools = aRule(4, { type: 'max_tool_calls', config: { maxToolCalls: 0 } });
    for (const rule of [budget, twice, tools]) {
      expect(findingsOf([rule], [large, after])[0]?.blocked, rule.type).toBe(1);
      const [, second] = findingsOf([ceiling, rule], [large, { ...after, usage: aUsage({ input: 100 }) }]);
      expect(second?.blocked, rule.type).toBe(0);
    }
  });

  it('let a call that moves to a cheaper model cost less of its session’s budget', () => {
    const budget = aRule(1, { type: 'session_budget_usd', config: { budgetPico: USD } });
    const downgrade = aRule(2, {
      type: 'model_downgrade',
      config: { toModel: 'small' },
      scope: { ...NO_SCOPE, model: 'gpt-4o' },
    });
    const three = [1, 2, 3].map((number) => aCall(number));
    expect(findingsOf([budget], three)[0]?.blocked).toBe(2);
    // A third of a dollar each, a pico-dollar less than a dollar all three.
    expect(findingsOf([budget, downgrade], [...three, aCall(4)])).toMatchObject([
      { blocked: 0 },
      { downgraded: 4, savedPico: 4n * (USD - USD / 3n) },
    ]);
  });

  it('send a call to one other model at most, and save nothing where that is dearer or has no price', () => {
    const to = (number: number, toModel: string) =>
      aRule(number, {
        type: 'model_downgrade',
        config: { toModel },
        scope: { ...NO_SCOPE, model: 'gpt-4o' },
      });
    expect(findingsOf([to(1, 'dear'), to(2, 'small')], [aCall(1)])).toMatchObject([
      { downgraded: 1, savedPico: 0n, unpriced: {} },
      { asked: 0, downgraded: 0 },
    ]);
    expect(findingsOf([to(1, 'own')], [aCall(1), aCall(2, { costPico: null })])).toMatchObject([
      { downgraded: 2, savedPico: 0n, unpriced: { no_price_for_model: 1, call_unpriced: 1 } },
    ]);
  });
});

describe('the memory of a replay', () => {
  const budget = aRule(1, { type: 'session_budget_usd', config: { budgetPico: 2n * USD } });
  const twice = aRule(2, { type: 'duplicate_window_seconds', config: { windowSeconds: 10 } });
  const many = (count: number, of: (number: number) => Partial<ReplayedCall>) =>
    Array.from({ length: count }, (_, index) => aCall(index + 1, of(index + 1)));

  it('stays within its limit, and counts how much was forgotten', () => {
    const sessions = many(20_000, (number) => ({ sessionId: `s${number}` }));
    const [found] = replay([budget], sessions, 1_000).findings;
    expect(found?.forgotten).toBeGreaterThan(17_000);
    const [all] = replay([budget], sessions).findings;
    expect(all?.forgotten).toBe(0);
  });

  it('keeps a session that lasts while thousands of others begin and end', () => {
    const calls = many(20_000, (number) => ({ sessionId: number % 50 === 0 ? 'long' : `s${number}` }));
    const [found] = replay([budget], calls, 1_000).findings;
    expect(found?.blocked).toBe(20_000 / 50 - 2);
  });

  it('of equal calls is what a window can reach, however many prompts there are, and nothing that matters is forgotten', () => {
    const calls = many(20_000, (number) => ({
      promptHash: String(number % 12),
      timestampMicros: BigInt(number) * SECOND,
    }));
    // Each prompt comes back after 12 seconds: never within 10.
    const apart = replay([twice], calls, 300).findings[0];
    expect(apart).toMatchObject({ blocked: 0, forgotten: 0 });
    const unlike = many(20_000, (number) => ({ promptHash: String(number) }));
    expect(replay([twice], unlike, 300).findings[0]).toMatchObject({ blocked: 0, forgotten: 0 });
  });
});
