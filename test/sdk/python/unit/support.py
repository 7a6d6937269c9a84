"""A service in memory, and connections to it."""

import gzip
import json
import threading
import time

from trueup_sdk import Trueup
from trueup_sdk.calls import CallRequest, Reading
from trueup_sdk.transport import Response

PRICES = {
    "large": {"in_per_mtok": 3, "out_per_mtok": 15},
    "small": {"in_per_mtok": 0.25, "out_per_mtok": 1.25},
}
NO_SCOPE = {"team_id": None, "feature": None, "model": None}


def a_rule(kind, config, *, mode="block", rule_id="r1", **scope):
    return {
        "id": rule_id,
        "name": None,
        "type": kind,
        "mode": mode,
        "config": config,
        "scope": {**NO_SCOPE, **scope},
    }


class Service:
    """Takes events, serves rules and prices, and fails as it is told to."""

    def __init__(self, rules=()):
        self.rules = list(rules)
        self.prices = PRICES
        self.patterns = {"version": "none", "patterns": [], "not_evaluated": [], "automata": []}
        self.version = 1
        self.requests = []
        self.events = []
        # Answers to the next requests that send events, and to those for the configuration.
        self.answers = []
        self.config_answers = []
        self.is_away = False
        self.lock = threading.Lock()

    def __call__(self, request):
        with self.lock:
            self.requests.append(request)
        if self.is_away:
            raise OSError("connection refused")
        if request.method == "POST":
            return self._take(request)
        if request.url.endswith("/enforcement/config"):
            if self.config_answers:
                return self.config_answers.pop(0)
            return self._with_etag(
                request, {"version": str(self.version), "poll_seconds": 60, "rules": self.rules}
            )
        if request.url.endswith("/enforcement/patterns"):
            return self._with_etag(request, self.patterns)
        return self._with_etag(request, {"pricing": self.prices})

    def _with_etag(self, request, body):
        etag = f'"{self.version}"'
        if request.headers.get("if-none-match") == etag:
            return Response(304, {"etag": etag}, b"")
        return Response(200, {"etag": etag}, json.dumps(body).encode())

    def _take(self, request):
        if self.answers:
            answer = self.answers.pop(0)
            if answer.status >= 300:
                return answer
        else:
            answer = Response(202, {}, b'{"accepted":1}')
        body = request.body
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        with self.lock:
            self.events.extend(json.loads(body)["events"])
        return answer

    @property
    def posts(self):
        return [request for request in self.requests if request.method == "POST"]


def connect(transport, **options):
    """A connection that sends only when it is flushed, unless the options say otherwise."""
    options.setdefault("flush_interval_seconds", 60)
    options.setdefault("enforcement", False)
    return Trueup(
        url="http://service.test", api_key="tru_test", transport=transport, flush_at_exit=False, **options
    )


def a_request(content="hello", model="large", **more):
    fields = {
        "provider": "openai",
        "model": model,
        "base_url": "https://api.openai.com/v1",
        "body": {"model": model, "messages": [{"role": "user", "content": content}]},
        "max_output_tokens": 10,
    }
    fields.update(more)
    return CallRequest(**fields)


def record(trueup, content="hello", usage=None, status="ok", **more):
    """Makes one call and ends it."""
    call = trueup.recorder.begin(a_request(content, **more))
    call.end(status, Reading(usage=usage or {"prompt_tokens": 3, "completion_tokens": 2}))
    return call


def eventually(condition, seconds=20):
    """Waits until the condition holds. Raises AssertionError where it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("the condition never held")
        time.sleep(0.005)


def threads_since(before):
    """Threads that have started since `before` was `set(threading.enumerate())` and still run."""
    return set(threading.enumerate()) - before
