"""An application that calls OpenAI through Langfuse's drop-in of version 2; configured by LANGFUSE_* variables alone."""

import run
from langfuse.openai import OpenAI, openai

settings = run.read_run()
client = OpenAI(api_key="sk-test", base_url=settings["openAiBaseUrl"])
run.make_calls(settings["plan"], run.openai_makers(client))
openai.flush_langfuse()
