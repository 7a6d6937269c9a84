"""Runs the example of the package's README as it is there, and sends what it has reported."""

import sys

import run

import trueup_sdk

settings = run.read_run()
exec(compile(settings["example"], "README.md", "exec"), {"__name__": "example"})  # noqa: S102 - our own text
assert trueup_sdk.shutdown(), "events are left"
print(sys.modules["openai"].__version__)
