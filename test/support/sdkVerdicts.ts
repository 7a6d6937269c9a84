import { PriceTable } from '../../sdk/js/src/prices.js';
import { type CallBefore, Enforcer, preventedUsd } from '../../sdk/js/src/rules.js';
import type { CaseCall, CaseVerdict, Prices, ServedRule } from './ruleCases.js';

/** The verdicts of the JavaScript package on calls in order, each of which ends before the next one begins. */
export function sdkVerdicts(
  served: readonly ServedRule[],
  calls: readonly CaseCall[],
  prices: Prices,
): CaseVerdict[] {
  const table = new PriceTable(prices);
  const enforcer = new Enforcer();
  enforcer.setRules(served);
  return calls.map((call) => {
    const before = beforeOf(call);
    const { verdict, rule, model, observed } = enforcer.judge(before);
    const isBlocked = verdict === 'blocked';
    if (!isBlocked) {
      const { status, stop_reason: stopReason, usage } = call.answer;
      const tokens = usage && {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cacheRead: usage.cache_read,
        cacheWrite: usage.cache_creation,
      };
      const cost = tokens && (table.cost(model ?? call.model, tokens) ?? null);
      enforcer.letThrough(before, { status, stopReason, cost });
    }
    return {
      verdict,
      rule_id: rule?.id ?? null,
      model,
      prevented_usd: isBlocked ? preventedUsd(before, table) : null,
      observed: [...observed],
    };
  });
}

function beforeOf(call: CaseCall): CallBefore {
  const prompts = call.prompts ?? [];
  return {
    at: call.at_ms,
    biller: call.biller,
    model: call.model,
    team: call.team_id,
    feature: call.feature,
    session: call.session_id,
    inputTokens: () => call.input_tokens,
    maxOutputTokens: call.max_output_tokens,
    promptDigest: () => (prompts.length === 0 ? null : JSON.stringify(prompts)),
  };
}
