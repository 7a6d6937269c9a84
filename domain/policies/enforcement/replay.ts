import type { Pico } from '../../money.js';
import { compareCalls, type Judge, judgeOf, type ReplayedCall, type UnjudgedReason } from './judges.js';
import { isInScope, type Rule } from './rule.js';

/**
 * Computes the savings of rules over real calls in order: a blocked call is absent for later ones
 * (docs/enforcement.md).
 */

/** Reasons why the savings of a call that a rule would have blocked or changed are unknown. */
export const UNPRICED_REASONS = ['call_unpriced', 'no_price_for_model'] as const;
export type UnpricedReason = (typeof UNPRICED_REASONS)[number];

export const MODELED_ACTIONS = ['block', 'downgrade'] as const;
export type ModeledAction = (typeof MODELED_ACTIONS)[number];

export interface Verdict {
  ruleId: string;
  action: ModeledAction;
  /** Never negative; null: unknown, for the reason beside it. */
  savedPico: Pico | null;
  unpricedReason: UnpricedReason | null;
}

/** The result of a rule. A rule judges each call of its scope that no earlier rule has blocked. */
export interface RuleFindings {
  ruleId: string;
  asked: number;
  blocked: number;
  downgraded: number;
  savedPico: Pico;
  unpriced: Partial<Record<UnpricedReason, number>>;
  unjudged: Partial<Record<UnjudgedReason, number>>;
  /** Sessions or prompts that were forgotten for lack of memory; above 0, the savings are not exact. */
  forgotten: number;
}

export interface ReplayOptions {
  /** The call's cost with another model of its biller; null: unknown. */
  costAs(call: ReplayedCall, model: string): Pico | null;
  /** Maximum entries that all rules together remember, within a thousand calls; absent: `STATES_MAX`. */
  statesMax?: number;
}

/** Sessions and prompts that are remembered at once, about 200 bytes each. */
const STATES_MAX = 1_000_000;
/** Calls between two checks of the number of remembered entries. */
const CALLS_OF_A_LOOK = 256;

interface Standing {
  rule: Rule;
  judge: Judge | undefined;
  findings: RuleFindings;
}

/** Applies the enabled rules of an organization to its calls. Remembers only what the rules need of past calls. */
export class Replay {
  readonly #standing: Standing[];
  readonly #options: ReplayOptions;
  #last: ReplayedCall | undefined;
  #calls = 0;

  /** `rules` are in the order of their creation, in which they judge. */
  constructor(rules: readonly Rule[], options: ReplayOptions) {
    this.#options = options;
    this.#standing = rules.map((rule) => ({
      rule,
      judge: judgeOf(rule),
      findings: {
        ruleId: rule.id,
        asked: 0,
        blocked: 0,
        downgraded: 0,
        savedPico: 0n,
        unpriced: {},
        unjudged: {},
        forgotten: 0,
      },
    }));
  }

  /**
   * Takes calls in the order of `compareCalls`; undefined: the call is unchanged. @throws RangeError for an
   * earlier call.
   */
  take(call: ReplayedCall): Verdict | undefined {
    if (this.#last && compareCalls(this.#last, call) >= 0)
      throw new RangeError('calls are replayed in the order of their times, each once');
    this.#last = call;
    this.#calls += 1;
    if (this.#calls % CALLS_OF_A_LOOK === 0) this.#makeRoom();
    const concerned = this.#standing.filter(({ rule }) => isInScope(rule.scope, call));
    for (const standing of concerned) if (asks(standing, call)) return block(standing.findings, call);
    const downgrade = this.#downgrade(concerned, call);
    const savedPico = downgrade?.savedPico ?? 0n;
    const costPico = call.costPico === null ? null : call.costPico - savedPico;
    for (const { judge } of concerned) judge?.letThrough(call, costPico);
    return downgrade;
  }

  findings(): RuleFindings[] {
    return this.#standing.map(({ findings, judge }) => ({ ...findings, forgotten: judge?.forgotten ?? 0 }));
  }

  /** Changes the model of a call at most once: by the first downgrade rule of its scope. */
  #downgrade(concerned: readonly Standing[], call: ReplayedCall): Verdict | undefined {
    for (const { rule, findings } of concerned) {
      if (rule.type !== 'model_downgrade') continue;
      const { costPico } = call;
      const thenPico = costPico === null ? null : this.#options.costAs(call, rule.config.toModel);
      const savedPico = costPico === null || thenPico === null ? null : atLeastZero(costPico - thenPico);
      const unpricedReason =
        costPico === null ? 'call_unpriced' : thenPico === null ? 'no_price_for_model' : null;
      findings.asked += 1;
      findings.downgraded += 1;
      return note(findings, { ruleId: rule.id, action: 'downgrade', savedPico, unpricedReason });
    }
    return undefined;
  }

  /** Lets the rule with the most entries forget first. */
  #makeRoom(): void {
    const statesMax = this.#options.statesMax ?? STATES_MAX;
    for (;;) {
      let total = 0;
      let largest: Judge | undefined;
      for (const { judge } of this.#standing) {
        if (!judge) continue;
        total += judge.size;
        if (judge.size > (largest?.size ?? 0)) largest = judge;
      }
      if (total <= statesMax || !largest) return;
      largest.forget();
    }
  }
}

/** Whether a rule blocks a call; counts the judgement. */
function asks({ judge, findings }: Standing, call: ReplayedCall): boolean {
  if (!judge) return false;
  findings.asked += 1;
  const judgement = judge.judge(call);
  if (judgement === 'blocked') return true;
  if (judgement !== 'passed') findings.unjudged[judgement] = (findings.unjudged[judgement] ?? 0) + 1;
  return false;
}

function block(findings: RuleFindings, { costPico }: ReplayedCall): Verdict {
  findings.blocked += 1;
  const unpricedReason = costPico === null ? 'call_unpriced' : null;
  return note(findings, { ruleId: findings.ruleId, action: 'block', savedPico: costPico, unpricedReason });
}

export function note(findings: RuleFindings, verdict: Verdict): Verdict {
  findings.savedPico += verdict.savedPico ?? 0n;
  const { unpricedReason: reason } = verdict;
  if (reason !== null) findings.unpriced[reason] = (findings.unpriced[reason] ?? 0) + 1;
  return verdict;
}

function atLeastZero(pico: Pico): Pico {
  return pico < 0n ? 0n : pico;
}

/** Reasons why a savings run was started. */
export const SAVINGS_CAUSES = ['request', 'rule_change', 'schedule'] as const;
export type SavingsCause = (typeof SAVINGS_CAUSES)[number];
