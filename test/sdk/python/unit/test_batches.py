import asyncio
import io
import json
import os
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

from standins import Response, a_chat
from support import Service, connect

ENDED = "2026-09-21T13:33:20Z"
ENDED_MS = "2026-09-21T13:33:20.000Z"
ENDED_SECONDS = 1_789_997_600
CLOCK = 1_790_000_000_000
GEMINI_USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 2}


def lines_of(*values):
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def an_answer(response_id=None):
    answer = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": GEMINI_USAGE}
    return {"response": {**answer, "responseId": response_id} if response_id else answer}


class GoogleApi:
    """As much of the object below Google's client as the downloads meet."""

    def __init__(self, name, content):
        metadata = {"endTime": ENDED, "model": "models/gemini-2", "output": {"responsesFile": f"files/{name}"}}
        self.job = {"name": f"batches/{name}", "metadata": metadata}
        self.content = content

    def request(self, method, path, body=None):
        return SimpleNamespace(body=json.dumps(self.job))

    async def async_request(self, method, path, body=None):
        return self.request(method, path)

    def request_streamed(self, method, path, body=None):
        yield

    async_request_streamed = request_streamed

    def _written(self, destination, parts):
        if destination is None:
            return self.content
        if isinstance(destination, (str, os.PathLike)):
            with open(destination, "wb") as file:
                file.writelines(parts)
        else:
            for part in parts:
                destination.write(part)
        return None

    def _parts(self):
        if isinstance(self.content, BaseException):
            raise self.content
        # Lines and parts end at different places.
        return [self.content[start : start + 7] for start in range(0, len(self.content), 7)]

    def download_file(self, path, *, destination=None):
        return self._written(destination, self._parts())

    async def async_download_file(self, path, *, destination=None):
        return self._written(destination, self._parts())


class Google:
    def __init__(self, name, content):
        self._api_client = GoogleApi(name, content)
        self.models = SimpleNamespace()
        self.aio = SimpleNamespace(models=SimpleNamespace())


Google.__module__ = "google.genai.client"


class Part:
    """A part of Mistral's client, and its `httpx` below."""

    def __init__(self, answers):
        self._answers = answers

    def _answer(self, request):
        chunks = self._answers[request.url.path]
        if isinstance(chunks, dict):
            chunks = [json.dumps(chunks).encode()]
        return Response(chunks, content_type="application/octet-stream")

    def do_request(self, *, request, stream=False):
        response = self._answer(request)
        if not stream:
            response.read()
        return response

    async def do_request_async(self, *, request, stream=False):
        response = self._answer(request)
        if not stream:
            await response.aread()
        return response


class Mistral:
    def __init__(self, answers):
        self.chat = Part(answers)
        self.files = Part(answers)
        self.batch = SimpleNamespace(jobs=Part(answers))


Mistral.__module__ = "mistralai.client.sdk"


def a_get(path):
    url = SimpleNamespace(scheme="https", host="api.mistral.ai", port=None, path=path)
    return {"request": SimpleNamespace(method="GET", url=url, content=b"")}


def an_item(index, body=None, status=200):
    body = body or a_chat(f"cmpl-{index}")
    return {"id": f"r-{index}", "custom_id": f"c-{index}", "response": {"status_code": status, "body": body}}


EMBEDDING = {"object": "list", "model": "mistral-embed", "usage": {"prompt_tokens": 9}}


