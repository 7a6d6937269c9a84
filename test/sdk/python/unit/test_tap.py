import asyncio
import base64
import gc
import json
import random
import struct
import unittest
import zlib

from decimal import Decimal

from standins import Response
from trueup_sdk.clients.frames import FrameReader
from trueup_sdk.clients.tap import EVENTS, FRAMES, JSON, LINES, Sink, read_response, share_json


class Notes(Sink):
    def __init__(self):
        self.lines = []
        self.values = []
        self.ends = []

    def json(self, value):
        self.values.append(value)

    def line(self, data):
        self.lines.append(data)

    def end(self, how, error=None):
        self.ends.append((how, error))


class ParsedResponse(Response):
    """One that has arrived, and counts how often it is parsed."""

    def __init__(self, chunks):
        super().__init__(chunks)
        self.parsed = 0
        self.read()

    def json(self, **options):
        self.parsed += 1
        return json.loads(self.content, **options)


def tapped(chunks, kind=EVENTS, is_async=False, **more):
    response, notes = Response(chunks, content_type="text/event-stream", **more), Notes()
    read_response(response, kind, notes, is_async)
    return response, notes


def cut(body, seed):
    """The body in chunks that end anywhere, also within a character."""
    places = random.Random(seed)
    chunks, rest = [], body
    while rest:
        length = places.randint(1, 9)
        chunks.append(rest[:length])
        rest = rest[length:]
    return chunks


BODY = 'event: a\ndata: {"x":"ä"}\n\ndata:[DONE]\r\n\r\ndata: last'.encode()
LINES_OF_BODY = ['{"x":"ä"}'.encode(), b"[DONE]", b"last"]


