"""Answers each line of a function's name and its argument with what the Python package computes."""

import json
import sys

from trueup_sdk.money import decimal_of, pico_of
from trueup_sdk.patterns import PatternTables
from trueup_sdk.prices import PriceTable
from trueup_sdk.prompts import prompts_of
from trueup_sdk.texts import estimate_tokens, prompt_text
from trueup_sdk.usage import tokens_of


def tokens(usage):
    found = tokens_of(usage)
    return None if found is None else found._asdict()


def dollars(usd):
    pico = pico_of(usd)
    return None if pico is None else decimal_of(pico)


def cost(asked):
    found = tokens_of(asked["usage"])
    pico = PriceTable(asked["pricing"]).cost(asked["model"], found, asked["is_batch"])
    return None if pico is None else decimal_of(pico)


def search(asked):
    return PatternTables(asked["served"]).search(asked["text"])


def judge(asked):
    return PatternTables(asked["served"]).judge(asked["body"])


def is_refused(served):
    try:
        PatternTables(served)
        return False
    except ValueError:
        return True


FUNCTIONS = {
    "search": search,
    "judge": judge,
    "prompts": prompts_of,
    "is_refused": is_refused,
    "tokens": tokens,
    "dollars": dollars,
    "cost": cost,
    "estimate": estimate_tokens,
    "prompt": prompt_text,
}

for line in sys.stdin:
    name, value = json.loads(line)
    print(json.dumps(FUNCTIONS[name](value)), flush=True)
