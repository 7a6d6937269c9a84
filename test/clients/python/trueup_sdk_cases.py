"""
An application that makes the calls of one case (test/clients/support/sdkCases.ts) with the official clients, as they
are or observed by trueup-sdk, and prints the answers. The run file has `case`, `kind` (sync or async), `port`,
`isObserved` and `createdAt`.
"""

import asyncio
import functools
import gc
import inspect
import io
import json
import pathlib
import tempfile

import run
from either import entered, error_of, got, items, print_seen

from trueup_sdk import Trueup, labeled, with_labels

settings = run.read_run()
is_async = settings["kind"] == "async"
port = settings["port"]
BEDROCK, VERTEX = "bedrock-runtime.us-east-1.amazonaws.com", "us-east5-aiplatform.googleapis.com"
run.NAMES.update({"api.x.ai", "acme.openai.azure.com", BEDROCK, VERTEX})
ORIGIN = f"http://127.0.0.1:{port}"
MESSAGES = [{"role": "user", "content": "Hello"}]
GEMINI = "gemini-2.5-flash"

errors = []
trueup = Trueup(enforcement=False, flush_at_exit=False, team="growth", on_error=errors.append)


def observe(client, **labels):
    return trueup.observe(client, **labels) if settings["isObserved"] else client


def own(**labels):
    """The labels of one call, which a client that is not observed does not take."""
    return {"trueup": labels} if settings["isObserved"] else {}


def openai_client(base_url=None):
    import openai

    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    return observe(make(api_key="sk-test-12345", base_url=base_url or f"{ORIGIN}/v1"))


async def openai_chat():
    client = openai_client()
    chat = client.chat.completions
    options = {"model": "gpt-4o", "messages": MESSAGES}
    seen = [await got(chat.create(**options, **own(feature="whole", session="s-1")))]
    with_usage = {"stream": True, "stream_options": {"include_usage": True}}
    stream = await got(chat.create(**options, **with_usage, **own(feature="stream")))
    seen += [type(stream).__name__, await items(stream)]
    async with entered(chat.create(**options, stream=True, **own(feature="left"))) as stream:
        seen.append(await items(stream, 1))
    async with entered(chat.stream(**options, **with_usage_of_helper(), **own(feature="helper"))) as stream:
        seen.append([event.type for event in await items(stream)])
        seen.append(await got(stream.get_final_completion()))
    raw = await got(chat.with_raw_response.create(**options, **own(feature="raw")))
    seen += [type(raw).__name__, raw.headers["content-type"], raw.status_code, await got(raw.parse())]
    async with entered(chat.with_streaming_response.create(**options, **own(feature="lazy"))) as response:
        seen += [type(response).__name__, await got(response.json())]
    lines = chat.with_streaming_response.create(**options, **with_usage, **own(feature="lines"))
    async with entered(lines) as response:
        seen.append(await items(response.iter_lines()))
    copy = client.with_options(max_retries=0, timeout=20)
    seen.append(await got(copy.chat.completions.create(**options, **own(feature="copy"))))
    seen.append(await error_of(lambda: chat.create(model="gpt-0-absent", messages=MESSAGES, **own(feature="failed"))))
    with with_labels(feature="context", user="u-1"):
        seen.append(await got(chat.create(**options)))
    seen.append(await got(labeled(chat.create, feature="labeled")(**options)))
    return seen


def with_usage_of_helper():
    return {"stream_options": {"include_usage": True}}


async def openai_responses():
    client = openai_client()
    options = {"model": "gpt-4o", "input": "Hello"}
    seen = [await got(client.responses.create(**options, **own(feature="whole")))]
    seen.append(await items(await got(client.responses.create(**options, stream=True, **own(feature="stream")))))
    async with entered(client.responses.stream(**options, **own(feature="helper"))) as stream:
        seen.append(await got(stream.get_final_response()))
    started = await got(client.responses.create(**options, background=True, store=True))
    seen += [started, await got(client.responses.retrieve(started.id)), await got(client.responses.retrieve(started.id))]
    return seen


async def openai_media():
    client = openai_client()
    speech = await got(client.audio.speech.create(model="gpt-4o-mini-tts", voice="alloy", input="Hi"))
    transcribe = client.audio.transcriptions.create
    file = ("sound.mp3", b"sound")
    return [
        type(speech).__name__,
        speech.content,
        await got(transcribe(model="gpt-4o-transcribe", file=file, **own(feature="minutes"))),
        await got(client.images.generate(model="gpt-image-1", prompt="a cat")),
        await got(client.embeddings.create(model="text-embedding-3-small", input="Hello")),
        await got(client.completions.create(model="gpt-3.5-turbo-instruct", prompt="Hello", **own(feature="text"))),
    ]


async def openai_batch():
    client = openai_client()
    batch = await got(client.batches.retrieve("batch_1"))
    first = await got(client.files.content(batch.output_file_id))
    async with entered(client.files.with_streaming_response.content("file-out")) as second:
        content = await got(second.read())
    return [batch, first.text, content]