def frame_of(payload, headers=b""):
    total = 16 + len(headers) + len(payload)
    prelude = struct.pack(">II", total, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def event_frame(event):
    return frame_of(json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode())


class Reading(unittest.TestCase):
    def test_sees_each_line_wherever_the_chunks_end_and_changes_no_chunk(self):
        for seed in range(60):
            chunks = cut(BODY, seed)
            response, notes = tapped(chunks)
            self.assertEqual(list(response.iter_bytes()), chunks)
            self.assertEqual(notes.lines, LINES_OF_BODY)
            self.assertEqual(notes.ends, [("done", None)])

    def test_sees_each_frame_wherever_the_chunks_end(self):
        events = [{"n": 1}, {"text": "ä" * 300}, {"n": 3}]
        body = b"".join(map(event_frame, events))
        for seed in range(60):
            reader = FrameReader()
            seen = [json.loads(event) for chunk in cut(body, seed) for event in reader.feed(chunk)]
            self.assertEqual(seen, events)

    def test_reads_an_error_frame_as_an_error_and_stops_at_bytes_that_are_no_frames(self):
        reader = FrameReader()
        failed = frame_of(b'{"message":"no"}', b":exception-type")
        self.assertEqual(list(reader.feed(failed)), [b'{"type":"error"}'])
        self.assertEqual(list(reader.feed(b"<html>this is no frame</html>")), [])
        self.assertEqual(list(reader.feed(event_frame({"n": 1}))), [])

    def test_reads_a_json_answer_in_chunks_and_one_that_has_arrived(self):
        for read_first in (False, True):
            response, notes = Response([b'{"a', b'":1}']), Notes()
            if read_first:
                response.read()
            read_response(response, JSON, notes, False)
            self.assertEqual(response.read(), b'{"a":1}')
            self.assertEqual((notes.values, notes.ends), ([{"a": 1}], [("done", None)]))

    def test_a_sink_that_fails_does_not_reach_the_reader(self):
        class Broken(Notes):
            def line(self, data):
                raise KeyError("x")

            def end(self, how, error=None):
                raise KeyError("y")

        response = Response([BODY])
        read_response(response, EVENTS, Broken(), False)
        self.assertEqual(list(response.iter_bytes()), [BODY])
        self.assertTrue(response.is_closed)

    def test_a_json_answer_is_parsed_once_by_its_client_and_the_response_stays_as_it_was(self):
        response, notes = ParsedResponse([b'{"a":1.5}']), Notes()
        before = dict(response.__dict__)
        shared = share_json(response, notes)
        self.assertEqual(notes.ends, [])
        value = response.json()
        self.assertIs(notes.values[0], value)
        self.assertEqual((response.parsed, response.json()), (1, {"a": 1.5}))
        shared.finish()
        self.assertEqual((len(notes.values), notes.ends), (1, [("done", None)]))
        self.assertEqual({**response.__dict__, "parsed": 0}, before)

    def test_a_json_answer_is_read_though_its_client_parses_it_otherwise_or_not_at_all(self):
        for parse in (lambda response: response.json(parse_float=Decimal), lambda response: None):
            response, notes = ParsedResponse([b'{"a":1.5}']), Notes()
            before = dict(response.__dict__)
            shared = share_json(response, notes)
            parse(response)
            self.assertEqual(notes.values, [])
            shared.finish()
            self.assertEqual((notes.values, notes.ends), ([{"a": 1.5}], [("done", None)]))
            self.assertEqual({**response.__dict__, "parsed": 0}, before)

    def test_an_answer_that_is_no_json_fails_for_its_client_and_ends_all_the_same(self):
        response, notes = ParsedResponse([b"{broken"]), Notes()
        shared = share_json(response, notes)
        with self.assertRaises(ValueError):
            response.json()
        shared.finish()
        self.assertEqual((notes.values, notes.ends), ([], [("done", None)]))
        self.assertIsNone(share_json(ParsedResponse([b"<html>"]), notes))
        self.assertIsNone(share_json(Response([b"{}"]), notes))

    def test_raw_bytes_are_the_readers_alone(self):
        response, notes = tapped([b"\x1f\x8b", b"\x00"])
        self.assertEqual(list(response.iter_raw()), [b"\x1f\x8b", b"\x00"])
        self.assertEqual((notes.lines, notes.ends), ([], [("done", None)]))


class Ends(unittest.TestCase):
    def test_a_response_is_as_it_was_before_after_its_end(self):
        response, _ = tapped([b"data: 1\n"])
        self.assertIsInstance(response, Response)
        kept = response.iter_bytes, response.close
        self.assertIsNot(type(response), Response)
        list(response.iter_bytes())
        self.assertIs(type(response), Response)
        self.assertEqual(
            set(vars(response)), {"chunks", "headers", "status_code", "error", "is_closed"}
        )
        # Methods that were taken before still work.
        self.assertEqual(list(kept[0]()), [b"data: 1\n"])
        kept[1]()

    def test_a_reader_that_closes_or_drops_a_stream_has_left_it(self):
        response, notes = tapped([b"data: 1\n", b"data: 2\n"])
        next(response.iter_bytes())
        response.close()
        response.close()
        self.assertEqual([how for how, _ in notes.ends], ["left"])
        self.assertIs(type(response), Response)
        unread, notes = tapped([b"data: 1\n"])
        del unread
        self.assertEqual([how for how, _ in notes.ends], ["left"])
        begun, notes = tapped([b"data: 1\n", b"data: 2\n"])
        chunks = begun.iter_bytes()
        next(chunks)
        del begun, chunks
        self.assertEqual([how for how, _ in notes.ends], ["left"])

    def test_a_stream_in_a_cycle_ends_when_the_cycle_is_collected(self):
        response, notes = tapped([b"data: 1\n", b"data: 2\n"])

        class Stream:
            pass

        stream = Stream()
        stream.response, stream.chunks = response, response.iter_bytes()
        stream.own = stream
        next(stream.chunks)
        del response, stream
        gc.collect()
        self.assertEqual([how for how, _ in notes.ends], ["left"])

    def test_an_error_of_the_connection_reaches_the_reader_unchanged(self):
        error = ConnectionError("reset")
        response, notes = tapped([b"data: 1\n"], error=error)
        with self.assertRaises(ConnectionError) as raised:
            list(response.iter_bytes())
        self.assertIs(raised.exception, error)
        self.assertEqual(notes.ends, [("failed", error)])


class AsyncReading(unittest.IsolatedAsyncioTestCase):
    async def test_sees_each_line_wherever_the_chunks_end(self):
        for seed in range(20):
            chunks = cut(BODY, seed)
            response, notes = tapped(chunks, is_async=True)
            self.assertEqual([chunk async for chunk in response.aiter_bytes()], chunks)
            self.assertEqual(notes.lines, LINES_OF_BODY)
            self.assertEqual(notes.ends, [("done", None)])
            self.assertIs(type(response), Response)

    async def test_a_reader_that_closes_a_stream_has_left_it(self):
        response, notes = tapped([b"data: 1\n", b"data: 2\n"], is_async=True)
        async for _ in response.aiter_bytes():
            break
        await response.aclose()
        self.assertEqual([how for how, _ in notes.ends], ["left"])

    async def test_a_task_that_is_cancelled_within_a_stream_has_failed_it_with_its_cancellation(self):
        forever = asyncio.Event()
        response, notes = tapped([b"data: 1\n", forever.wait], is_async=True)

        async def read():
            async for _ in response.aiter_bytes():
                pass

        task = asyncio.ensure_future(read())
        await asyncio.sleep(0.01)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        ((how, error),) = notes.ends
        self.assertEqual((how, type(error)), ("failed", asyncio.CancelledError))

    async def test_frames_and_lines_of_lists(self):
        response, notes = tapped([event_frame({"n": 1})[:9], event_frame({"n": 1})[9:]], FRAMES, True)
        [chunk async for chunk in response.aiter_bytes()]
        self.assertEqual(notes.lines, [b'{"n": 1}'])
        response, notes = tapped([b"1\n\n2", b"2\n3"], LINES, True)
        self.assertEqual(await response.aread(), b"1\n\n22\n3")
        self.assertEqual(notes.lines, [b"1", b"22", b"3"])


if __name__ == "__main__":
    unittest.main()