class Batches(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.errors = []
        self.trueup = connect(self.service, on_error=self.errors.append)
        self.addCleanup(self.trueup.shutdown, 20)

    def events(self):
        self.assertTrue(self.trueup.flush(20))
        self.assertEqual(self.errors, [])
        taken, self.service.events = self.service.events, []
        return taken

    def facts(self, *names):
        return [tuple(event.get(name) for name in names) for event in self.events()]

    def test_answers_in_the_file_of_a_google_batch_are_its_calls_however_it_is_downloaded(self):
        answers = an_answer("g-1"), {"error": {"code": 3}}, an_answer(), an_answer("g-4")
        content = lines_of(*answers).rstrip()
        api = self.trueup.observe(Google("whole", content), team="growth")._api_client
        api.request("get", "batches/whole")
        path = "files/whole:download?alt=media"
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "results.jsonl")
            buffer, buffer_of_async = io.BytesIO(), io.BytesIO()
            ways = [
                lambda: api.download_file(path),
                lambda: api.download_file(path, destination=file),
                lambda: api.download_file(path, destination=buffer),
                lambda: asyncio.run(api.async_download_file(path)),
                lambda: asyncio.run(api.async_download_file(path, destination=file)),
                lambda: asyncio.run(api.async_download_file(path, destination=buffer_of_async)),
            ]
            seen = [
                (request_id, "batches/whole", True, "gemini-2", ENDED_MS, "growth")
                for request_id in ("g-1", "files/whole/2", "g-4")
            ]
            for number, way in enumerate(ways):
                with self.subTest(way=number):
                    self.assertEqual(way(), content if number in (0, 3) else None)
                    names = ("request_id", "batch_id", "is_batch", "model", "timestamp", "team_id")
                    self.assertEqual(self.facts(*names), seen)
            with open(file, "rb") as written:
                self.assertEqual([written.read(), buffer.getvalue(), buffer_of_async.getvalue()], [content] * 3)

    def test_a_file_of_a_batch_that_this_process_has_not_seen_has_one_time_however_often_it_is_read(self):
        api = self.trueup.observe(Google("unseen", lines_of(an_answer())))._api_client
        for now in (CLOCK, CLOCK + 5_000):
            with mock.patch("trueup_sdk.clients.batches.now_ms", return_value=now):
                api.download_file("files/unseen:download?alt=media")
        first, second = self.facts("request_id", "timestamp", "batch_id", "model")
        self.assertEqual(first, second)
        self.assertEqual((first[0], first[2:]), ("files/unseen/0", (None, "unknown")))

    def test_a_film_is_no_file_of_results_and_a_failed_download_stays_the_clients_own_error(self):
        api = self.trueup.observe(Google("film", b"film\n" + lines_of(an_answer())))._api_client
        self.assertEqual(api.download_file("files/film:download?alt=media"), api.content)
        api.content = error = OSError("reset")
        for destination in (None, "absent/results.jsonl", io.BytesIO()):
            with self.assertRaises(OSError) as caught:
                api.download_file("files/film:download?alt=media", destination=destination)
            self.assertIs(caught.exception, error)
        self.assertEqual(self.events(), [])

    def test_results_in_mistrals_files_are_calls_of_their_batch(self):
        content = lines_of(an_item(1), an_item(2, EMBEDDING), an_item(3, {"detail": "no"}, 422))
        job = {"id": "job-1", "output_file": "file-1", "completed_at": ENDED_SECONDS}
        chunks = [content[:40], content[40:41], content[41:]]
        answers = {"/v1/batch/jobs": {"data": [job]}, "/v1/files/file-1/content": chunks}
        client = self.trueup.observe(Mistral(answers), team="growth")
        client.batch.jobs.do_request(**a_get("/v1/batch/jobs"))
        self.assertEqual(self.events(), [])

        def read():
            response = client.files.do_request(**a_get("/v1/files/file-1/content"), stream=True)
            return b"".join(response.iter_bytes())

        async def read_async():
            response = await client.files.do_request_async(**a_get("/v1/files/file-1/content"), stream=True)
            return b"".join([chunk async for chunk in response.aiter_bytes()])

        for way in (read, lambda: asyncio.run(read_async())):
            self.assertEqual(way(), content)
            chat, embedding = self.events()
            for event in (chat, embedding):
                facts = (event["provider"], event["batch_id"], event["is_batch"], event["team_id"], event["base_url"])
                self.assertEqual(facts, ("mistral", "job-1", True, "growth", "https://api.mistral.ai"))
            self.assertEqual((chat["request_id"], chat["model"]), ("cmpl-1", "large-2"))
            # It has no time of its own.
            self.assertEqual((embedding["request_id"], embedding["timestamp"]), ("r-2", ENDED_MS))

    def test_results_in_mistrals_job_are_reported_when_it_is_fetched(self):
        outputs = [an_item(1), an_item(2, {"detail": "no"}, 422)]
        job = {"id": "job-2", "completed_at": ENDED_SECONDS, "outputs": outputs}
        client = self.trueup.observe(Mistral({"/v1/batch/jobs/job-2": job}))
        client.batch.jobs.do_request(**a_get("/v1/batch/jobs/job-2"))
        asyncio.run(client.batch.jobs.do_request_async(**a_get("/v1/batch/jobs/job-2")))
        self.assertEqual(self.facts("request_id", "batch_id", "timestamp"), [("cmpl-1", "job-2", ENDED_MS)] * 2)

    def test_results_without_a_time_have_one_time_however_often_their_file_is_read(self):
        client = self.trueup.observe(Mistral({"/v1/files/file-3/content": [lines_of(an_item(1, EMBEDDING))]}))
        for now in (CLOCK, CLOCK + 5_000):
            with mock.patch("trueup_sdk.clients.batches.now_ms", return_value=now):
                client.files.do_request(**a_get("/v1/files/file-3/content"), stream=True).read()
        first, second = self.facts("request_id", "timestamp", "batch_id")
        self.assertEqual(first, second)

    def test_other_files_of_mistral_hold_no_calls(self):
        content = lines_of({"custom_id": "c", "body": a_chat()})
        answers = {"/v1/files/file-4/content": [content], "/v1/files/file-4": {"id": "file-4"}}
        client = self.trueup.observe(Mistral(answers))
        client.files.do_request(**a_get("/v1/files/file-4/content"), stream=True).read()
        client.files.do_request(**a_get("/v1/files/file-4"))
        self.assertEqual(self.events(), [])


if __name__ == "__main__":
    unittest.main()
