import { decimalOf, type Pico, picoOf } from './money.js';
import type { PriceTable } from './prices.js';

/** Judges calls by the organization's rules, with a memory of the calls of this process. */

export interface RuleScope {
  team_id: string | null;
  feature: string | null;
  model: string | null;
}

interface RuleBase {
  id: string;
  name: string | null;
  mode: 'block' | 'observe';
  scope: RuleScope;
}

export type Rule = RuleBase &
  (
    | { type: 'token_ceiling'; maxTokens: number }
    | { type: 'session_budget_usd'; budget: Pico }
    | { type: 'duplicate_window_seconds'; windowMs: number }
    | { type: 'max_tool_calls'; maxToolCalls: number }
    | { type: 'model_downgrade'; toModel: string }
  );

/** A call before it is made; the functions are called only where a rule needs their result. */
export interface CallBefore {
  /** Milliseconds since 1970. */
  at: number;
  biller: string;
  /** The requested model. */
  model: string;
  team: string | null;
  feature: string | null;
  session: string | null;
  /** null: unknown. */
  inputTokens(): number | null;
  /** null: the request has no limit. */
  maxOutputTokens: number | null;
  /** A digest of the prompts in order; null: there is none. */
  promptDigest(): string | null;
}

export interface CallAfter {
  status: 'ok' | 'error' | 'cancelled';
  stopReason: string;
  /** Pico-dollars; null: unknown. */
  cost: Pico | null;
}

export interface Verdict {
  verdict: 'allowed' | 'blocked' | 'downgraded';
  /** The rule that blocks or downgrades. */
  rule: Rule | null;
  /** The model of a downgraded call. */
  model: string | null;
  /** Rules in mode `observe` that the call breaks, unless a rule blocks it. */
  observed: string[];
}

const TOOL_STOPS: ReadonlySet<string> = new Set(['tool_use', 'tool_calls', 'function_call']);
/** Sessions or equal calls that one rule remembers; the ones unused for longest are forgotten first. */
const MEMORY_MAX = 10_000;
/** Sessions without a call for so long are forgotten, milliseconds. */
const SESSION_IDLE_MS = 86_400_000;

/** Undefined: a rule of an unknown type, or one that cannot be read. */
export function readRule(given: unknown): Rule | undefined {
  const rule = (given ?? {}) as Record<string, unknown>;
  const config = (rule.config ?? {}) as Record<string, unknown>;
  const scope = (rule.scope ?? {}) as Record<string, unknown>;
  if (typeof rule.id !== 'string' || (rule.mode !== 'block' && rule.mode !== 'observe')) return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const base: RuleBase = {
    id: rule.id,
    name: text(rule.name),
    mode: rule.mode,
    scope: { team_id: text(scope.team_id), feature: text(scope.feature), model: text(scope.model) },
  };
  const {
    max_tokens: maxTokens,
    window_seconds: seconds,
    max_tool_calls: maxToolCalls,
    to_model: toModel,
  } = config;
  const budget = picoOf(config.budget_usd);
  if (rule.type === 'token_ceiling' && typeof maxTokens === 'number')
    return { ...base, type: rule.type, maxTokens };
  if (rule.type === 'session_budget_usd' && budget !== undefined) return { ...base, type: rule.type, budget };
  if (rule.type === 'duplicate_window_seconds' && typeof seconds === 'number')
    return { ...base, type: rule.type, windowMs: seconds * 1_000 };
  if (rule.type === 'max_tool_calls' && typeof maxToolCalls === 'number')
    return { ...base, type: rule.type, maxToolCalls };
  if (rule.type === 'model_downgrade' && typeof toModel === 'string' && base.scope.model !== null)
    return { ...base, type: rule.type, toModel };
  return undefined;
}

interface AppliedRule {
  rule: Rule;
  /** Equal texts judge alike, so that the memory survives a change of other rules. */
  text: string;
  memory: Memory;
}

/** By session or by equal call, in the order of last use. */
class Memory {
  readonly #entries = new Map<string, { value: Pico; at: number }>();

  get(key: string): { value: Pico; at: number } | undefined {
    return this.#entries.get(key);
  }

  note(key: string, value: Pico, at: number): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, at });
    if (this.#entries.size > MEMORY_MAX) this.#forgetFirst();
  }

  /** Forgets what began before; looks at one entry more than it forgets. */
  forgetBefore(at: number): void {
    for (const [key, entry] of this.#entries) {
      if (entry.at >= at) return;
      this.#entries.delete(key);
    }
  }

  #forgetFirst(): void {
    const [first] = this.#entries.keys();
    if (first !== undefined) this.#entries.delete(first);
  }
}

