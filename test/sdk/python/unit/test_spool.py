import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from support import Service, connect, record
from trueup_sdk import spool as spools
from trueup_sdk.spool import Spool

BYTES_MAX = 1_000_000


class Spools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "made", "for", "it")

    def open(self, bytes_max=BYTES_MAX):
        return Spool(self.folder, bytes_max)

    def write_foreign(self, name, text):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_returns_events_in_their_order_until_they_are_confirmed(self):
        spool = self.open()
        for index in range(5):
            spool.append(f'{{"index":{index}}}')
        self.assertEqual(spool.read(2, BYTES_MAX), ['{"index":0}', '{"index":1}'])
        self.assertEqual(spool.read(2, BYTES_MAX), ['{"index":0}', '{"index":1}'])
        spool.confirm()
        spool.append('{"index":5}')
        self.assertEqual(spool.read(10, 25), ['{"index":2}', '{"index":3}'])
        spool.confirm()
        self.assertEqual(len(spool.read(10, BYTES_MAX)), 2)
        spool.confirm()
        self.assertTrue(spool.is_empty)
        self.assertEqual(os.listdir(self.folder), [])
        spool.append('{"index":6}')
        self.assertEqual(len(spool.read(10, BYTES_MAX)), 1)
        spool.close()

    def test_a_line_longer_than_the_limit_is_read_whole(self):
        spool = self.open()
        line = '{"text":"' + "x" * 500 + '"}'
        spool.append(line)
        self.assertEqual(spool.read(10, 100), [line])
        spool.close()

    def test_a_full_spool_refuses_and_the_event_waits_in_memory(self):
        service, errors = Service(), []
        trueup = connect(service, spool={"folder": self.folder, "bytes_max": 600}, on_error=errors.append)
        for _ in range(4):
            record(trueup)
        self.assertIn("the spool is full", str(errors[0]))
        self.assertGreater(trueup.stats.waiting, 0)
        self.assertTrue(trueup.shutdown(20))
        self.assertEqual(len({event["request_id"] for event in service.events}), 4)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_that_cannot_be_used_leaves_the_events_in_memory(self):
        path = self.write_foreign("file", "")
        service, errors = Service(), []
        trueup = connect(service, spool=path, on_error=errors.append)
        record(trueup)
        self.assertTrue(trueup.shutdown(20))
        self.assertEqual((len(service.events), len(errors)), (1, 1))

    def test_the_files_of_others_are_private(self):
        spool = self.open()
        spool.append("{}")
        (name,) = os.listdir(self.folder)
        self.assertEqual(os.stat(os.path.join(self.folder, name)).st_mode & 0o077, 0)
        self.assertEqual(os.stat(self.folder).st_mode & 0o077, 0)
        spool.close()

    def test_takes_over_the_files_of_a_process_that_was_killed_within_a_write(self):
        program = "import os, sys; from trueup_sdk.spool import Spool; s = Spool(sys.argv[1], 10**6); "
        program += "s.append('{\"a\":1}'); os.write(s._descriptor, b'{\"a\":'); os.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", program, self.folder], env={**os.environ}, check=False)
        spool = self.open()
        self.assertFalse(spool.is_empty)
        self.assertEqual(spool.read(10, BYTES_MAX), ['{"a":1}'])
        spool.confirm()
        self.assertEqual(spool.read(10, BYTES_MAX), [])
        self.assertTrue(spool.is_empty)
        self.assertEqual(os.listdir(self.folder), [])

    def test_leaves_the_files_of_processes_that_live(self):
        host = self.open()._host
        living = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        try:
            owned = f"trueup-{host}-{living.pid}-0-1-1.ndjson"
            elsewhere = "trueup-another.host-1-0-1-1.ndjson"
            self.write_foreign(owned, "{}\n")
            path = self.write_foreign(elsewhere, "{}\n")
            self.assertTrue(self.open().is_empty)
            long_ago = time.time() - 700
            os.utime(path, (long_ago, long_ago))
            self.assertEqual(self.open().read(10, BYTES_MAX), ["{}"])
        finally:
            living.kill()
            living.wait()
        self.assertFalse(self.open().is_empty)

    def test_takes_over_a_file_of_an_earlier_process_with_the_same_number(self):
        self.write_foreign(f"trueup-{self.open()._host}-{os.getpid()}-0-1-1.ndjson", '{"a":1}\n')
        self.assertEqual(self.open().read(10, BYTES_MAX), ['{"a":1}'])

    def test_two_spools_of_one_process_leave_each_others_files(self):
        first, second = self.open(), self.open()
        first.append('{"a":1}')
        second.append('{"a":2}')
        self.assertTrue(self.open().is_empty)
        self.assertEqual(first.read(10, BYTES_MAX), ['{"a":1}'])
        self.assertEqual(second.read(10, BYTES_MAX), ['{"a":2}'])
        first.close()
        self.assertEqual(self.open().read(10, BYTES_MAX), ['{"a":1}'])
        second.close()

    def test_a_folder_that_was_cleaned_loses_its_events_and_breaks_nothing(self):
        spool = self.open()
        spool.append("{}")
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        self.assertEqual(spool.read(10, BYTES_MAX), [])
        self.assertTrue(spool.is_empty)
        spool.append('{"a":1}')
        self.assertEqual(spool.read(10, BYTES_MAX), ['{"a":1}'])
        spool.close()

    def test_loses_no_event_of_many_threads_while_they_are_sent(self):
        service = Service()
        trueup = connect(service, spool=self.folder, flush_interval_seconds=0.001)

        def work():
            for _ in range(200):
                record(trueup)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(trueup.shutdown(30))
        self.assertEqual(len({event["request_id"] for event in service.events}), 800)
        self.assertEqual(len(service.events), 800)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual([path for path in spools._own_paths if path.startswith(self.folder)], [])


if __name__ == "__main__":
    unittest.main()
