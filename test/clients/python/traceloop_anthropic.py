"""An application that calls Anthropic with the official client, watched by Traceloop."""

import run
import tracing
from anthropic import Anthropic
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

provider = tracing.start_tracing("traceloop_anthropic")
AnthropicInstrumentor().instrument(tracer_provider=provider)

settings = run.read_run()
client = Anthropic(api_key="sk-ant-test", base_url=settings["anthropicBaseUrl"])
run.make_calls(settings["plan"], run.anthropic_makers(client))
provider.shutdown()
