/**
 * An independent, plain model of the savings of rules: for each call it examines all earlier calls again. It shares
 * only the form of its answer with the product.
 */

export interface PlainRule {
  id: string;
  type: string;
  /** As in the API; dollars in pico-dollars. */
  limit: number | bigint | string;
  team?: string;
  feature?: string;
  model?: string;
}

export interface PlainCall {
  id: string;
  /** Microseconds. */
  at: bigint;
  isOk: boolean;
  biller: string;
  model: string;
  team: string | null;
  feature: string | null;
  session: string | null;
  stop: string | null;
  /** Null: not reported. */
  inputTokens: number | null;
  outputTokens: number | null;
  prompt: string | null;
  /** Pico-dollars; null: unpriced. */
  cost: bigint | null;
  /** Its cost as a call of another model; null: unknown. */
  costAs(model: string): bigint | null;
}

export interface PlainOutcome {
  call: PlainCall;
  rule: string | null;
  action: 'block' | 'downgrade' | null;
  /** Null: not known. */
  saved: bigint | null;
  /** By rule: the reason why it could not judge the call. */
  unjudged: Record<string, string>;
  /** Rules that were evaluated. */
  asked: string[];
}

const TOOL_STOPS = ['tool_use', 'tool_calls', 'function_call'];

function concerns(rule: PlainRule, call: PlainCall): boolean {
  if (rule.team !== undefined && rule.team !== call.team) return false;
  if (rule.feature !== undefined && rule.feature !== call.feature) return false;
  return rule.model === undefined || rule.model === call.model;
}

/** Cost of a call after the rules, if known. */
const costAfter = ({ call, saved, action }: PlainOutcome) =>
  call.cost === null ? null : call.cost - (action === 'downgrade' ? (saved ?? 0n) : 0n);

/** true: it breaks the rule; a text: the reason why it cannot be judged. */
function breaks(rule: PlainRule, call: PlainCall, before: readonly PlainOutcome[]): boolean | string {
  const sameSession = before.filter((one) => one.call.session === call.session);
  switch (rule.type) {
    case 'token_ceiling':
      if (call.inputTokens === null || call.outputTokens === null) return 'no_usage';
      return call.inputTokens + call.outputTokens > Number(rule.limit);
    case 'session_budget_usd': {
      if (call.session === null) return 'no_session';
      const costs = sameSession.map(costAfter);
      const known = costs.reduce<bigint>((sum, cost) => sum + (cost ?? 0n), 0n);
      if (known >= BigInt(rule.limit)) return true;
      return costs.includes(null) ? 'session_cost_unknown' : false;
    }
    case 'duplicate_window_seconds': {
      if (call.prompt === null) return 'no_prompts';
      if (call.inputTokens === null) return 'no_usage';
      return before.some(
        ({ call: other }) =>
          other.isOk &&
          other.biller === call.biller &&
          other.model === call.model &&
          other.prompt === call.prompt &&
          other.inputTokens === call.inputTokens &&
          call.at - other.at <= BigInt(Number(rule.limit) * 1_000_000),
      );
    }
    case 'max_tool_calls': {
      if (call.session === null) return 'no_session';
      const asking = sameSession.filter(({ call: { stop } }) => stop !== null && TOOL_STOPS.includes(stop));
      if (asking.length > Number(rule.limit)) return true;
      return sameSession.some(({ call: { stop, isOk } }) => stop === null && isOk)
        ? 'stop_reason_unknown'
        : false;
    }
    default:
      return false;
  }
}

function outcomeOf(
  rules: readonly PlainRule[],
  call: PlainCall,
  passed: readonly PlainOutcome[],
): PlainOutcome {
  const outcome: PlainOutcome = { call, rule: null, action: null, saved: null, unjudged: {}, asked: [] };
  for (const rule of rules.filter((one) => one.type !== 'model_downgrade' && concerns(one, call))) {
    outcome.asked.push(rule.id);
    const broken = breaks(
      rule,
      call,
      passed.filter((one) => concerns(rule, one.call)),
    );
    if (broken === true) return { ...outcome, rule: rule.id, action: 'block', saved: call.cost };
    if (broken !== false) outcome.unjudged[rule.id] = broken;
  }
  const downgrade = rules.find((one) => one.type === 'model_downgrade' && concerns(one, call));
  if (!downgrade) return outcome;
  const cost = call.costAs(String(downgrade.limit));
  const difference = call.cost === null || cost === null ? null : call.cost - cost;
  const saved = difference === null ? null : difference > 0n ? difference : 0n;
  outcome.asked.push(downgrade.id);
  return { ...outcome, rule: downgrade.id, action: 'downgrade', saved };
}

/** The outcome of each call, in the order of their times and ids. */
export function plainReplay(rules: readonly PlainRule[], calls: readonly PlainCall[]): PlainOutcome[] {
  const inOrder = [...calls].sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
  const outcomes: PlainOutcome[] = [];
  for (const call of inOrder) {
    const passed = outcomes.filter(({ action }) => action !== 'block');
    outcomes.push(outcomeOf(rules, call, passed));
  }
  return outcomes;
}

export interface PlainFindings {
  asked: number;
  blocked: number;
  downgraded: number;
  saved: bigint;
  unpriced: number;
  unjudged: Record<string, number>;
}

/** The sums of a rule. */
export function plainFindings(rule: string, outcomes: readonly PlainOutcome[]): PlainFindings {
  const own = outcomes.filter((one) => one.rule === rule);
  const unjudged: Record<string, number> = {};
  for (const { unjudged: reasons } of outcomes) {
    const reason = reasons[rule];
    if (reason !== undefined) unjudged[reason] = (unjudged[reason] ?? 0) + 1;
  }
  return {
    asked: outcomes.filter(({ asked }) => asked.includes(rule)).length,
    blocked: own.filter(({ action }) => action === 'block').length,
    downgraded: own.filter(({ action }) => action === 'downgrade').length,
    saved: own.reduce((sum, { saved }) => sum + (saved ?? 0n), 0n),
    unpriced: own.filter(({ saved }) => saved === null).length,
    unjudged,
  };
}
