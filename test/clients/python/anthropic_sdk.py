"""An application that calls Anthropic with the official client, which traces itself where tracing is on."""

import run
import tracing
from anthropic import Anthropic

provider = tracing.start_tracing("anthropic_sdk")

settings = run.read_run()
client = Anthropic(api_key="sk-ant-test", base_url=settings["anthropicBaseUrl"])
run.make_calls(settings["plan"], run.anthropic_makers(client))
provider.shutdown()
