"""
An application whose calls of the official clients meet rules of enforcement: a ceiling of tokens, and a downgrade of
each model whose name ends in `-large`. Prints how each call ended. The run file has `kind`, `port` and `clients`.
"""

import asyncio
import json

import run
from either import entered, got, items

from trueup_sdk import Trueup, TrueupBlockedError

settings = run.read_run()
is_async = settings["kind"] == "async"
ORIGIN = f"http://127.0.0.1:{settings['port']}"
LONG = "x" * 4_000

trueup = Trueup(flush_at_exit=False)
assert trueup.ready(20)


def openai_calls(end):
    import openai

    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = trueup.observe(make(api_key="sk-test", base_url=f"{ORIGIN}/openai/v1"))

    def options(content):
        return {"model": f"gpt{end}", "messages": [{"role": "user", "content": content}], "max_tokens": 10}

    chat = client.chat.completions
    return {
        "create": lambda text: chat.create(**options(text)),
        "stream": lambda text: chat.create(**options(text), stream=True),
        "helper": lambda text: use(chat.stream(**options(text))),
        "raw": lambda text: chat.with_raw_response.create(**options(text)),
        "copy": lambda text: client.with_options(timeout=9).chat.completions.create(**options(text)),
        "responses": lambda text: client.responses.create(model=f"gpt{end}", input=text),
        "embeddings": lambda text: client.embeddings.create(model=f"embedding{end}", input=text),
    }


def anthropic_calls(end):
    import anthropic

    make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    client = trueup.observe(make(api_key="key", base_url=f"{ORIGIN}/anthropic"))

    def options(content):
        return {"model": f"claude{end}", "max_tokens": 10, "messages": [{"role": "user", "content": content}]}

    return {
        "create": lambda text: client.messages.create(**options(text)),
        "stream": lambda text: client.messages.create(**options(text), stream=True),
        "helper": lambda text: use(client.messages.stream(**options(text))),
    }


def google_calls(end):
    from google import genai

    client = trueup.observe(genai.Client(api_key="key", http_options={"base_url": f"{ORIGIN}/google"}))
    models = (client.aio if is_async else client).models
    return {
        "content": lambda text: models.generate_content(model=f"gemini{end}", contents=text),
        "stream": lambda text: read(models.generate_content_stream(model=f"gemini{end}", contents=text)),
    }


def mistral_calls(end):
    try:
        from mistralai import Mistral
    except ImportError:
        from mistralai.client import Mistral

    client = trueup.observe(Mistral(api_key="key", server_url=f"{ORIGIN}/mistral"))
    kind = "_async" if is_async else ""

    def options(content):
        return {"model": f"mistral{end}", "messages": [{"role": "user", "content": content}]}

    return {
        "complete": lambda text: getattr(client.chat, f"complete{kind}")(**options(text)),
        "stream": lambda text: getattr(client.chat, f"stream{kind}")(**options(text)),
    }


def cohere_calls(end):
    import cohere

    client = trueup.observe((cohere.AsyncClientV2 if is_async else cohere.ClientV2)("key", base_url=f"{ORIGIN}/cohere"))

    def options(content):
        return {"model": f"command{end}", "messages": [{"role": "user", "content": content}]}

    return {
        "chat": lambda text: client.chat(**options(text)),
        "stream": lambda text: read(client.chat_stream(**options(text))),
    }


def bedrock_calls(end):
    import boto3

    keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = trueup.observe(boto3.client("bedrock-runtime", endpoint_url=f"{ORIGIN}/bedrock", **keys))

    def body(content):
        return json.dumps({"max_tokens": 9, "messages": [{"role": "user", "content": content}]})

    def messages(content):
        return [{"role": "user", "content": [{"text": content}]}]

    return {
        "converse": lambda text: client.converse(modelId=f"nova{end}", messages=messages(text)),
        "invoke": lambda text: client.invoke_model(modelId=f"nova{end}", body=body(text)),
    }


async def use(manager):
    async with entered(manager) as stream:
        return await items(stream)


async def read(stream):
    return await items(await got(stream))


async def how(call, text):
    """How one call ends. The provider knows none of the models, so a call that is made fails."""
    try:
        await got(call(text))
    except TrueupBlockedError as error:
        return f"blocked by {error.rule_type}"
    except Exception:  # noqa: BLE001 - the provider refuses each call that reaches it
        return "sent"
    return "answered"


async def make_all():
    ended = {}
    for name in settings["clients"]:
        for end in ("", "-large"):
            for method, call in globals()[f"{name}_calls"](end).items():
                ended[f"{name}{end} {method}"] = [await how(call, LONG), await how(call, "short")]
    return ended


ended = asyncio.run(make_all())
assert trueup.shutdown()
print(json.dumps(ended))
