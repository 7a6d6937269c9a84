"""An application that calls OpenAI with the official client, watched by Traceloop."""

import run
import tracing
from openai import OpenAI
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

provider = tracing.start_tracing("traceloop_openai")
OpenAIInstrumentor().instrument(tracer_provider=provider)

settings = run.read_run()
client = OpenAI(api_key="sk-test", base_url=settings["openAiBaseUrl"])
run.make_calls(settings["plan"], run.openai_makers(client))
provider.shutdown()
