import type { Violation } from '../../domain/alerts/alert.js';
import {
  type CompiledPolicies,
  compilePolicies,
  type JudgedCall,
  judgeCall,
  type Unjudged,
  unjudgedOf,
} from '../../domain/policies/judge.js';
import type { Policy, PolicyType } from '../../domain/policies/policy.js';
import type { JudgeCost } from '../queries/settledAlerts.js';

/** What a compiled pattern takes for each of its characters, as measured; programs of long ones take most. */
const BYTES_PER_PATTERN_CHARACTER = 200;
const BYTES_PER_CHARACTER = 4;

const OF_COST: readonly PolicyType[] = ['approval_required_threshold_cents'];

/** An organization's policies, made ready apart, since not every telling of a call is judged by all of them. */
export class Judges {
  static readonly NONE = new Judges([]);

  /** Roughly what they hold of memory. */
  readonly bytes: number;
  /** Patterns that are passed over. */
  readonly skippedPatterns: number;
  readonly #byType = new Map<PolicyType, CompiledPolicies>();

  constructor(policies: readonly Policy[]) {
    let bytes = 0;
    let skipped = 0;
    for (const policy of policies) {
      const size = JSON.stringify(policy.config).length;
      bytes += size * (policy.type === 'banned_patterns' ? BYTES_PER_PATTERN_CHARACTER : BYTES_PER_CHARACTER);
      skipped += policy.skipped.length;
      const compiled = compile(policy);
      if (compiled.rules.length > 0) this.#byType.set(policy.type, compiled);
    }
    this.bytes = bytes;
    this.skippedPatterns = skipped;
  }

  /** Whether nothing is judged at all. */
  get isEmpty(): boolean {
    return this.#byType.size === 0;
  }

  has(type: PolicyType): boolean {
    return this.#byType.has(type);
  }

  /** What the call breaks of the policies of some types. */
  judge(types: readonly PolicyType[], call: JudgedCall): readonly Violation[] {
    return types.flatMap((type) => {
      const policies = this.#byType.get(type);
      return policies ? judgeCall(policies, call) : [];
    });
  }

  /** Policies that the call could not be held against. */
  unjudged(call: JudgedCall): readonly Unjudged[] {
    return [...this.#byType.values()].flatMap((policies) => unjudgedOf(policies, call));
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

/** Judges what a call costs, where its completed form costs another sum than any telling of it. */
export function judgeCostBy(judges: Judges): JudgeCost {
  return ({ call }, costPico) =>
    judges.judge(OF_COST, {
      model: call.model,
      prompts: () => [],
      environment: null,
      keyPrefix: null,
      costPico,
    });
}
