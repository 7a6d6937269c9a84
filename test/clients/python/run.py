"""What every client program does, whatever its instrumentation: read the run file and make the planned calls.

The providers' host names lead to this machine, where the fakes listen, so that a client is configured with the
host that it would really use. Nothing here touches telemetry.
"""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

NAMES = {"api.openai.com", "api.anthropic.com"}
_real_getaddrinfo = socket.getaddrinfo


def _getaddrinfo(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    return _real_getaddrinfo("127.0.0.1" if name in NAMES else host, *args, **kwargs)


socket.getaddrinfo = _getaddrinfo


def read_run():
    """The run file named on the command line; see test/clients/support/clientRun.ts for its fields."""
    with open(sys.argv[1], encoding="utf-8") as file:
        return json.load(file)


def prompt_of(call):
    return f"Please do {call['id']}"


def make_calls(plan, makers):
    """Makes the calls, batch after batch; prints how many ended in an error for the application."""
    failures = 0
    with ThreadPoolExecutor(max_workers=4) as pool:
        for batch in sorted({call["batch"] for call in plan}):
            calls = [call for call in plan if call["batch"] == batch]
            for future in [pool.submit(makers[call["api"]], call) for call in calls]:
                if future.exception() is not None:
                    failures += 1
    print(json.dumps({"failures": failures}))


def read_stream(stream, call):
    """Reads a stream to its end, or leaves it after its first words when the call is one to be aborted."""
    seen = 0
    for _part in stream:
        seen += 1
        if call["fate"] == "abort" and seen == 2:
            stream.close()
            return


def openai_makers(client):
    """Makers for the official OpenAI client."""

    def chat(call):
        options = {"model": call["model"], "messages": [{"role": "user", "content": prompt_of(call)}]}
        if not call["isStream"]:
            return client.chat.completions.create(**options)
        if call["asksForUsage"]:
            options["stream_options"] = {"include_usage": True}
        return read_stream(client.chat.completions.create(stream=True, **options), call)

    def responses(call):
        options = {"model": call["model"], "input": prompt_of(call)}
        if not call["isStream"]:
            return client.responses.create(**options)
        return read_stream(client.responses.create(stream=True, **options), call)

    def embeddings(call):
        return client.embeddings.create(model=call["model"], input=prompt_of(call))

    return {"chat": chat, "responses": responses, "embeddings": embeddings}


def message_options(call):
    return {
        "model": call["model"],
        "max_tokens": 64,
        "messages": [{"role": "user", "content": prompt_of(call)}],
    }


def anthropic_makers(client):
    """Makers for the official Anthropic client."""

    def messages(call):
        options = message_options(call)
        if call["isStreamHelper"]:
            with client.messages.stream(**options) as stream:
                return stream.get_final_message()
        if call["isStream"]:
            return read_stream(client.messages.create(stream=True, **options), call)
        return client.messages.create(**options)

    return {"messages": messages}
