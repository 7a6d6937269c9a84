"""What schemathesis cannot tell from the documents."""

import re
from itertools import count

import schemathesis

KEY = re.compile(r'"?[A-Za-z0-9._:-]{1,128}"?')
calls = count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    """A generated key is soon the key of another request, and every answer 422: most requests get a new one."""
    key = case.headers.get("Idempotency-Key") if case.headers else None
    number = next(calls)
    if lacks_something(case) or not isinstance(key, str) or not KEY.fullmatch(key):
        return
    if number % 8:
        case.headers["Idempotency-Key"] = f"fuzz-{number}"


def lacks_something(case):
    """Whether a header was left out on purpose: a changed case would get it back."""
    phase = getattr(case.meta, "phase", None)
    scenario = getattr(getattr(phase, "data", None), "scenario", None)
    return "missing" in str(scenario).lower()
