import type { components } from '../../api/client';
import { usd } from '../../app/format';

export type Rule = components['schemas']['EnforcementRule'];
export type RuleType = Rule['type'];

/** The one setting of each type of rule. */
export const RULE_TYPES: Record<RuleType, { name: string; field: string; label: string; isNumber: boolean }> =
  {
    token_ceiling: {
      name: 'Tokens of a call',
      field: 'max_tokens',
      label: 'Most tokens of a call',
      isNumber: true,
    },
    session_budget_usd: {
      name: 'Budget of a session',
      field: 'budget_usd',
      label: 'US dollars of a session',
      isNumber: false,
    },
    duplicate_window_seconds: {
      name: 'Repeated call',
      field: 'window_seconds',
      label: 'Seconds within which a call may not repeat',
      isNumber: true,
    },
    max_tool_calls: {
      name: 'Tool calls',
      field: 'max_tool_calls',
      label: 'Most tool calls',
      isNumber: true,
    },
    model_downgrade: {
      name: 'Cheaper model',
      field: 'to_model',
      label: 'Model that calls go to',
      isNumber: false,
    },
  };

export const settingOf = (rule: Pick<Rule, 'type' | 'config'>) =>
  String((rule.config as Record<string, unknown>)[RULE_TYPES[rule.type].field] ?? '');

/** `at most $25.00 of a session`. */
export function limitText(rule: Pick<Rule, 'type' | 'config'>): string {
  const value = settingOf(rule);
  switch (rule.type) {
    case 'token_ceiling':
      return `${Number(value).toLocaleString('en-US')} tokens`;
    case 'session_budget_usd':
      return usd(value);
    case 'duplicate_window_seconds':
      return `${value} s`;
    case 'max_tool_calls':
      return `${value} calls`;
    case 'model_downgrade':
      return `to ${value}`;
  }
}

export const scopeText = ({ scope }: Pick<Rule, 'scope'>) =>
  [scope.team_id && `team ${scope.team_id}`, scope.feature && `feature ${scope.feature}`, scope.model]
    .filter(Boolean)
    .join(', ') || 'All calls';

export const ruleName = (rule: { name: string | null; type: RuleType }) =>
  rule.name ?? RULE_TYPES[rule.type].name;
