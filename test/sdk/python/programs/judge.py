"""Answers each line of rules, prices and calls in order with their verdicts, as the Python package judges them."""

import json
import sys

from trueup_sdk.money import Tokens
from trueup_sdk.prices import PriceTable
from trueup_sdk.rules import CallBefore, Enforcer, prevented_usd


class Before(CallBefore):
    def __init__(self, call):
        super().__init__(
            at=call["at_ms"],
            biller=call["biller"],
            model=call["model"],
            team=call["team_id"],
            feature=call["feature"],
            session=call["session_id"],
            max_output_tokens=call["max_output_tokens"],
        )
        self.call = call

    def input_tokens(self):
        return self.call["input_tokens"]

    def prompt_digest(self):
        prompts = self.call["prompts"]
        return json.dumps(prompts) if prompts else None


def tokens_of(usage):
    if usage is None:
        return None
    return Tokens(usage["input_tokens"], usage["cache_read"], usage["cache_creation"], usage["output_tokens"])


def verdict_on(call, enforcer, table):
    before = Before(call)
    verdict, rule, model, observed = enforcer.judge(before)
    is_blocked = verdict == "blocked"
    if not is_blocked:
        answer = call["answer"]
        tokens = tokens_of(answer["usage"])
        cost = None if tokens is None else table.cost(model or call["model"], tokens)
        enforcer.let_through(before, answer["status"], answer["stop_reason"], cost)
    return {
        "verdict": verdict,
        "rule_id": None if rule is None else rule.id,
        "model": model,
        "prevented_usd": prevented_usd(before, table) if is_blocked else None,
        "observed": list(observed),
    }


for line in sys.stdin:
    asked = json.loads(line)
    enforcer, table = Enforcer(), PriceTable(asked["prices"])
    enforcer.set_rules(asked["rules"])
    verdicts = [verdict_on(call, enforcer, table) for call in asked["calls"]]
    print(json.dumps(verdicts), flush=True)