const ALLOWED: Verdict = Object.freeze({ verdict: 'allowed', rule: null, model: null, observed: [] });

export class Enforcer {
  #applied: AppliedRule[] = [];

  get rules(): readonly Rule[] {
    return this.#applied.map(({ rule }) => rule);
  }

  /** @param served the rules of the configuration in their order; unknown ones are ignored. */
  setRules(served: readonly unknown[]): void {
    const before = new Map(this.#applied.map((one) => [one.text, one]));
    this.#applied = served.flatMap((given) => {
      const rule = readRule(given);
      if (rule === undefined) return [];
      const text = JSON.stringify({ ...rule, mode: '', name: '' }, (_, value) =>
        typeof value === 'bigint' ? String(value) : value,
      );
      return [{ rule, text, memory: before.get(text)?.memory ?? new Memory() }];
    });
  }

  judge(call: CallBefore): Verdict {
    if (this.#applied.length === 0) return ALLOWED;
    const observed: string[] = [];
    let downgrade: (Rule & { type: 'model_downgrade' }) | undefined;
    for (const { rule, memory } of this.#applied) {
      if (!isInScope(rule.scope, call)) continue;
      if (rule.type === 'model_downgrade') {
        if (rule.mode === 'observe') observed.push(rule.id);
        else downgrade ??= rule;
      } else if (breaks(rule, memory, call)) {
        if (rule.mode === 'block') return { verdict: 'blocked', rule, model: null, observed: [] };
        observed.push(rule.id);
      }
    }
    if (downgrade) return { verdict: 'downgraded', rule: downgrade, model: downgrade.toModel, observed };
    return observed.length === 0 ? ALLOWED : { ...ALLOWED, observed };
  }

  /** Notes the end of a call that was made. */
  letThrough(call: CallBefore, after: CallAfter): void {
    for (const { rule, memory } of this.#applied) {
      if (!isInScope(rule.scope, call)) continue;
      if (rule.type === 'session_budget_usd') {
        if (call.session !== null && after.cost !== null && after.cost > 0n)
          addTo(memory, call.session, after.cost, call.at);
      } else if (rule.type === 'max_tool_calls') {
        if (call.session !== null && TOOL_STOPS.has(after.stopReason))
          addTo(memory, call.session, 1n, call.at);
      } else if (rule.type === 'duplicate_window_seconds' && after.status === 'ok') {
        const key = keyOf(call);
        if (key !== null && call.at > (memory.get(key)?.at ?? Number.NEGATIVE_INFINITY))
          memory.note(key, 0n, call.at);
      }
    }
  }
}

function addTo(memory: Memory, session: string, more: Pico, at: number): void {
  memory.forgetBefore(at - SESSION_IDLE_MS);
  memory.note(session, (memory.get(session)?.value ?? 0n) + more, at);
}

function breaks(rule: Rule, memory: Memory, call: CallBefore): boolean {
  switch (rule.type) {
    case 'token_ceiling': {
      const input = call.inputTokens();
      return input !== null && input + (call.maxOutputTokens ?? 0) > rule.maxTokens;
    }
    case 'session_budget_usd':
      return call.session !== null && (memory.get(call.session)?.value ?? 0n) >= rule.budget;
    case 'max_tool_calls':
      return call.session !== null && (memory.get(call.session)?.value ?? 0n) > BigInt(rule.maxToolCalls);
    case 'duplicate_window_seconds': {
      memory.forgetBefore(call.at - rule.windowMs);
      const key = keyOf(call);
      const began = key === null ? undefined : memory.get(key)?.at;
      return began !== undefined && call.at - began <= rule.windowMs;
    }
    case 'model_downgrade':
      return false;
  }
}

/** The text that equal calls share. */
function keyOf(call: CallBefore): string | null {
  const digest = call.promptDigest();
  const input = digest === null ? null : call.inputTokens();
  return input === null ? null : `${digest} ${input} ${call.biller} ${call.model}`;
}

function isInScope(scope: RuleScope, call: CallBefore): boolean {
  return (
    (scope.team_id === null || scope.team_id === call.team) &&
    (scope.feature === null || scope.feature === call.feature) &&
    (scope.model === null || scope.model === call.model)
  );
}

/** The cost that a blocked call would have had; null: unknown tokens or a model without a price. */
export function preventedUsd(call: CallBefore, prices: PriceTable): string | null {
  const input = call.inputTokens();
  if (input === null) return null;
  const tokens = { input, output: call.maxOutputTokens ?? 0, cacheRead: 0, cacheWrite: 0 };
  const pico = prices.cost(call.model, tokens);
  return pico === undefined ? null : decimalOf(pico);
}
