"""
An application that makes a plan of calls with the clients of OpenAI and Anthropic, as they are or observed by
trueup-sdk, and prints the answers. The environment names what it uses: `OBSERVED`, `KIND` (sync or async).
"""

import asyncio
import json
import os

import anthropic
import openai
import run
from either import entered, got, items, text_of

from trueup_sdk import Trueup

settings = run.read_run()
is_async = os.environ["KIND"] == "async"
openai_client = (openai.AsyncOpenAI if is_async else openai.OpenAI)(
    api_key="sk-test", base_url=settings["openAiBaseUrl"]
)
anthropic_client = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(
    api_key="sk-ant-test", base_url=settings["anthropicBaseUrl"]
)


async def left(stream, call):
    """A stream to its end, or to its first words when the call is one to be aborted."""
    stream = await got(stream)
    seen = await items(stream, 2 if call["fate"] == "abort" else None)
    await got(stream.close())
    return seen


async def chat(call):
    options = {"model": call["model"], "messages": [{"role": "user", "content": run.prompt_of(call)}]}
    if not call["isStream"]:
        return await got(openai_client.chat.completions.create(**options))
    if call["asksForUsage"]:
        options["stream_options"] = {"include_usage": True}
    return await left(openai_client.chat.completions.create(stream=True, **options), call)


async def responses(call):
    options = {"model": call["model"], "input": run.prompt_of(call)}
    if not call["isStream"]:
        return await got(openai_client.responses.create(**options))
    return await left(openai_client.responses.create(stream=True, **options), call)


async def embeddings(call):
    return await got(openai_client.embeddings.create(model=call["model"], input=run.prompt_of(call)))


async def messages(call):
    options = run.message_options(call)
    if call["isStreamHelper"]:
        async with entered(anthropic_client.messages.stream(**options)) as stream:
            if call["fate"] == "abort":
                return await items(stream, 2)
            return await got(stream.get_final_message())
    if call["isStream"]:
        return await left(anthropic_client.messages.create(stream=True, **options), call)
    return await got(anthropic_client.messages.create(**options))


async def make_all():
    makers = {"chat": chat, "responses": responses, "embeddings": embeddings, "messages": messages}
    seen = []
    for call in settings["plan"]:
        try:
            seen.append(text_of(await makers[call["api"]](call)))
        except Exception as error:  # noqa: BLE001 - an error is an answer too
            seen.append(f"{type(error).__name__} {getattr(error, 'status_code', None)}")
    return seen


errors = []
trueup = Trueup(enforcement=False, flush_at_exit=False, on_error=errors.append)
if os.environ.get("OBSERVED") == "1":
    trueup.observe(openai_client)
    trueup.observe(anthropic_client)
seen = asyncio.run(make_all())
assert trueup.shutdown() and errors == [], errors
print(json.dumps({"failures": 0, "seen": seen, "stats": trueup.stats._asdict()}))
