"""An application that calls OpenAI through Langfuse's drop-in; configured by LANGFUSE_* variables alone."""

import run
from langfuse import get_client
from langfuse.openai import OpenAI

settings = run.read_run()
client = OpenAI(api_key="sk-test", base_url=settings["openAiBaseUrl"])
run.make_calls(settings["plan"], run.openai_makers(client))
get_client().flush()
