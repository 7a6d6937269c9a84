import type { JudgeCost } from '../../db/events/settledAlerts.js';
import {
  bytesMaxOf,
  type CompiledPolicies,
  compilePolicies,
  judgeCall,
} from '../../domain/policies/judge.js';
import type { Policy, PolicyType } from '../../domain/policies/policy.js';

/** An organization's policies, made ready apart by what they look at: not every report of a call is judged by all. */
export class Judges {
  static readonly NONE = new Judges([]);

  /** Whether nothing is judged at all. */
  readonly isEmpty: boolean;
  /** What looks at the call as a whole: its model, its cost, its key. */
  readonly ofCall: CompiledPolicies;
  /** What looks at what each report of the call says of itself. */
  readonly ofReport: CompiledPolicies;
  /** What looks at the cost alone. */
  readonly ofCost: CompiledPolicies;
  /** What looks at the prompts; undefined: nobody reads them. */
  readonly ofPrompts: CompiledPolicies | undefined;
  /** What they may come to in memory. */
  readonly bytesMax: number;
  /** Patterns that are passed over. */
  readonly skippedPatterns: number;

  constructor(policies: readonly Policy[]) {
    const compiled = policies.map((policy) => ({ type: policy.type, rules: compile(policy).rules }));
    const of = (...types: PolicyType[]) => ({
      rules: compiled.flatMap(({ type, rules }) => (types.includes(type) ? rules : [])),
    });
    this.ofCall = of('approved_models', 'key_environment_check', 'approval_required_threshold_cents');
    this.ofReport = of('key_environment_check');
    this.ofCost = of('approval_required_threshold_cents');
    const ofPrompts = of('banned_patterns');
    this.ofPrompts = ofPrompts.rules.length === 0 ? undefined : ofPrompts;
    this.isEmpty = this.ofCall.rules.length === 0 && this.ofPrompts === undefined;
    this.bytesMax = bytesMaxOf(this.ofCall) + bytesMaxOf(ofPrompts);
    this.skippedPatterns = policies.reduce((sum, { skipped }) => sum + skipped.length, 0);
  }
}

/** A policy that somebody wrote into the database by hand and that cannot be read judges nothing: calls are stored. */
function compile(policy: Policy): CompiledPolicies {
  try {
    return compilePolicies([policy]);
  } catch {
    return { rules: [] };
  }
}

/** Judges what a call costs, where its completed form costs another sum than any report of it. */
export function judgeCostBy({ ofCost }: Judges): JudgeCost {
  return ({ call }, costPico) =>
    judgeCall(ofCost, { model: call.model, prompts: () => [], environment: null, keyPrefix: null, costPico });
}
