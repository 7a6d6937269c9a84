"""Reports one call by the environment's settings, with whichever package is on the path."""

import trueup_sdk
from trueup_sdk.calls import CallRequest, Reading

with trueup_sdk.Trueup(team="growth") as trueup:
    assert trueup.ready(20)
    call = trueup.recorder.begin(
        CallRequest("openai", "gpt-4o-mini", "https://api.openai.com/v1", {"messages": []})
    )
    usage = {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}
    call.end("ok", Reading(response_id="chatcmpl-wheel", usage=usage))
    assert trueup.flush(20)
print(trueup_sdk.__version__, trueup_sdk.__file__)
