import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { decimalFromPico, type Pico, picoFromDecimal, picoFromTokenProduct } from '../../domain/money.js';
import { judgeOf, type ReplayedCall } from '../../domain/policies/enforcement/judges.js';
import { Replay } from '../../domain/policies/enforcement/replay.js';
import { isInScope, RULE_TYPES, type Rule } from '../../domain/policies/enforcement/rule.js';
import { aUsage } from './aCall.js';

/** The table of verdicts that the API and both wrappers share, and the verdicts of the API's replay. */

export interface ModelPrice {
  in_per_mtok: number;
  out_per_mtok: number;
  cache_read: number;
  cache_creation: number;
}

/** A rule as `GET /api/v1/enforcement/config` serves it. */
export interface ServedRule {
  id: string;
  name: string | null;
  type: string;
  mode: 'block' | 'observe';
  config: Record<string, unknown>;
  scope: { team_id: string | null; feature: string | null; model: string | null };
}

export interface AnsweredUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read: number;
  cache_creation: number;
}

export interface CaseCall {
  at_ms: number;
  biller: string;
  model: string;
  team_id: string | null;
  feature: string | null;
  session_id: string | null;
  prompts: string[] | null;
  /** Known before the call; null: unknown. */
  input_tokens: number | null;
  max_output_tokens: number | null;
  answer: { status: 'ok' | 'error' | 'cancelled'; stop_reason: string; usage: AnsweredUsage | null };
}

export interface CaseVerdict {
  verdict: 'allowed' | 'blocked' | 'downgraded';
  rule_id: string | null;
  /** The model to which a downgraded call goes. */
  model: string | null;
  prevented_usd: string | null;
  /** Rules in mode `observe` that a call breaks which no rule blocks. */
  observed: string[];
}

export interface RuleCase {
  name: string;
  rules: ServedRule[];
  calls: { call: CaseCall; expected: CaseVerdict }[];
}

export type Prices = Record<string, ModelPrice>;

export function readRuleCases(): { prices: Prices; cases: RuleCase[] } {
  const { prices, defaults, cases } = JSON.parse(
    readFileSync(new URL('../../sdk/ruleCases.json', import.meta.url), 'utf8'),
  );
  const { expected: allowed, ...aCall } = defaults;
  return {
    prices,
    cases: cases.map(({ name, rules, calls }: { name: string; rules: ServedRule[]; calls: object[] }) => ({
      name,
      rules,
      calls: calls.map((item) => {
        const { expected, ...call } = item as { expected: object };
        return { call: { ...aCall, ...call }, expected: { ...allowed, ...expected } };
      }),
    })),
  };
}

/** Pico-dollars; null: the model has no price. */
export function costOfUsage(prices: Prices, model: string, usage: AnsweredUsage): Pico | null {
  const price = prices[model];
  if (price === undefined) return null;
  const counts: [number, number][] = [
    [usage.input_tokens, price.in_per_mtok],
    [usage.output_tokens, price.out_per_mtok],
    [usage.cache_read, price.cache_read],
    [usage.cache_creation, price.cache_creation],
  ];
  const product = counts.reduce(
    (sum, [tokens, rate]) => sum + BigInt(tokens) * (picoFromDecimal(String(rate)) ?? 0n),
    0n,
  );
  return picoFromTokenProduct(product);
}

/** The verdicts of the API's code on calls in order, by what a wrapper knows before each call. */
export function replayVerdicts(
  served: readonly ServedRule[],
  calls: readonly CaseCall[],
  prices: Prices,
): CaseVerdict[] {
  const rules = served.filter(({ type }) => (RULE_TYPES as readonly string[]).includes(type)).map(ruleOf);
  const answers = new Map<string, CaseCall>();
  // The replay obeys every rule that it gets.
  const replay = new Replay(
    rules.filter(({ mode }) => mode === 'block'),
    { costAs: ({ id }, model) => costOfAnswer(prices, model, answers.get(id)?.answer ?? null) },
  );
  const observers = rules
    .filter(({ mode }) => mode === 'observe')
    .map((rule) => ({ rule, judge: judgeOf(rule) }));
  return calls.map((call, index) => {
    const replayed = replayedCallOf(call, index, prices);
    answers.set(replayed.id, call);
    const verdict = replay.take(replayed);
    if (verdict?.action === 'block') {
      return {
        ...ALLOWED,
        verdict: 'blocked',
        rule_id: verdict.ruleId,
        prevented_usd: preventedUsd(call, prices),
      };
    }
    const saved = verdict?.savedPico ?? 0n;
    const costPico = replayed.costPico === null ? null : replayed.costPico - saved;
    const observed: string[] = [];
    for (const { rule, judge } of observers) {
      if (!isInScope(rule.scope, replayed)) continue;
      if (judge === undefined || judge.judge(replayed) === 'blocked') observed.push(rule.id);
      judge?.letThrough(replayed, costPico);
    }
    if (verdict === undefined) return { ...ALLOWED, observed };
    const rule = rules.find(({ id }) => id === verdict.ruleId);
    const model = rule?.type === 'model_downgrade' ? rule.config.toModel : null;
    return { ...ALLOWED, verdict: 'downgraded', rule_id: verdict.ruleId, model, observed };
  });
}

const ALLOWED: CaseVerdict = {
  verdict: 'allowed',
  rule_id: null,
  model: null,
  prevented_usd: null,
  observed: [],
};

function preventedUsd({ model, input_tokens, max_output_tokens }: CaseCall, prices: Prices): string | null {
  if (input_tokens === null) return null;
  const usage = { input_tokens, output_tokens: max_output_tokens ?? 0, cache_read: 0, cache_creation: 0 };
  const pico = costOfUsage(prices, model, usage);
  return pico === null ? null : decimalFromPico(pico);
}

/** Pico-dollars of an answer; a call that failed without usage cost nothing. */
function costOfAnswer(prices: Prices, model: string, answer: CaseCall['answer'] | null): Pico | null {
  if (answer === null) return null;
  if (answer.usage === null) return answer.status === 'error' ? 0n : null;
  return costOfUsage(prices, model, answer.usage);
}

/** The call as stored, except that its tokens are those that were known before it. */
function replayedCallOf(call: CaseCall, index: number, prices: Prices): ReplayedCall {
  const prompts = call.prompts ?? [];
  return {
    id: String(index).padStart(8, '0'),
    timestampMicros: BigInt(call.at_ms) * 1_000n,
    status: call.answer.status,
    billedBy: call.biller as ReplayedCall['billedBy'],
    model: call.model,
    teamId: call.team_id,
    feature: call.feature,
    sessionId: call.session_id ?? '',
    stopReason: call.answer.stop_reason,
    usage:
      call.input_tokens === null
        ? null
        : aUsage({ input: call.input_tokens, output: call.max_output_tokens ?? 0 }),
    unmetered: call.input_tokens === null,
    isBatch: false,
    serviceTier: null,
    promptHash:
      prompts.length === 0 ? null : createHash('sha256').update(prompts.join('\u001f')).digest('hex'),
    costPico: costOfAnswer(prices, call.model, call.answer),
  };
}

function ruleOf({ id, name, type, mode, config, scope }: ServedRule): Rule {
  const { team_id: teamId, feature, model } = scope;
  return {
    id,
    name,
    type,
    mode,
    enabled: true,
    scope: { teamId, feature, model },
    config: {
      maxTokens: config.max_tokens,
      budgetPico: picoFromDecimal(String(config.budget_usd)),
      windowSeconds: config.window_seconds,
      maxToolCalls: config.max_tool_calls,
      toModel: config.to_model,
    },
  } as unknown as Rule;
}
