"""
Answers each line of a command and its value: `connect` with options, `call` with what a client would make and get,
`change` and `shutdown`. Requests to the service are noted, as are errors and verdicts.
"""

import gzip
import json
import sys

from trueup_sdk import Trueup, TrueupBlockedError, labeled
from trueup_sdk.calls import CallRequest, Reading
from trueup_sdk.transport import send


class Connection:
    def __init__(self):
        self.sent, self.paths, self.notes, self.errors = [], [], [], []
        self.is_away = False

    def transport(self, request):
        self.paths.append(request.url.split("/", 3)[3])
        if self.is_away:
            raise OSError("connection refused")
        if request.body is not None:
            is_packed = request.headers.get("content-encoding") == "gzip"
            self.sent.append((gzip.decompress(request.body) if is_packed else request.body).decode())
        return send(request)

    def connect(self, options):
        self.trueup = Trueup(
            flush_at_exit=False,
            flush_interval_seconds=60,
            transport=self.transport,
            on_verdict=lambda note: self.notes.append(note._asdict()),
            on_error=lambda error: self.errors.append(str(error)),
            **options,
        )
        return self.trueup.ready(20)

    def call(self, asked):
        body = {"messages": [{"role": "user", "content": content} for content in asked["contents"]]}
        request = CallRequest(
            "openai", asked["model"], "https://api.openai.com/v1", body, asked.get("max_output_tokens")
        )
        try:
            call = labeled(self.trueup.recorder.begin, **asked.get("labels", {}))(request)
        except TrueupBlockedError as error:
            fields = ("rule_id", "rule_name", "rule_type", "prevented_usd")
            return {"blocked": {name: getattr(error, name) for name in fields}}
        reading = Reading(
            response_id=asked.get("id"), usage=asked.get("usage"), stop_reason=asked.get("stop_reason")
        )
        call.end("ok", reading)
        return {"model": call.new_model or asked["model"]}

    def change(self, asked):
        self.is_away = asked.get("is_away", self.is_away)
        return self.trueup.refresh(20)

    def flush(self, _):
        return self.trueup.flush(20)

    def shutdown(self, _):
        is_sent = self.trueup.shutdown(20)
        return {
            "is_sent": is_sent,
            "sent": "".join(self.sent),
            "paths": self.paths,
            "notes": self.notes,
            "errors": self.errors,
            "stats": self.trueup.stats._asdict(),
        }


connection = Connection()
for line in sys.stdin:
    command, value = json.loads(line)
    if command == "connect":
        connection = Connection()
    print(json.dumps(getattr(connection, command)(value)), flush=True)
