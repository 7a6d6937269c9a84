"""An application that calls OpenAI with the official client, watched by OpenInference."""

import run
import tracing
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = tracing.start_tracing("openinference_openai")
OpenAIInstrumentor().instrument(tracer_provider=provider)

settings = run.read_run()
client = OpenAI(api_key="sk-test", base_url=settings["openAiBaseUrl"])
run.make_calls(settings["plan"], run.openai_makers(client))
provider.shutdown()
