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

/** Whether a wrapper stops the call, or lets it through and only the modeled savings tell of it. */
export const RULE_MODES = ['block', 'observe'] as const;
export type RuleMode = (typeof RULE_MODES)[number];

export interface RuleConfigs {
  /** A call of more tokens than these, of all classes together. */
  token_ceiling: { maxTokens: number };
  /** A call of a session whose earlier calls have cost this much or more. */
  session_budget_usd: { budgetPico: Pico };
  /** A call that is equal to one that began at most so many seconds before. */
  duplicate_window_seconds: { windowSeconds: number };
  /** A call of a session after more than so many of its calls have asked for a tool. */
  max_tool_calls: { maxToolCalls: number };
  /** Calls of the scope's model go to this one. */
  model_downgrade: { toModel: string };
}
export type RuleConfig = RuleConfigs[RuleType];

/** Which calls a rule is for: those whose labels equal every one that is named, exactly. */
export interface RuleScope {
  teamId: string | null;
  feature: string | null;
  /** As the call names it, not the model that answered. */
  model: string | null;
}

interface RuleOf<T extends RuleType> {
  /** A uuid; `rul_…` on the wire. Never given to another rule, since stored calls name it for ever. */
  id: string;
  name: string | null;
  type: T;
  config: RuleConfigs[T];
  scope: RuleScope;
  enabled: boolean;
  mode: RuleMode;
}
export type Rule = { [T in RuleType]: RuleOf<T> }[RuleType];

/** Rules of an organization, switched off or on; removed ones are not counted. */
export const RULES_MAX = 100;
export const MAX_TOKENS_MAX = 1_000_000_000;
/** Dollars of one session; also the most that one call may be reported to have cost. */
export const BUDGET_USD_MAX = 1_000_000;
/** Decimals of a budget: a millionth of a dollar, so that the number on the wire is exactly what is stored. */
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

/** A fault of a rule as a whole; fields are checked before. */
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
