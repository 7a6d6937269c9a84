import asyncio
import contextvars
import threading
import unittest

from trueup_sdk import labeled, with_labels
from trueup_sdk.labels import context_labels, merge_labels, own_labels, without_option


def here():
    return dict(context_labels() or {})


class Labels(unittest.TestCase):
    def test_inner_labels_add_to_outer_ones_and_end_with_their_block(self):
        with with_labels(team="growth", session="s-1"):
            with with_labels(session="s-2", user="u-1"):
                self.assertEqual(here(), {"team": "growth", "session": "s-2", "user": "u-1"})
            self.assertEqual(here(), {"team": "growth", "session": "s-1"})
        self.assertEqual(here(), {})

    def test_labels_end_with_their_block_when_it_raises(self):
        with self.assertRaises(ValueError), with_labels(team="growth"):
            raise ValueError
        self.assertEqual(here(), {})

    def test_one_object_can_be_entered_again_within_itself(self):
        same = with_labels(team="growth")
        with same, same:
            self.assertEqual(here(), {"team": "growth"})
        self.assertEqual(here(), {})

    def test_decorates_functions_and_async_functions(self):
        @with_labels(feature="search")
        def search(word):
            """Searches."""
            return word, here()

        @with_labels(feature="draft")
        async def draft():
            await asyncio.sleep(0)
            return here()

        self.assertEqual(search("x"), ("x", {"feature": "search"}))
        self.assertEqual((search.__name__, search.__doc__), ("search", "Searches."))
        self.assertEqual(asyncio.run(draft()), {"feature": "draft"})
        self.assertEqual(here(), {})

    def test_refuses_to_decorate_generators(self):
        with self.assertRaises(TypeError):

            @with_labels(feature="x")
            def items():
                yield 1

    def test_tasks_have_their_own_labels_after_awaits(self):
        async def session(name):
            async with with_labels(session=name):
                await asyncio.sleep(0.01)
                return await asyncio.create_task(inner())

        async def inner():
            await asyncio.sleep(0)
            return here()["session"]

        async def both():
            return await asyncio.gather(session("a"), session("b"))

        self.assertEqual(asyncio.run(both()), ["a", "b"])

    def test_threads_have_labels_only_in_a_copy_of_the_context(self):
        seen = []
        with with_labels(team="growth"):
            context = contextvars.copy_context()
            for work in (lambda: seen.append(here()), lambda: context.run(lambda: seen.append(here()))):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
        self.assertEqual(seen, [{}, {"team": "growth"}])

    def test_labels_one_call_of_a_function_or_of_one_that_returns_a_coroutine(self):
        async def make(value):
            await asyncio.sleep(0)
            return value, here()

        def disguised(value):
            return make(value)

        self.assertEqual(labeled(here, team="a")(), {"team": "a"})
        for work in (make, disguised):
            self.assertEqual(
                asyncio.run(labeled(work, team="a", user="u")(1)), (1, {"team": "a", "user": "u"})
            )
        self.assertEqual(here(), {})

    def test_a_generator_that_is_closed_in_another_context_leaves_its_labels_alone(self):
        def items():
            with with_labels(team="inner"):
                yield

        generator = items()
        contextvars.copy_context().run(next, generator)
        with with_labels(team="outer"):
            generator.close()
            self.assertEqual(here(), {"team": "outer"})

    def test_the_last_label_counts_and_unknown_names_and_nulls_do_not(self):
        merged = merge_labels(
            {"team": "a", "user": 7}, None, {"team": None, "color": "red"}, {"session": "s"}
        )
        self.assertEqual(merged, {"team": "a", "user": "7", "session": "s"})

    def test_takes_the_option_of_one_call_out_of_its_parameters(self):
        params = {"model": "m", "trueup": {"feature": "draft"}}
        self.assertEqual(own_labels(params), {"feature": "draft"})
        self.assertEqual(without_option(params), {"model": "m"})
        self.assertEqual(params["trueup"], {"feature": "draft"})
        plain = {"model": "m"}
        self.assertIs(without_option(plain), plain)
        self.assertIsNone(own_labels(plain))


if __name__ == "__main__":
    unittest.main()