async def openai_hosts():
    import openai

    make = openai.AsyncAzureOpenAI if is_async else openai.AzureOpenAI
    endpoint = f"http://acme.openai.azure.com:{port}"
    azure = observe(make(api_key="key", azure_endpoint=endpoint, api_version="2024-10-21"))
    xai = openai_client(f"http://api.x.ai:{port}/v1")
    return [
        await got(azure.chat.completions.create(model="gpt-4o", messages=MESSAGES)),
        await got(azure.with_options(timeout=9).chat.completions.create(model="gpt-4o", messages=MESSAGES)),
        await got(xai.chat.completions.create(model="grok-4", messages=MESSAGES)),
    ]


async def anthropic_messages():
    import anthropic

    client = observe((anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(api_key="key", base_url=ORIGIN))
    options = {"model": "claude-haiku-4-5", "max_tokens": 64, "messages": MESSAGES}
    messages = client.messages
    seen = [await got(messages.create(**options, **own(feature="whole")))]
    stream = await got(messages.create(**options, stream=True, **own(feature="stream")))
    seen += [type(stream).__name__, await items(stream)]
    async with entered(messages.stream(**options, **own(feature="helper"))) as stream:
        seen += [await items(stream.text_stream), await got(stream.get_final_message())]
    async with entered(messages.stream(**options, **own(feature="left"))) as stream:
        seen.append(await items(stream, 1))
    raw = await got(messages.with_raw_response.create(**options, **own(feature="raw")))
    seen += [type(raw).__name__, await got(raw.parse())]
    async with entered(messages.with_streaming_response.create(**options, **own(feature="lazy"))) as response:
        seen.append(await got(response.json()))
    seen.append(await got(client.beta.messages.create(**options, **own(feature="beta"))))
    seen.append(await error_of(lambda: messages.create(**{**options, "model": "claude-absent"}, **own(feature="failed"))))
    for _ in range(2):
        seen.append(await items(await got(messages.batches.results("msgbatch_1"))))
    return seen


async def anthropic_clouds():
    import anthropic

    make_bedrock = anthropic.AsyncAnthropicBedrock if is_async else anthropic.AnthropicBedrock
    make_vertex = anthropic.AsyncAnthropicVertex if is_async else anthropic.AnthropicVertex
    keys = {"aws_access_key": "id", "aws_secret_key": "secret", "aws_region": "us-east-1"}
    bedrock = observe(make_bedrock(base_url=f"http://{BEDROCK}:{port}", **keys))
    place = {"base_url": f"http://{VERTEX}:{port}/v1", "region": "us-east5", "project_id": "p"}
    vertex = observe(make_vertex(**place, access_token="t"))
    seen = []
    for client, model in (
        (bedrock, "anthropic.claude-haiku-4-5-20251001-v1:0"),
        (vertex, "claude-haiku-4-5@20251001"),
    ):
        options = {"model": model, "max_tokens": 64, "messages": MESSAGES}
        seen.append(await got(client.messages.create(**options)))
        seen.append(await items(await got(client.messages.create(**options, stream=True))))
        async with entered(client.messages.stream(**options)) as stream:
            seen.append(await got(stream.get_final_message()))
    return seen


async def google_genai():
    from google import genai

    client = observe(genai.Client(api_key="key", http_options={"base_url": ORIGIN}))
    part = client.aio if is_async else client
    whole = {"model": GEMINI, "contents": "Hello?"}
    seen = [await got(part.models.generate_content(**whole, **own(feature="whole")))]
    seen.append(await items(await got(part.models.generate_content_stream(**whole, **own(feature="stream")))))
    seen.append(await got(part.chats.create(model="gemini-2.5-flash-lite").send_message("x")))
    stream = await got(part.models.generate_content_stream(**whole, **own(feature="left")))
    seen.append(await items(stream, 1))
    await got(stream.aclose() if is_async else stream.close())
    seen.append(await got(part.models.embed_content(model="gemini-embedding-001", contents="Hello")))
    seen.append(await error_of(lambda: part.models.generate_content(model="gemini-absent", contents="x")))
    for _ in range(2):
        seen.append(await got(part.batches.get(name="batches/b1")))
    return seen


async def google_batch_file():
    from google import genai

    client = observe(genai.Client(api_key="key", http_options={"base_url": ORIGIN}))
    part = client.aio if is_async else client
    job = await got(part.batches.get(name="batches/b2"))
    download = functools.partial(part.files.download, file=job.dest.file_name)
    seen = [job, await got(download())]
    if "destination" in inspect.signature(part.files.download).parameters:
        with tempfile.TemporaryDirectory() as folder:
            path, buffer = pathlib.Path(folder, "results.jsonl"), io.BytesIO()
            seen += [await got(download(destination=path)), path.read_bytes()]
            seen += [await got(download(destination=buffer)), buffer.getvalue()]
    return [*seen, await got(part.files.download(file="files/film"))]


def mistral_client():
    try:
        from mistralai import Mistral
    except ImportError:
        from mistralai.client import Mistral

    return observe(Mistral(api_key="key", server_url=ORIGIN))


async def mistral_batch():
    client = mistral_client()
    end = "_async" if is_async else ""
    get, listed = getattr(client.batch.jobs, f"get{end}"), getattr(client.batch.jobs, f"list{end}")
    download = getattr(client.files, f"download{end}")
    jobs = [await got(listed()), await got(get(job_id="job-2")), await got(get(job_id="job-2"))]
    first = await got(download(file_id="file-out"))
    content = await got(first.aread() if is_async else first.read())
    second = await got(download(file_id="file-out"))
    lines = await items(second.aiter_lines() if is_async else second.iter_lines())
    dropped = await got(download(file_id="file-out"))
    await got(dropped.aclose() if is_async else dropped.close())
    return [*jobs, type(first).__name__, content, lines, await error_of(lambda: download(file_id="absent"))]


async def mistral_chat():
    client = mistral_client()
    end = "_async" if is_async else ""
    options = {"model": "mistral-large-latest", "messages": MESSAGES}
    complete, stream = getattr(client.chat, f"complete{end}"), getattr(client.chat, f"stream{end}")
    seen = [await got(complete(**options, **own(feature="whole")))]
    events = await got(stream(**options, **own(feature="stream")))
    seen += [type(events).__name__, await items(events)]
    async with entered(stream(**options, **own(feature="left"))) as events:
        seen.append(await items(events, 1))
    fill, ask = getattr(client.fim, f"complete{end}"), getattr(client.agents, f"complete{end}")
    seen.append(await got(fill(model="codestral-latest", prompt="def f(", suffix="return 1", **own(feature="fill"))))
    seen.append(await got(ask(agent_id="ag:1:helper", messages=MESSAGES, **own(feature="agent"))))
    create = getattr(client.embeddings, f"create{end}")
    seen.append(await got(create(model="mistral-embed", inputs=["Hello"])))
    seen.append(await error_of(lambda: complete(model="mistral-absent", messages=MESSAGES)))
    return seen


async def cohere_chat():
    import cohere

    make_newer = cohere.AsyncClientV2 if is_async else cohere.ClientV2
    make_older = cohere.AsyncClient if is_async else cohere.Client
    newer = observe(make_newer("key", base_url=ORIGIN))
    older = observe(make_older("key", base_url=ORIGIN))
    options = {"model": "command-a-03-2025", "messages": MESSAGES}
    seen = [await got(newer.chat(**options, request_options={"max_retries": 3}, **own(feature="whole")))]
    seen.append(await items(newer.chat_stream(**options, **own(feature="stream"))))
    seen.append(await got(older.chat(model=options["model"], message="Hello", **own(feature="older"))))
    seen.append(await items(older.chat_stream(model=options["model"], message="Hello", **own(feature="lines"))))
    with with_labels(feature="threads"):
        embedded = older.embed(texts=["Hello"], model="embed-v4.0", input_type="classification")
        seen.append(await got(embedded))
    seen.append(await got(newer.rerank(model="rerank-v3.5", query="a", documents=["a", "b"])))
    seen.append(await error_of(lambda: newer.chat(model="command-absent", messages=MESSAGES)))
    return seen


async def bedrock_runtime():
    import boto3

    keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
    client = observe(boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=ORIGIN, **keys))
    nova, claude = "amazon.nova-lite-v1:0", "anthropic.claude-haiku-4-5-20251001-v1:0"
    messages = [{"role": "user", "content": [{"text": "Hello"}]}]
    body = json.dumps({"max_tokens": 9, "messages": MESSAGES})
    seen = [client.converse(modelId=nova, messages=messages, **own(feature="whole"))]
    stream = client.converse_stream(modelId=nova, messages=messages, **own(feature="stream"))["stream"]
    seen += [type(stream).__name__, list(stream)]
    stream = client.converse_stream(modelId=nova, messages=messages, **own(feature="left"))["stream"]
    seen.append(next(iter(stream)))
    stream.close()
    answer = client.invoke_model(modelId=claude, body=body, **own(feature="whole"))["body"]
    seen += [type(answer).__name__, answer.read(), answer.read()]
    answer = client.invoke_model(modelId=claude, body=body, **own(feature="lines"))["body"]
    seen.append(b"".join(answer.iter_chunks(7)))
    stream = client.invoke_model_with_response_stream(modelId=claude, body=body, **own(feature="stream"))["body"]
    seen.append(list(stream))
    seen.append(await error_of(lambda: client.converse(modelId="absent", messages=messages)))
    return seen


seen = asyncio.run(globals()[settings["case"]]())
gc.collect()
assert trueup.shutdown(), "events are left"
assert errors == [], errors
print_seen(seen)
