/** Rules that wrappers apply before a call; the service stores, distributes and models them (docs/enforcement.md). */
import type { Pico } from '../../money.js';

export const RULE_TYPES = [
  'token_ceiling',
  'session_budget_usd',
  'duplicate_window_seconds',
  'max_tool_calls',
  'model_downgrade',
] as const;
export type RuleType = (typeof RULE_TYPES)[number];

/**
 * `block`: a wrapper stops the call. `observe`: it lets the call through, and only the modeled savings show the
 * rule.
 */
export const RULE_MODES = ['block', 'observe'] as const;
export type RuleMode = (typeof RULE_MODES)[number];

export interface RuleConfigs {
  /** Blocks a call with more than this number of tokens of all classes together. */
  token_ceiling: { maxTokens: number };
  /** Blocks a call of a session whose earlier calls cost this much or more. */
  session_budget_usd: { budgetPico: Pico };
  /** Blocks a call that equals one that began at most this number of seconds before. */
  duplicate_window_seconds: { windowSeconds: number };
  /** Blocks a call of a session in which more than this number of calls requested a tool. */
  max_tool_calls: { maxToolCalls: number };
  /** Replaces the scope's model by this one. */
  model_downgrade: { toModel: string };
}
export type RuleConfig = RuleConfigs[RuleType];

/** The calls of a rule: those whose labels exactly equal every named one. */
export interface RuleScope {
  teamId: string | null;
  feature: string | null;
  /** The requested model, not the one that answered. */
  model: string | null;
}

interface RuleOf<T extends RuleType> {
  /** A uuid; `rul_…` on the wire. Never reused, since stored calls refer to it for ever. */
  id: string;
  name: string | null;
  type: T;
  config: RuleConfigs[T];
  scope: RuleScope;
  enabled: boolean;
  mode: RuleMode;
}
export type Rule = { [T in RuleType]: RuleOf<T> }[RuleType];

/** Maximum rules of an organization, enabled or disabled; removed ones do not count. */
export const RULES_MAX = 100;
export const MAX_TOKENS_MAX = 1_000_000_000;
/** Maximum budget of a session, dollars; also the maximum reported cost of one call. */
export const BUDGET_USD_MAX = 1_000_000;
/** Decimals of a budget: a millionth of a dollar, so that the number on the wire equals the stored one exactly. */
export const BUDGET_DECIMALS = 6;
export const WINDOW_SECONDS_MAX = 86_400;
export const TOOL_CALLS_MAX = 100_000;

export function isInScope(
  scope: RuleScope,
  call: { teamId: string | null; feature: string | null; model: string },
): boolean {
  return (
    (scope.teamId === null || scope.teamId === call.teamId) &&
    (scope.feature === null || scope.feature === call.feature) &&
    (scope.model === null || scope.model === call.model)
  );
}

/** The fault of a rule as a whole; its fields are checked before. */
export function findRuleFault(
  rule: Pick<Rule, 'type' | 'config' | 'scope'>,
): { field: string; message: string } | undefined {
  if (rule.type !== 'model_downgrade') return undefined;
  if (rule.scope.model === null) {
    return { field: 'scope.model', message: 'is required: name the model whose calls go to config.to_model' };
  }
  const { toModel } = rule.config as RuleConfigs['model_downgrade'];
  return toModel === rule.scope.model
    ? { field: 'config.to_model', message: 'must be another model than scope.model' }
    : undefined;
}
