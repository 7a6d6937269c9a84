"""An application that calls Anthropic and tells Langfuse of each call by hand, as Langfuse's guide shows."""

import run
from anthropic import Anthropic
from langfuse import get_client

settings = run.read_run()
langfuse = get_client()
client = Anthropic(api_key="sk-ant-test", base_url=settings["anthropicBaseUrl"])


def messages(call):
    options = run.message_options(call)
    with langfuse.start_as_current_observation(
        as_type="generation", name="ask", model=call["model"], input=options["messages"]
    ) as generation:
        message = client.messages.create(**options)
        usage = message.usage
        generation.update(
            output=message.content[0].text,
            usage_details={
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            },
        )


run.make_calls(settings["plan"], {"messages": messages})
langfuse.flush()
